//! The texts by which rules compare JSON values. In both `1` and `1.0` are one value.

use std::io::Write;

use serde_json::Value;

use super::number::Number;
use crate::canonical::{to_canonical, write_canonical, write_string};
use crate::strict_json;

/// A value as such a text.
pub(super) type ValueText = Vec<u8>;

/// For values that are allowed: integers beyond 2^53, which canonical JSON rounds, stay apart, so that a list admits
/// none that it does not name.
pub(super) fn exact_text(value: &Value) -> ValueText {
    let mut out = Vec::new();
    write_exact(value, &mut out);
    out
}

/// For values that are denied: numbers that are one number to a service which reads doubles are one here, so that none
/// passes in another's place.
pub(super) fn rounded_text(value: &Value) -> ValueText {
    to_canonical(value)
}

/// Reads either text back.
///
/// INVARIANT: the texts were written by this module from valid JSON.
pub(super) fn read_text(text: &ValueText) -> Value {
    strict_json::parse(text).unwrap_or(Value::Null)
}

fn write_exact(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(_) => match Number::from_json(value).and_then(Number::whole) {
            // Writing to a Vec cannot fail.
            Some(integer) => drop(write!(out, "{integer}")),
            None => write_canonical(value, out),
        },
        Value::Array(items) => {
            out.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_exact(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (position, (name, member)) in members.into_iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_string(name, out);
                out.push(b':');
                write_exact(member, out);
            }
            out.push(b'}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => write_canonical(value, out),
    }
}
