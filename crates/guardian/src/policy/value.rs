//! Conversion to Cedar values. A value that cannot be represented exactly is rejected with its path, so that rules
//! never evaluate anything but what is sent. Reasons never contain the value.

use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::RestrictedExpression;
use serde_json::{Map, Number, Value};
use thiserror::Error;
use toolgate_model::canonical::to_canonical_string;

use super::shape::{Member, Shape};

#[cfg(test)]
mod tests;

/// The number of decimal places of a Cedar decimal.
const DECIMAL_DIGITS: usize = 4;
/// The largest integer up to which a double is exact.
const EXACT_INTEGERS: i64 = 1 << 53;

/// A value that Cedar cannot represent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{path}` {reason}")]
pub struct Inexpressible {
    /// The path from the top of the value (`lines[2].price`); empty for the value itself.
    pub path: String,
    pub reason: &'static str,
}

/// Converts a value by its shape.
///
/// Members that the shape does not know are omitted, and so is null, which means that there is no value.
pub fn express(shape: &Shape, value: &Value) -> Result<RestrictedExpression, Inexpressible> {
    match (shape, value) {
        (Shape::Json, Value::String(text)) | (Shape::Text, Value::String(text)) => {
            Ok(RestrictedExpression::new_string(text.clone()))
        }
        (Shape::Json, value) => Ok(RestrictedExpression::new_string(to_canonical_string(value))),
        (Shape::Bool, Value::Bool(truth)) => Ok(RestrictedExpression::new_bool(*truth)),
        (Shape::Long, Value::Number(number)) => long(number).map(RestrictedExpression::new_long),
        (Shape::Decimal, Value::Number(number)) => decimal(number).map(RestrictedExpression::new_decimal),
        (Shape::Set(item), Value::Array(values)) => set(item, values),
        (Shape::Record(members), Value::Object(values)) => record(members, values, None),
        (Shape::Text, _) => Err(refuse("must be a string")),
        (Shape::Bool, _) => Err(refuse("must be true or false")),
        (Shape::Long, _) => Err(refuse("must be an integer")),
        (Shape::Decimal, _) => Err(refuse("must be a number")),
        (Shape::Set(_), _) => Err(refuse("must be a list")),
        (Shape::Record(_), _) => Err(refuse("must be an object")),
    }
}

/// Converts the arguments of a call, but only the members that rules read: converting the others costs more than the
/// decision.
pub fn express_members(
    shape: &Shape,
    arguments: &Map<String, Value>,
    wanted: Option<&BTreeSet<String>>,
) -> Result<RestrictedExpression, Inexpressible> {
    match shape {
        Shape::Record(members) => record(members, arguments, wanted),
        _ => Err(refuse("has no members")),
    }
}

fn record(
    members: &BTreeMap<String, Member>,
    values: &Map<String, Value>,
    wanted: Option<&BTreeSet<String>>,
) -> Result<RestrictedExpression, Inexpressible> {
    let mut fields = Vec::with_capacity(wanted.map_or(members.len(), BTreeSet::len));
    for (name, member) in members {
        if wanted.is_some_and(|wanted| !wanted.contains(name)) {
            continue;
        }
        match values.get(name) {
            None | Some(Value::Null) if member.required => return Err(refuse("is missing").below(name)),
            None | Some(Value::Null) => {}
            Some(value) => {
                let field = express(&member.shape, value).map_err(|problem| problem.below(name))?;
                fields.push((name.clone(), field));
            }
        }
    }
    RestrictedExpression::new_record(fields).map_err(|_| refuse("has a duplicate member"))
}

fn set(item: &Shape, values: &[Value]) -> Result<RestrictedExpression, Inexpressible> {
    let mut items = Vec::with_capacity(values.len());
    for (position, value) in values.iter().enumerate().filter(|(_, value)| !value.is_null()) {
        items.push(express(item, value).map_err(|problem| problem.at(position))?);
    }
    Ok(RestrictedExpression::new_set(items))
}

/// An integer may be written as a double (`2.0`).
fn long(number: &Number) -> Result<i64, Inexpressible> {
    if let Some(integer) = number.as_i64() {
        return Ok(integer);
    }
    let whole = number.as_f64().filter(|_| number.is_f64()).and_then(|double| double.to_string().parse().ok());
    whole
        .filter(|integer: &i64| integer.unsigned_abs() <= EXACT_INTEGERS.unsigned_abs())
        .ok_or_else(|| refuse("must be a 64-bit integer"))
}

/// The decimal notation that Cedar parses: digits on both sides of the point, and no exponent.
fn decimal(number: &Number) -> Result<String, Inexpressible> {
    let mut text = match number.as_f64() {
        // Formatted without an exponent, unlike in JSON.
        Some(double) if number.is_f64() => double.to_string(),
        _ => number.to_string(),
    };
    if !text.contains('.') {
        text.push_str(".0");
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.len() > DECIMAL_DIGITS {
        return Err(refuse("must not have more than four decimal places"));
    }
    // Cedar stores a decimal as a 64-bit number of ten-thousandths.
    match format!("{whole}{fraction:0<DECIMAL_DIGITS$}").parse::<i64>() {
        Ok(_) => Ok(text),
        Err(_) => Err(refuse("is out of range for a decimal")),
    }
}

fn refuse(reason: &'static str) -> Inexpressible {
    Inexpressible { path: String::new(), reason }
}

impl Inexpressible {
    /// Prefixes the path with the name of a member.
    fn below(self, name: &str) -> Self {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            rest if rest.starts_with('[') => format!("{name}{rest}"),
            rest => format!("{name}.{rest}"),
        };
        Self { path, ..self }
    }

    /// Prefixes the path with a list index.
    fn at(self, position: usize) -> Self {
        let path = match self.path.as_str() {
            rest if rest.is_empty() || rest.starts_with('[') => format!("[{position}]{rest}"),
            rest => format!("[{position}].{rest}"),
        };
        Self { path, ..self }
    }
}
