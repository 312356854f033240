//! The most that a call can use, from its request.

use serde_json::Value;

use super::api::Api;
use super::prices::Row;
use super::sent::choices;
use super::usage::Usage;

/// How many bytes of text a token has at least, on average.
const BYTES_OF_TOKEN: u64 = 3;
/// What a picture, a page or a recording counts as.
const TOKENS_OF_MEDIUM: u64 = 5_000;
/// From here on a text is looked at to find out whether it is data of a medium.
const SHORTEST_MEDIUM: usize = 1024;

/// What a call uses at most; `None` if its answer has no bound.
pub(crate) fn most(api: Api, parameters: &Value, row: &Row) -> Option<Usage> {
    let output = match api.generates() {
        true => cap(api, parameters)?.checked_mul(choices(parameters))?,
        false => 0,
    };
    Some(Usage { output, ..input(parameters, row) })
}

/// What was used of a call whose answer says nothing about it.
pub(crate) fn without_usage(parameters: &Value, row: &Row, answered_bytes: u64) -> Usage {
    Usage { output: tokens(answered_bytes), ..input(parameters, row) }
}

/// How many tokens so many bytes of text are, rounded up.
fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_OF_TOKEN)
}

/// The tokens of a request, at the price of the dearest: nobody knows before what a cache has.
fn input(parameters: &Value, row: &Row) -> Usage {
    let weight = weigh(parameters, false);
    let tokens = tokens(weight.bytes).saturating_add(weight.media.saturating_mul(TOKENS_OF_MEDIUM));
    let dearest = row.dearest_input();
    let mut usage = Usage::default();
    match dearest {
        _ if dearest == row.input => usage.input = tokens,
        _ if dearest == row.cache_write => usage.cache_write = tokens,
        _ if dearest == row.cache_write_long => usage.cache_write_long = tokens,
        _ => usage.cache_read = tokens,
    }
    usage
}

/// The bound of the answer, if the request has one. Nobody knows which of two a provider keeps to.
pub(crate) fn cap(api: Api, parameters: &Value) -> Option<u64> {
    api.caps().iter().filter_map(|name| parameters.get(name)?.as_u64()).max()
}

#[derive(Default)]
struct Weight {
    bytes: u64,
    media: u64,
}

/// The text of a request, and how many media it has. `encoded` says that the object around declares base64.
fn weigh(value: &Value, encoded: bool) -> Weight {
    match value {
        Value::String(text) if is_medium(text, encoded) => Weight { bytes: 0, media: 1 },
        Value::String(text) => Weight { bytes: length(text) + 2, media: 0 },
        Value::Array(items) => items.iter().map(|item| weigh(item, encoded)).fold(Weight { bytes: 2, media: 0 }, add),
        Value::Object(members) => {
            let encoded = members.get("type").is_some_and(|kind| kind == "base64")
                || members.get("format").is_some_and(|format| format == "wav" || format == "mp3")
                || members.contains_key("file_data");
            let of = |(name, value): (&String, &Value)| {
                let inner = weigh(value, encoded);
                // An image is one, whether it is data or an address.
                let is_address = matches!(name.as_str(), "image_url" | "file_url" | "url") && inner.media == 0;
                Weight { bytes: inner.bytes + length(name) + 4, media: inner.media + u64::from(is_address) }
            };
            members.iter().map(of).fold(Weight { bytes: 2, media: 0 }, add)
        }
        _ => Weight { bytes: 8, media: 0 },
    }
}

fn add(left: Weight, right: Weight) -> Weight {
    Weight { bytes: left.bytes.saturating_add(right.bytes), media: left.media.saturating_add(right.media) }
}

fn is_medium(text: &str, encoded: bool) -> bool {
    let is_base64 = || text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte));
    text.len() >= SHORTEST_MEDIUM && (text.starts_with("data:") || (encoded && is_base64()))
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROW: Row = Row { input: 10, cache_read: 1, cache_write: 12, cache_write_long: 12, output: 50 };

    #[test]
    fn the_answer_is_bounded_by_the_largest_cap_for_each_choice() {
        let of = |request: Value| most(Api::Chat, &request, &ROW).map(|usage| usage.output);
        assert_eq!(of(json!({"max_tokens": 100})), Some(100));
        assert_eq!(of(json!({"max_tokens": 100, "max_completion_tokens": 50, "n": 3})), Some(300));
        assert_eq!(of(json!({})), None);
        assert_eq!(of(json!({"max_tokens": u64::MAX, "n": 2})), None);
        assert_eq!(most(Api::Embeddings, &json!({"input": "x"}), &ROW).map(|usage| usage.output), Some(0));
    }

    #[test]
    fn text_counts_by_its_bytes_and_a_picture_as_one() {
        let tokens = |request: Value| input(&request, &ROW).cache_write;
        let text = "word ".repeat(600);
        assert!(tokens(json!({"input": text})) >= 1_000);
        let picture = format!("data:image/png;base64,{}", "A".repeat(900_000));
        let pictured =
            tokens(json!({"messages": [{"content": [{"type": "image_url", "image_url": {"url": picture}}]}]}));
        assert!((TOKENS_OF_MEDIUM..TOKENS_OF_MEDIUM + 100).contains(&pictured), "{pictured}");
        let inline = json!({"source": {"type": "base64", "data": "A".repeat(900_000)}});
        assert!((TOKENS_OF_MEDIUM..TOKENS_OF_MEDIUM + 100).contains(&tokens(inline)));
        // Text that only claims to be data counts as text.
        let claimed = json!({"source": {"type": "base64", "data": "spoken words ".repeat(1_000)}});
        assert!(tokens(claimed) > 4_000);
        assert!(tokens(json!({"image_url": "https://example.test/a.png"})) >= TOKENS_OF_MEDIUM);
    }
}
