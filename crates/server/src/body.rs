//! Bodies: bounded, strict JSON, parsed into a typed value. An unknown field is refused by name, and no refusal repeats
//! a submitted value, since it may be a secret.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use http::request::Parts;
use http::{Extensions, HeaderMap, header};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::strict_json::{self, StrictJsonError};
use zeroize::Zeroizing;

use crate::limiter::BodyShare;
use crate::openintent::error::Denied;
use crate::router::App;

pub use toolgate_api::Nothing;
pub(crate) use toolgate_api::reading::Object;

/// The timeout for receiving a body.
const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Denied;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Denied> {
        Ok(Self(json(request, app.max_body).await?))
    }
}

/// Reads the JSON body of a request.
pub(crate) async fn json<T: DeserializeOwned>(request: Request, limit: usize) -> Result<T, Refusal> {
    json_or(request, limit, || None).await
}

/// Reads the JSON body of a request. An empty one counts as `absent()`, and is refused if that is `None`.
pub(crate) async fn json_or<T: DeserializeOwned>(
    request: Request,
    limit: usize,
    absent: fn() -> Option<T>,
) -> Result<T, Refusal> {
    let typed = is_json(request.headers());
    if absent().is_none() {
        typed.clone()?;
    }
    let bytes = read(request, limit).await?;
    match absent() {
        Some(absent) if bytes.is_empty() => Ok(absent),
        _ => typed.and_then(|()| parse(&bytes)),
    }
}

/// Reads the bytes of a body that must be declared as JSON by the head of its request.
pub(crate) async fn json_bytes(
    head: &Parts,
    body: axum::body::Body,
    limit: usize,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    is_json(&head.headers)?;
    read_all(&head.extensions, body, limit).await
}

fn is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::new(Code::UnsupportedMediaType, "send JSON, with the header `Content-Type: application/json`"))
}

/// Reads the bytes of a body, and waits for its turn to be parsed if it is large.
pub(crate) async fn read(request: Request, limit: usize) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let (head, body) = request.into_parts();
    read_all(&head.extensions, body, limit).await
}

async fn read_all(
    extensions: &Extensions,
    body: axum::body::Body,
    limit: usize,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let share = extensions.get::<Arc<BodyShare>>().cloned();
    let collected = tokio::time::timeout(TIMEOUT, collect(body, limit, share.as_deref())).await;
    let bytes = collected.map_err(|_| Refusal::new(Code::MalformedJson, "the body took too long to arrive"))??;
    if let Some(share) = share {
        share.parse(&bytes).await?;
    }
    Ok(bytes)
}

/// Reads up to the limit.
async fn collect(
    mut body: axum::body::Body,
    limit: usize,
    share: Option<&BodyShare>,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let mut bytes = Zeroizing::new(Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::new(Code::MalformedJson, "the body ended before it was complete"))?;
        let Ok(data) = frame.into_data() else { continue };
        let size = bytes.len().saturating_add(data.len());
        if size > limit {
            return Err(Refusal::new(Code::BodyTooLarge, format!("a body may have at most {limit} bytes")));
        }
        if let Some(share) = share {
            share.read(size)?;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let value = strict_json::parse(bytes).map_err(|error| malformed(&error))?;
    // A list of values in the right order would be read as the fields of a struct.
    if !value.is_object() {
        return Err(Refusal::new(Code::InvalidField, "the body must be a JSON object").with("path", "the body"));
    }
    // Keeping track of the path copies every name, so it is done only for a body that is refused.
    T::deserialize(value).or_else(|_| parse_tracking(bytes))
}

/// The same for a body that does not fit: the refusal names the path.
fn parse_tracking<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let value = strict_json::parse(bytes).map_err(|error| malformed(&error))?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        invalid_member(&path, &error.into_inner().to_string())
    })
}

fn malformed(error: &StrictJsonError) -> Refusal {
    Refusal::new(Code::MalformedJson, error.to_string())
}

/// Turns a message of the deserialiser into a refusal, leaving out whatever value it quotes.
pub(crate) fn invalid_member(path: &str, message: &str) -> Refusal {
    let place = if path.is_empty() || path == "." { "the body" } else { path };
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, expected) = rest.split_once("`, ").unwrap_or((rest, ""));
        let known = match expected.strip_prefix("expected ") {
            Some(fields) => format!("known are {}", fields.trim_start_matches("one of ")),
            None => "no fields are accepted".to_owned(),
        };
        return Refusal::new(Code::UnknownField, format!("`{name}` is not known here; {known}")).with("path", name);
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        let field = rest.trim_matches('`');
        return Refusal::new(Code::InvalidField, format!("`{field}` is missing")).with("path", field);
    }
    let quotes_a_value = message.starts_with("invalid ") || message.starts_with("unknown variant");
    let reason = match message.rsplit_once(", expected ") {
        Some((_, expected)) if quotes_a_value => format!("`{place}` must be {expected}"),
        _ if quotes_a_value => format!("`{place}` has the wrong type"),
        _ => format!("`{place}` {message}"),
    };
    Refusal::new(Code::InvalidField, reason).with("path", place)
}

#[cfg(test)]
mod tests {
    use toolgate_api::reading::optional_object;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the reading is of interest")]
    struct Sample {
        name: String,
        count: Option<u32>,
        #[serde(default, deserialize_with = "optional_object")]
        inner: Option<Inner>,
        #[serde(default)]
        several: Vec<Object<Inner>>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the reading is of interest")]
    struct Inner {
        depth: u32,
    }

    fn refused(text: &str) -> (Code, String) {
        let refusal = parse::<Sample>(text.as_bytes()).unwrap_err();
        (refusal.code(), refusal.reason().to_owned())
    }

    #[test]
    fn a_wrong_value_is_refused_by_its_path_and_not_repeated() {
        let (code, reason) = refused(r#"{"name": "a", "count": "sk_live_secret"}"#);
        assert_eq!((code, reason.as_str()), (Code::InvalidField, "`count` must be u32"));
    }

    #[test]
    fn unknown_and_missing_fields_are_named() {
        assert_eq!(
            refused(r#"{"name": "a", "cuont": 1}"#).1,
            "`cuont` is not known here; known are `name`, `count`, `inner`, `several`"
        );
        assert_eq!(refused("{}").1, "`name` is missing");
        let refusal = parse::<Nothing>(br#"{"force": true}"#).err().unwrap();
        assert_eq!(refusal.reason(), "`force` is not known here; no fields are accepted");
        assert_eq!(refused(r#"{"name": "a", "name": "b"}"#).0, Code::MalformedJson);
    }

    #[test]
    fn a_list_is_not_taken_for_an_object() {
        assert_eq!(refused(r#"["a", 1]"#), (Code::InvalidField, "the body must be a JSON object".to_owned()));
        assert_eq!(refused(r#"{"name": "a", "inner": [1]}"#).1, "`inner` must be an object");
        assert_eq!(refused(r#"{"name": "a", "inner": {"depth": "x"}}"#).1, "`inner.depth` must be u32");
        assert_eq!(refused(r#"{"name": "a", "inner": {"dept": 1}}"#).0, Code::UnknownField);
        assert_eq!(refused(r#"{"name": "a", "several": [[1]]}"#).1, "`several[0]` must be an object");
        assert_eq!(refused(r#"{"name": "a", "several": [null]}"#).1, "`several[0]` must be an object");
        for inner in ["null", r#"{"depth": 1}"#] {
            parse::<Sample>(format!(r#"{{"name": "a", "inner": {inner}}}"#).as_bytes()).unwrap();
        }
    }
}
