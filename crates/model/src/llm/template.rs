//! The definition of a provider as a service, with one tool for each of its APIs.

use serde_json::{Map, Value, json};

use super::api::{Api, Vendor};
use crate::step::{BETAS, VERSION};

/// The scope of all tools of a provider.
pub const SCOPE: &str = "models.call";
/// The bound of answers whose request has none.
const OUTPUT_TOKENS: u64 = 16_384;
/// Beta features that change how the model writes, and run nothing at the provider.
const HARMLESS_BETAS: [&str; 6] = [
    "claude-code-*",
    "extended-cache-ttl-*",
    "fine-grained-tool-streaming-*",
    "interleaved-thinking-*",
    "prompt-caching-*",
    "token-efficient-tools-*",
];

/// What is known of a provider.
#[derive(Debug, Clone)]
pub struct Template {
    pub service: String,
    pub vendor: Vendor,
    /// As the vendor's own clients are given it.
    pub base_url: String,
    pub version: String,
    /// The models that can be called; if empty, all.
    pub models: Vec<String>,
    /// As in the definition.
    pub prices: Option<Value>,
    /// Providers of the same vendor's API, in order.
    pub fail_over: Vec<String>,
}

impl Template {
    /// The definition, for the registry.
    pub fn definition(&self) -> Value {
        let apis: &[Api] = match self.vendor {
            Vendor::Anthropic => &[Api::Messages, Api::CountTokens],
            Vendor::OpenAi => &[Api::Chat, Api::Responses, Api::InputTokens, Api::Embeddings],
        };
        let tools: Map<String, Value> = apis.iter().map(|api| (api.as_str().to_owned(), self.tool(*api))).collect();
        json!({
            "service": self.service, "version": self.version, "base_url": self.base_url,
            "description": "Models, through their own API", "tools": tools,
        })
    }

    fn tool(&self, api: Api) -> Value {
        let mut step = Map::from_iter([("kind".to_owned(), json!("model")), ("api".to_owned(), json!(api.as_str()))]);
        if !self.models.is_empty() {
            step.insert("models".to_owned(), json!(self.models));
        }
        if let Some(prices) = self.prices.as_ref().filter(|_| !api.is_free()) {
            step.insert("prices".to_owned(), prices.clone());
        }
        if !self.fail_over.is_empty() {
            step.insert("fail_over".to_owned(), json!(self.fail_over));
        }
        if matches!(api, Api::Chat | Api::Responses) {
            step.insert("default_output_tokens".to_owned(), json!(OUTPUT_TOKENS));
        }
        let mut http =
            Map::from_iter([("method".to_owned(), json!("POST")), ("path".to_owned(), json!(self.path(api)))]);
        let (properties, required) = match self.vendor {
            Vendor::OpenAi => (json!({"model": {"type": "string"}, "stream": {"type": "boolean"}}), json!(["model"])),
            Vendor::Anthropic => {
                step.insert("betas".to_owned(), json!(HARMLESS_BETAS));
                let headers = json!({
                    BETAS: {"in": "header", "name": "anthropic-beta"},
                    VERSION: {"in": "header", "name": "anthropic-version"},
                });
                http.insert("parameters".to_owned(), headers);
                let properties = json!({
                    "model": {"type": "string"},
                    "stream": {"type": "boolean"},
                    BETAS: {"type": "string"},
                    VERSION: {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
                });
                (properties, json!(["model", VERSION]))
            }
        };
        json!({
            "description": format!("Calls a model through the API {}", api.as_str()),
            "scope": SCOPE,
            "safety_tier": "read",
            "labels": ["model"],
            "parameters": {"type": "object", "properties": properties, "required": required},
            "http": http,
            "step": step,
            // Nothing of what is said stays in the log, unless an operator says so here.
            "logging": {
                "default": "hash",
                "fields": {"model": "log", "stream": "log", "max_tokens": "log", "max_completion_tokens": "log",
                    "max_output_tokens": "log"},
            },
        })
    }

    fn path(&self, api: Api) -> String {
        // The base URL of one vendor's clients has the version, that of the other has not.
        let version = if self.vendor == Vendor::Anthropic { "/v1" } else { "" };
        format!("{version}{}", api.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ServiceDefinition;

    #[test]
    fn a_template_is_a_valid_definition_whose_log_has_no_content() {
        for vendor in [Vendor::Anthropic, Vendor::OpenAi] {
            let template = Template {
                service: "models".to_owned(),
                vendor,
                base_url: "https://models.example".to_owned(),
                version: "1".to_owned(),
                models: vec!["large".to_owned()],
                prices: Some(json!({"large": {"input": "1", "output": "2"}})),
                fail_over: vec!["other".to_owned()],
            };
            let definition = ServiceDefinition::from_json(&template.definition()).unwrap();
            for tool in definition.tools.values() {
                let said = json!({"model": "large", "messages": [{"role": "user", "content": "a secret plan"}],
                    "input": "a secret plan", "system": "a secret plan", "tools": [{"name": "a secret plan"}]});
                let summary = Value::Object(tool.summary(said.as_object().unwrap())).to_string();
                assert!(summary.contains("large") && !summary.contains("secret"), "{summary}");
            }
        }
    }
}
