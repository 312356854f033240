//! Parses documents: JSON or YAML 1.2.

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Options, UserMessageFormatter, budget, options};
use toolgate_model::{strict_json, strict_yaml};

pub(crate) const DOCUMENT_LIMIT: usize = 64 * 1024 * 1024;

/// Duplicate keys are refused.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    // JSON is also YAML, but the YAML parser is much slower.
    if text.trim_start().starts_with('{') {
        return strict_json::parse(text.as_bytes()).map_err(|error| error.to_string());
    }
    let read = serde_saphyr::from_str_with_options::<Value>(text, yaml());
    let value = read.map_err(|error| error.render_with_formatter(&UserMessageFormatter))?;
    strict_yaml::check_numbers(text).map_err(|error| error.to_string())?;
    Ok(value)
}

fn yaml() -> Options {
    options! {
        budget: budget! {
            max_events: 20_000_000,
            max_nodes: 10_000_000,
            max_depth: strict_json::MAX_DEPTH,
            flow_nesting_limit: strict_json::MAX_DEPTH,
            max_total_scalar_bytes: DOCUMENT_LIMIT,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        strict_booleans: true,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_and_json_are_read_as_the_same() {
        let yaml = "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses:\n        200: {description: \"yes\"}\n";
        let json = r#"{"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": {"description": "yes"}}}}}}"#;
        assert_eq!(parse(yaml), parse(json));
        assert_eq!(parse("a: yes").unwrap(), json!({"a": "yes"}));
    }

    #[test]
    fn a_number_that_would_lose_digits_is_refused_in_both() {
        for text in ["maximum: 18446744073709551616", r#"{"maximum": 18446744073709551616}"#] {
            assert!(parse(text).unwrap_err().contains("than can be represented exactly"), "{text}");
        }
        assert_eq!(parse("maximum: 18446744073709551615").unwrap(), json!({"maximum": u64::MAX}));
    }

    #[test]
    fn a_key_that_appears_twice_is_refused() {
        assert!(parse("a: 1\na: 2\n").is_err());
        assert!(parse(r#"{"a": 1, "a": 2}"#).is_err());
    }
}
