//! What is really sent to a provider for a request.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::api::Api;
use super::estimate::cap;

/// Adds what this gate needs: nothing is kept at the provider, a stream tells its usage, and an answer has a bound.
pub(crate) fn sent(api: Api, request: &Value, default_cap: Option<u64>) -> Cow<'_, Value> {
    let Some(members) = request.as_object() else { return Cow::Borrowed(request) };
    let mut added = Map::new();
    if api == Api::Responses && members.get("store") != Some(&Value::Bool(false)) {
        added.insert("store".to_owned(), Value::Bool(false));
    }
    if let (Api::Chat, true, false) = (api, streams(request), asks_for_usage(request)) {
        let mut options = members.get("stream_options").and_then(Value::as_object).cloned().unwrap_or_default();
        options.insert("include_usage".to_owned(), Value::Bool(true));
        added.insert("stream_options".to_owned(), Value::Object(options));
    }
    if let (Some(member), Some(bound), None) = (api.caps().first(), default_cap, cap(api, request)) {
        added.insert((*member).to_owned(), json!(bound));
    }
    if added.is_empty() {
        return Cow::Borrowed(request);
    }
    let mut members = members.clone();
    members.extend(added);
    Cow::Owned(Value::Object(members))
}

/// Whether the answer is to come as a stream.
pub(crate) fn streams(request: &Value) -> bool {
    request.get("stream") == Some(&Value::Bool(true))
}

/// Whether the client itself wants to know the usage of a stream.
pub(crate) fn asks_for_usage(request: &Value) -> bool {
    request.pointer("/stream_options/include_usage") == Some(&Value::Bool(true))
}

/// Whether the answer must have a given structure.
pub(crate) fn is_structured(request: &Value) -> bool {
    let kinds = ["/response_format/type", "/text/format/type", "/output_config/format/type"];
    let structured = |kind: &Value| kind.as_str().is_some_and(|kind| kind != "text");
    kinds.iter().filter_map(|kind| request.pointer(kind)).any(structured)
}

/// How many answers are asked for.
pub(crate) fn choices(request: &Value) -> u64 {
    request.get("n").and_then(Value::as_u64).unwrap_or(1).max(1)
}
