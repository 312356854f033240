//! Finds references that return to themselves for the same value and would never end, and references that fan out too
//! far, before anything is checked against the schema.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use super::keyword::{Under, schemas_under, under};

/// The maximum number of schemas that apply to one value.
const WORK_LIMIT: usize = 10_000;

/// Checks that every value needs a bounded number of steps.
pub(super) fn check(document: &Value) -> Result<(), SchemaError> {
    let mut schemas = Vec::new();
    collect(document, String::new(), &mut schemas);
    let work = schemas.iter().map(|(_, schema)| (std::ptr::from_ref(*schema), Work::Unknown)).collect();
    let mut search = Search { document, work };
    schemas.iter().try_for_each(|(path, schema)| search.of(schema, path).map(drop))
}

/// All schemas in a schema, with their paths.
fn collect<'a>(schema: &'a Value, path: String, schemas: &mut Vec<(String, &'a Value)>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        for (rest, below) in under(keyword).map(|under| schemas_under(under, value)).unwrap_or_default() {
            let at = if path.is_empty() { keyword.clone() } else { format!("{path}.{keyword}") };
            collect(below, format!("{at}{rest}"), schemas);
        }
    }
    schemas.push((path, schema));
}

/// The number of schemas that apply to a value together with this one.
enum Work {
    Unknown,
    Open,
    Known(usize),
}

/// The schemas of a document, identified by their address.
struct Search<'a> {
    document: &'a Value,
    work: HashMap<*const Value, Work>,
}

impl<'a> Search<'a> {
    fn of(&mut self, schema: &'a Value, path: &str) -> Result<usize, SchemaError> {
        match self.work.get_mut(&std::ptr::from_ref(schema)) {
            Some(Work::Known(work)) => return Ok(*work),
            Some(Work::Open) => {
                return Err(refuse(path, "refers to itself for the same value; the recursion would never end"));
            }
            Some(unknown) => *unknown = Work::Open,
            // A value that no keyword makes a schema was not checked as one.
            None => return Err(refuse(path, "refers to something that is not a schema; use #/$defs/NAME")),
        }
        let mut work = 1usize;
        for next in self.in_place(schema) {
            work = work.saturating_add(self.of(next, path)?);
        }
        if work > WORK_LIMIT {
            return Err(refuse(path, "applies too many schemas to one value; use fewer references"));
        }
        self.work.insert(std::ptr::from_ref(schema), Work::Known(work));
        Ok(work)
    }

    /// The schemas that apply to the same value. An unresolvable reference is found when the schema is compiled.
    fn in_place(&self, schema: &'a Value) -> Vec<&'a Value> {
        let mut schemas = Vec::new();
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match (keyword.as_str(), under(keyword)) {
                ("$ref", _) => schemas.extend(value.as_str().and_then(|reference| target(self.document, reference))),
                (_, Some(under @ (Under::InPlace | Under::InPlaceList | Under::InPlaceMap))) => {
                    schemas.extend(schemas_under(under, value).into_iter().map(|(_, schema)| schema));
                }
                _ => {}
            }
        }
        schemas
    }
}

/// The target of a reference inside a document.
pub(super) fn target<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    document.pointer(&percent_decoded(pointer)?)
}

/// A pointer in a reference may be percent-encoded.
fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(out).ok()
}

fn refuse(path: &str, reason: &str) -> SchemaError {
    SchemaError { path: path.to_owned(), reason: reason.to_owned() }
}
