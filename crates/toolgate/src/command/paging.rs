//! Lists that may be long: a page, or all pages after each other.

use clap::Args;
use serde_json::{Map, Value};

use super::Failure;
use crate::client::{Client, with_query};
use crate::output::{Report, clean, table};

/// How much of a list is wanted.
#[derive(Args)]
pub(crate) struct Paging {
    /// How many at most
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on where an earlier list ended
    #[arg(long)]
    cursor: Option<String>,
    /// Everything, however many
    #[arg(long, conflicts_with = "cursor")]
    all: bool,
}

impl Paging {
    /// Everything, however many.
    pub(crate) fn everything() -> Self {
        Self { limit: 100, cursor: None, all: true }
    }

    /// Fetches the list that stands under `name` in the answer.
    pub(crate) async fn fetch(
        &self,
        client: &Client,
        path: &str,
        parameters: &[(&str, Option<String>)],
        name: &str,
        columns: &[(&str, &str)],
    ) -> Result<Report, Failure> {
        let limit = if self.all { 1000 } else { self.limit };
        let mut items = Vec::new();
        let mut cursor = self.cursor.clone();
        loop {
            let mut query = parameters.to_vec();
            query.extend([("limit", Some(limit.to_string())), ("cursor", cursor.take())]);
            let mut answer = client.get(&with_query(path, &query)).await?;
            if let Some(Value::Array(page)) = answer.get_mut(name).map(Value::take) {
                items.extend(page);
            }
            cursor = answer.get("next_cursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() || !self.all {
                break;
            }
        }
        let text = table(&items, columns);
        let more = cursor.as_ref().map(|cursor| format!("There are more; go on with --cursor {}", clean(cursor)));
        let mut value = Map::new();
        value.insert(name.to_owned(), Value::Array(items));
        value.insert("next_cursor".to_owned(), cursor.map_or(Value::Null, Value::String));
        Ok(Report::new(Value::Object(value), text).with_aside(more.unwrap_or_default()))
    }
}
