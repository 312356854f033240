//! Lists in pages.

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolgate_api::Endpoint;
use toolgate_api::parameters::{Cursor, Limit};
use toolgate_api::reply::NextCursor;

use super::Failure;
use crate::client::Client;
use crate::output::{Report, clean, table};

#[derive(Args)]
pub(crate) struct Paging {
    /// Maximum number of entries
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Continue after a previous page
    #[arg(long)]
    cursor: Option<String>,
    /// All entries
    #[arg(long, conflicts_with = "cursor")]
    all: bool,
}

/// How a list is printed.
pub(crate) struct Shown<'a> {
    /// The member of the page that contains the items.
    pub(crate) name: &'a str,
    /// The heading of each column, and the member that it shows.
    pub(crate) columns: &'a [(&'a str, &'a str)],
}

impl Paging {
    pub(crate) fn everything() -> Self {
        Self { limit: 100, cursor: None, all: true }
    }

    /// Fetches a list. `at` is the path parameter as it was typed, if the path has one.
    pub(crate) async fn fetch<E, T>(
        &self,
        client: &Client,
        at: Option<&str>,
        query: impl Fn(Option<Limit>, Option<Cursor>) -> Result<E::Query, Failure>,
        page: impl Fn(E::Reply) -> (Vec<T>, NextCursor),
        shown: Shown<'_>,
    ) -> Result<Report, Failure>
    where
        E: Endpoint<Reply: DeserializeOwned>,
        T: Serialize,
    {
        let limit = Limit(if self.all { Limit::MAXIMUM } else { self.limit });
        let mut items = Vec::new();
        let mut cursor = self.cursor.clone();
        loop {
            let request = client.to::<E>().query(&query(Some(limit), cursor.take().map(Cursor))?);
            let request = match at {
                Some(text) => request.named(text),
                None => request,
            };
            let (found, next) = page(request.send().await?);
            items.extend(found.iter().map(|item| json!(item)));
            cursor = next.0;
            if cursor.is_none() || !self.all {
                break;
            }
        }
        let text = table(&items, shown.columns);
        let more = cursor.as_ref().map(|cursor| format!("There are more; continue with --cursor {}", clean(cursor)));
        let mut value = Map::new();
        value.insert(shown.name.to_owned(), Value::Array(items));
        value.insert("next_cursor".to_owned(), cursor.map_or(Value::Null, Value::String));
        Ok(Report::new(Value::Object(value), text).with_aside(more.unwrap_or_default()))
    }
}
