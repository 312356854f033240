//! Logging rules as JSON: `{default: "log", fields: {"customer": "hash", "metadata.note": "omit"}, inputs: true}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{FieldRule, LoggingRule};
use crate::constraint::ParameterPath;
use crate::service::DefinitionError;
use crate::service::reading::{Fields, flag, join, object, refuse, word};

/// More fields than any tool has.
const FIELD_LIMIT: usize = 256;
const RULES: [(&str, FieldRule); 3] = [("log", FieldRule::Log), ("hash", FieldRule::Hash), ("omit", FieldRule::Omit)];

impl LoggingRule {
    pub(in crate::service) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["default", "fields", "inputs"])?;
        let default = fields.read("default", |value, path| word(value, path, &RULES))?.unwrap_or_default();
        let inputs = fields.read("inputs", flag)?.unwrap_or_default();
        let fields = fields.read("fields", read_fields)?.unwrap_or_default();
        Ok(Self { default, fields, inputs })
    }

    /// `None` if there is no rule.
    pub(in crate::service) fn to_json(&self) -> Option<Value> {
        let mut members = Map::new();
        if self.default != FieldRule::default() {
            members.insert("default".to_owned(), Value::from(self.default.as_str()));
        }
        if !self.fields.is_empty() {
            let fields = self.fields.iter().map(|(path, rule)| (path.to_string(), Value::from(rule.as_str())));
            members.insert("fields".to_owned(), Value::Object(fields.collect()));
        }
        if self.inputs {
            members.insert("inputs".to_owned(), Value::Bool(true));
        }
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

impl FieldRule {
    fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Hash => "hash",
            Self::Omit => "omit",
        }
    }
}

fn read_fields(value: &Value, path: &str) -> Result<BTreeMap<ParameterPath, FieldRule>, DefinitionError> {
    let members = object(value, path)?;
    if members.len() > FIELD_LIMIT {
        return Err(refuse(path, format!("has more than {FIELD_LIMIT} fields")));
    }
    let mut fields = BTreeMap::new();
    for (name, value) in members {
        let path = join(path, name);
        let field = ParameterPath::parse(name).map_err(|error| refuse(&path, error.to_string()))?;
        fields.insert(field, word(value, &path, &RULES)?);
    }
    for field in fields.keys() {
        let covers = |(other, rule): &(&ParameterPath, &FieldRule)| {
            **rule != FieldRule::Log
                && field.as_str().strip_prefix(other.as_str()).is_some_and(|below| below.starts_with('.'))
        };
        if let Some((other, rule)) = fields.iter().find(covers) {
            let reason =
                format!("is part of `{other}`, which has the rule {} as a whole; remove one of the two", rule.as_str());
            return Err(refuse(&join(path, field.as_str()), reason));
        }
    }
    Ok(fields)
}
