//! Finding items. The database only finds which items have a word; they are ranked here, so that both engines find the same
//! in the same order.

use std::collections::BTreeSet;

use toolgate_gate::ports::ledger::{ChunkOrigin, FindBy, FindItems, FoundItem};
use toolgate_model::id::{InvocationId, ItemId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::search::{Corpus, Posting, rank};
use toolgate_model::store::{ItemTimes, Provenance};

use super::read_material;
use crate::operation::Operation;
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Query, Transaction, values};

/// The maximum number of occurrences read for one query: frequent words are left out of it.
const POSTINGS: u64 = 50_000;
/// How many found items are read for each that is returned, at most: some have expired or belong to older documents.
const TRIES: usize = 10;

/// The columns of an item, in the order in which [`read_item`] takes them.
const COLUMNS: &str = "i.id, i.agent, i.actor, i.invocation, i.run, i.trusted, i.created_at, i.expires_at, i.ciphertext, \
     i.wrapped_key, i.master_key, d.document, d.title, d.source";
/// Items that can be read: not expired, and chunks of the current document only.
const READABLE: &str = "store_items AS i LEFT JOIN store_documents AS d ON d.id = i.document AND d.state = 'current' \
     WHERE (i.document IS NULL OR d.id IS NOT NULL) AND (i.expires_at IS NULL OR i.expires_at > $1) AND i.store = $2 \
     AND i.partition_hash = $3";

fn read_item(row: &Row, score: Option<f64>) -> Result<FoundItem, SqlError> {
    let text = |column: usize| Ok::<_, SqlError>(row.optional_text(column)?.map(str::to_owned));
    let origin = |document: String| Ok::<_, SqlError>(ChunkOrigin { document, title: text(12)?, source: text(13)? });
    Ok(FoundItem {
        id: row.parsed(0, ItemId::parse)?,
        provenance: Provenance {
            agent: row.parsed(1, PrincipalId::parse)?,
            actor: row.parsed(2, PrincipalId::parse)?,
            invocation: row.optional_parsed(3, InvocationId::parse)?,
            run: text(4)?,
            is_trusted: row.integer(5)? != 0,
        },
        times: ItemTimes { created_at: row.time(6)?, expires_at: row.optional_time(7)? },
        sealed: read_material(row, 8)?,
        document: text(11)?.map(origin).transpose()?,
        score,
    })
}

impl Operation for FindItems {
    type Output = Vec<FoundItem>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<FoundItem>, Failure> {
        match &self.by {
            FindBy::Id(id) => read_one(transaction, self, "i.id", Value::from(*id)).await,
            FindBy::Key(key) => read_one(transaction, self, "i.key_hash", Value::from(key.as_str())).await,
            FindBy::Newest { before } => newest(transaction, self, *before).await,
            FindBy::Words(words) => best(transaction, self, words).await,
        }
    }
}

async fn read_one<T: Transaction>(
    transaction: &mut T,
    find: &FindItems,
    column: &str,
    value: Value<'_>,
) -> Result<Vec<FoundItem>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM {READABLE} AND {column} = $4");
    let parameters = [Value::from(find.now), Value::from(find.store), Value::from(find.partition.0.as_str()), value];
    let row = transaction.query_optional(&sql, &parameters).await?;
    Ok(row.iter().map(|row| read_item(row, None)).collect::<Result<_, _>>()?)
}

async fn newest<T: Transaction>(
    transaction: &mut T,
    find: &FindItems,
    before: Option<ItemId>,
) -> Result<Vec<FoundItem>, Failure> {
    let mut parameters = vec![Value::from(find.now), Value::from(find.store), Value::from(find.partition.0.as_str())];
    let mut sql = format!("SELECT {COLUMNS} FROM {READABLE}");
    if let Some(before) = before {
        parameters.push(Value::from(before));
        sql.push_str(" AND i.id < $4");
    }
    for label in &find.labels {
        parameters.push(Value::Integer(*label));
        let place = parameters.len();
        sql.push_str(&format!(
            " AND EXISTS (SELECT 1 FROM store_words AS w WHERE w.word = ${place} AND w.item = i.id)"
        ));
    }
    sql.push_str(&format!(" ORDER BY i.id DESC LIMIT {}", find.limit));
    let rows = transaction.query(&sql, &parameters).await?;
    Ok(rows.iter().map(|row| read_item(row, None)).collect::<Result<_, _>>()?)
}

async fn best<T: Transaction>(transaction: &mut T, find: &FindItems, words: &[i64]) -> Result<Vec<FoundItem>, Failure> {
    let (store, partition) = (find.store, find.partition.0.as_str());
    let postings = postings(transaction, words).await?;
    let sql = "SELECT COUNT(*), CAST(COALESCE(SUM(length), 0) AS BIGINT) FROM store_items \
         WHERE store = $1 AND partition_hash = $2";
    let row = transaction.query_optional(sql, values![store, partition]).await?;
    let corpus = match row {
        Some(row) => Corpus { texts: row.count(0)?, words: row.count(1)? },
        None => Corpus::default(),
    };
    let mut ranked = rank(corpus, &postings);
    for label in &find.labels {
        let with = with_label(transaction, *label).await?;
        ranked.retain(|(item, _)| with.contains(item));
    }
    let mut found = Vec::with_capacity(find.limit);
    let sql = format!("SELECT {COLUMNS} FROM {READABLE} AND i.id = $4");
    for candidates in ranked.chunks(find.limit.max(1)).take(TRIES) {
        let query = |(item, _): &(ItemId, f64)| -> Query<'_> {
            (sql.clone(), values![find.now, store, partition, *item].to_vec())
        };
        let queries: Vec<Query<'_>> = candidates.iter().map(query).collect();
        let rows = transaction.query_each(&queries).await?;
        for (rows, (_, score)) in rows.iter().zip(candidates) {
            found.extend(rows.iter().map(|row| read_item(row, Some(*score))).collect::<Result<Vec<_>, _>>()?);
        }
        if found.len() >= find.limit {
            break;
        }
    }
    found.truncate(find.limit);
    Ok(found)
}

/// The items of each word. Numbers of words follow from the partition, so these are items of one partition.
async fn postings<T: Transaction>(transaction: &mut T, words: &[i64]) -> Result<Vec<Vec<Posting<ItemId>>>, Failure> {
    let count = |word: &i64| -> Query<'_> {
        ("SELECT COUNT(*) FROM store_words WHERE word = $1".to_owned(), vec![Value::Integer(*word)])
    };
    let queries: Vec<Query<'_>> = words.iter().map(count).collect();
    let mut counts = Vec::with_capacity(words.len());
    for (rows, word) in transaction.query_each(&queries).await?.iter().zip(words) {
        let with: u64 = rows.first().map_or(Ok(0), |row| row.count(0))?;
        counts.push((with, *word));
    }
    // Rare words first: they decide.
    counts.sort_unstable();
    let (mut left, mut queries) = (POSTINGS, Vec::new());
    for (with, word) in counts.into_iter().filter(|(with, _)| *with > 0) {
        if with > left && !queries.is_empty() {
            break;
        }
        left = left.saturating_sub(with);
        let sql = format!(
            "SELECT item, occurrences, length FROM store_words WHERE word = $1 ORDER BY item DESC LIMIT {POSTINGS}"
        );
        queries.push((sql, vec![Value::Integer(word)]));
    }
    let read = |row: &Row| {
        Ok::<_, SqlError>(Posting {
            text: row.parsed(0, ItemId::parse)?,
            occurrences: row.count(1)?,
            length: row.count(2)?,
        })
    };
    let results = transaction.query_each(&queries).await?;
    let of_word = |rows: &Vec<Row>| rows.iter().map(read).collect::<Result<Vec<_>, _>>();
    Ok(results.iter().map(of_word).collect::<Result<_, _>>()?)
}

async fn with_label<T: Transaction>(transaction: &mut T, label: i64) -> Result<BTreeSet<ItemId>, Failure> {
    let sql = format!("SELECT item FROM store_words WHERE word = $1 LIMIT {POSTINGS}");
    let rows = transaction.query(&sql, &[Value::Integer(label)]).await?;
    Ok(rows.iter().map(|row| row.parsed(0, ItemId::parse)).collect::<Result<_, _>>()?)
}
