//! How many tokens a call used, as the provider reports it.

use serde_json::Value;

use super::api::{Api, Vendor};

/// The tokens of a call, by price. They do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read for the first time and kept in no cache.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Kept in a cache for longer than usual.
    pub cache_write_long: u64,
    /// Written, with everything that the model has thought.
    pub output: u64,
}

impl Usage {
    /// Reads the usage of an answer; `None` if it has none that can be understood.
    pub fn read(api: Api, answer: &Value) -> Option<Self> {
        let usage = answer.get("usage").filter(|usage| usage.is_object())?;
        let count = |pointer: &str| usage.pointer(pointer).and_then(count);
        match (api.vendor(), api) {
            // Here the input has neither what was read from a cache nor what was written to one.
            (Vendor::Anthropic, _) => {
                let written = count("/cache_creation_input_tokens").unwrap_or(0);
                let long = count("/cache_creation/ephemeral_1h_input_tokens").unwrap_or(0).min(written);
                Some(Self {
                    input: count("/input_tokens")?,
                    cache_read: count("/cache_read_input_tokens").unwrap_or(0),
                    cache_write: written - long,
                    cache_write_long: long,
                    output: count("/output_tokens")?,
                })
            }
            // Here it has both.
            (Vendor::OpenAi, Api::Responses) => Some(Self::included(
                count("/input_tokens")?,
                count("/input_tokens_details/cached_tokens"),
                count("/input_tokens_details/cache_write_tokens"),
                count("/output_tokens")?,
            )),
            (Vendor::OpenAi, _) => Some(Self::included(
                count("/prompt_tokens")?,
                count("/prompt_tokens_details/cached_tokens"),
                count("/prompt_tokens_details/cache_write_tokens"),
                // An embedding has none.
                count("/completion_tokens").unwrap_or(0),
            )),
        }
    }

    fn included(input: u64, read: Option<u64>, written: Option<u64>, output: u64) -> Self {
        let cache_read = read.unwrap_or(0).min(input);
        let cache_write = written.unwrap_or(0).min(input - cache_read);
        Self { input: input - cache_read - cache_write, cache_read, cache_write, cache_write_long: 0, output }
    }
}

/// A count, or the sum of several by kind.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Object(kinds) => kinds.values().try_fold(0_u64, |sum, kind| sum.checked_add(kind.as_u64()?)),
        one => one.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_tokens_are_counted_once_whatever_the_vendor_includes() {
        let chat = json!({"usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details":
            {"cached_tokens": 60, "cache_write_tokens": {"short": 5, "long": 5}}}});
        let of_chat = Usage { input: 30, cache_read: 60, cache_write: 10, cache_write_long: 0, output: 7 };
        assert_eq!(Usage::read(Api::Chat, &chat), Some(of_chat));
        let responses = json!({"usage": {"input_tokens": 100, "output_tokens": 7,
            "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10}}});
        assert_eq!(Usage::read(Api::Responses, &responses), Some(of_chat));
        let messages = json!({"usage": {"input_tokens": 30, "cache_read_input_tokens": 60, "output_tokens": 7,
            "cache_creation_input_tokens": 10, "cache_creation": {"ephemeral_1h_input_tokens": 4}}});
        let of_messages = Usage { input: 30, cache_read: 60, cache_write: 6, cache_write_long: 4, output: 7 };
        assert_eq!(Usage::read(Api::Messages, &messages), Some(of_messages));
    }

    #[test]
    fn an_answer_without_usage_has_none_rather_than_zero() {
        for answer in [json!({}), json!({"usage": null}), json!({"usage": {}}), json!({"usage": {"prompt_tokens": -1}})]
        {
            for api in [Api::Chat, Api::Responses, Api::Messages] {
                assert_eq!(Usage::read(api, &answer), None, "{answer}");
            }
        }
    }
}
