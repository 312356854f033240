//! What models cost: prices per million tokens, by the name of the model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::usage::Usage;
use crate::constraint::Cost;
use crate::service::DefinitionError;
use crate::service::reading::{Fields, object, refuse};
use crate::spending::{micros, micros_of_number};

/// More than any provider has models.
const LIMIT: usize = 4_096;
/// What a million tokens may cost at most, in millionths of a dollar.
const MOST: u128 = 1_000_000 * 1_000_000;

/// The prices of a provider. A name that ends in `*` stands for all that begin like it, and `*` for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(BTreeMap<String, Row>);

/// The price of a million tokens of each kind, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) cache_write_long: u64,
    pub(crate) output: u64,
}

impl Prices {
    pub(crate) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let members = object(value, path)?;
        if members.len() > LIMIT {
            return Err(refuse(path, format!("has more than {LIMIT} models")));
        }
        let row = |(name, value): (&String, &Value)| {
            let path = format!("{path}.{}", name.chars().take(64).collect::<String>());
            if name.is_empty() || name.trim_end_matches('*').contains('*') || name.ends_with("**") {
                return Err(refuse(&path, "must be the name of a model, of which the end may be *"));
            }
            Ok((name.clone(), Row::from_json(value, &path)?))
        };
        members.iter().map(row).collect::<Result<_, _>>().map(Self)
    }

    /// `None` if there are none.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let rows: Map<String, Value> = self.0.iter().map(|(name, row)| (name.clone(), row.to_json())).collect();
        (!rows.is_empty()).then_some(Value::Object(rows))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of models that have a row of their own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| !name.ends_with('*'))
    }

    /// The row that says most about a model, with how much it says.
    fn find(&self, model: &str) -> Option<(usize, &Row)> {
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning).then_some(beginning.len()),
            None => (model == name).then_some(usize::MAX),
        };
        let found = self.0.iter().filter_map(|(name, row)| Some((fits(name)?, row)));
        found.max_by_key(|(weight, _)| *weight)
    }

    /// The prices of a call that named one model and was answered by another, such as a dated version of it.
    pub(crate) fn of(&self, requested: &str, answered: Option<&str>) -> Option<&Row> {
        let requested = self.find(requested);
        let answered = answered.and_then(|model| self.find(model));
        match (requested, answered) {
            // What was asked for says more than the row that all others fall under.
            (Some((more, row)), Some((less, _))) if more > less => Some(row),
            (requested, answered) => answered.or(requested).map(|(_, row)| row),
        }
    }
}

impl Row {
    fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["cache_read", "cache_write", "cache_write_long", "input", "output"])?;
        let input = fields.need("input", read_price)?;
        let or = |name, usual| Ok::<_, DefinitionError>(fields.read(name, read_price)?.unwrap_or(usual));
        let cache_write = or("cache_write", input)?;
        Ok(Self {
            input,
            cache_read: or("cache_read", input)?,
            cache_write,
            cache_write_long: or("cache_write_long", cache_write)?,
            output: or("output", 0)?,
        })
    }

    fn to_json(self) -> Value {
        let mut members = Map::new();
        for (name, price, usual) in [
            ("input", self.input, None),
            ("output", self.output, None),
            ("cache_read", self.cache_read, Some(self.input)),
            ("cache_write", self.cache_write, Some(self.input)),
            ("cache_write_long", self.cache_write_long, Some(self.cache_write)),
        ] {
            if usual != Some(price) {
                members.insert(name.to_owned(), json!(decimal(price)));
            }
        }
        Value::Object(members)
    }

    /// What so many tokens cost, rounded up to a millionth of a dollar; `None` if it is more than any call costs.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<Cost> {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let sum = of(usage.input, self.input)
            + of(usage.cache_read, self.cache_read)
            + of(usage.cache_write, self.cache_write)
            + of(usage.cache_write_long, self.cache_write_long)
            + of(usage.output, self.output);
        u64::try_from(sum.div_ceil(1_000_000)).ok().and_then(Cost::from_micros)
    }

    /// The highest price of a token that is read.
    pub(crate) fn dearest_input(&self) -> u64 {
        self.input.max(self.cache_read).max(self.cache_write).max(self.cache_write_long)
    }
}

fn read_price(value: &Value, path: &str) -> Result<u64, DefinitionError> {
    let price = match value {
        Value::Number(number) => micros_of_number(number),
        Value::String(text) => micros(text),
        _ => None,
    };
    let price = price.filter(|price| *price <= MOST).and_then(|price| u64::try_from(price).ok());
    price.ok_or_else(|| refuse(path, "must be the price of a million tokens in US dollars, such as \"1.25\""))
}

/// The text of an amount of millionths.
fn decimal(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices() -> Prices {
        let table = json!({
            "large": {"input": "3", "output": 15, "cache_read": "0.3", "cache_write": "3.75", "cache_write_long": 6},
            "large-2*": {"input": "4", "output": 20},
            "*": {"input": "0.000001", "output": "100"},
        });
        Prices::from_json(&table, "prices").unwrap()
    }

    #[test]
    fn the_row_that_says_most_about_the_model_of_the_answer_counts() {
        let prices = prices();
        let input = |requested, answered| prices.of(requested, answered).map(|row| row.input);
        assert_eq!(input("large", None), Some(3_000_000));
        assert_eq!(input("large-2", Some("large-2-2026-01-01")), Some(4_000_000));
        // The dated name has no row of its own.
        assert_eq!(input("large", Some("large-1-2026-01-01")), Some(3_000_000));
        assert_eq!(input("large", Some("large-2-2026-01-01")), Some(3_000_000));
        assert_eq!(input("small", Some("other")), Some(1));
        assert!(Prices::default().of("large", None).is_none());
    }

    #[test]
    fn a_cost_is_exact_and_rounded_up_once() {
        let prices = prices();
        let row = prices.of("large", None).unwrap();
        let usage = Usage { input: 1, cache_read: 1, cache_write: 1, cache_write_long: 1, output: 1 };
        // 3 + 0.3 + 3.75 + 6 + 15 dollars for a million of each.
        assert_eq!(row.cost(&usage), Cost::from_micros(29));
        let usage = Usage { input: 1_000_000, output: 2_000_000, ..Usage::default() };
        assert_eq!(row.cost(&usage), Cost::from_micros(33_000_000));
        assert_eq!(row.cost(&Usage::default()), Cost::from_micros(0));
        assert_eq!(row.cost(&Usage { output: u64::MAX, ..Usage::default() }), None);
    }

    #[test]
    fn a_table_is_written_as_it_is_read() {
        let written = prices().to_json().unwrap();
        assert_eq!(Prices::from_json(&written, "").unwrap(), prices());
        assert_eq!(written["*"]["input"], "0.000001");
        for wrong in [
            json!({"": {"input": 1}}),
            json!({"a*b": {"input": 1}}),
            json!({"a": {"output": 1}}),
            json!({"a": {"input": -1}}),
            json!({"a": {"input": "1,5"}}),
            json!({"a": {"input": 1, "unput": 2}}),
        ] {
            assert!(Prices::from_json(&wrong, "prices").is_err(), "{wrong}");
        }
    }
}
