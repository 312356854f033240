//! Other providers that a call is made at where one fails.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::credential::ServiceName;
use crate::service::DefinitionError;
use crate::service::reading::{Fields, object, parsed, refuse, text};

/// More than anybody has.
const LIMIT: usize = 8;
const MODELS: usize = 256;

/// Another provider, and what it calls the models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailOver {
    pub service: ServiceName,
    /// The name there of each model that has another one.
    pub models: BTreeMap<String, String>,
}

impl FailOver {
    pub(crate) fn list(value: &Value, path: &str) -> Result<Vec<Self>, DefinitionError> {
        let items = value.as_array().filter(|items| items.len() <= LIMIT);
        let items = items.ok_or_else(|| refuse(path, format!("must be a list of at most {LIMIT} providers")))?;
        items.iter().enumerate().map(|(number, item)| Self::from_json(item, &format!("{path}[{number}]"))).collect()
    }

    fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        if value.is_string() {
            return Ok(Self { service: parsed(ServiceName::parse)(value, path)?, models: BTreeMap::new() });
        }
        let fields = Fields::of(value, path, &["models", "service"])?;
        let models = fields.read("models", |value, path| {
            let members = object(value, path)?;
            if members.len() > MODELS {
                return Err(refuse(path, format!("has more than {MODELS} models")));
            }
            members.iter().map(|(name, value)| Ok((name.clone(), text(value, path)?.to_owned()))).collect()
        })?;
        Ok(Self { service: fields.need("service", parsed(ServiceName::parse))?, models: models.unwrap_or_default() })
    }

    pub(crate) fn to_json(&self) -> Value {
        if self.models.is_empty() {
            return json!(self.service);
        }
        let models: Map<String, Value> = self.models.iter().map(|(from, to)| (from.clone(), json!(to))).collect();
        json!({"service": self.service, "models": models})
    }

    /// What this provider calls a model.
    pub fn model<'a>(&'a self, name: &'a str) -> &'a str {
        self.models.get(name).map_or(name, String::as_str)
    }
}
