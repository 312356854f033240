//! The guarded fetch (OpenWOP RFC 0076 §B): a request as the caller wrote it, without any credential. The connector
//! decides where it may go; this checks only its form.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::connection::parse_address;
use crate::service::{HttpMethod, RenderedBody, RenderedRequest, check_fetch_header, check_header_value};

/// Invalid parameters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{parameter}` {reason}")]
pub struct FetchError {
    parameter: String,
    reason: String,
    /// Whether it requests a protocol upgrade.
    upgrade: bool,
}

impl FetchError {
    fn new(parameter: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { parameter: parameter.into(), reason: reason.into(), upgrade: false }
    }

    /// The invalid parameter.
    pub fn parameter(&self) -> &str {
        &self.parameter
    }

    /// Whether it requests a protocol upgrade.
    pub fn is_upgrade(&self) -> bool {
        self.upgrade
    }
}

/// The request of these parameters: `url`, and optionally `method`, `headers` and `body`.
pub fn request(parameters: &Value) -> Result<RenderedRequest, FetchError> {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str);
    let url = text("url").ok_or_else(|| FetchError::new("url", "is missing"))?;
    let url = parse_address(url).map_err(|reason| FetchError::new("url", reason))?;
    let method = HttpMethod::parse(text("method").unwrap_or("GET"));
    let method = method.ok_or_else(|| FetchError::new("method", "is not a supported method"))?;
    let nothing = Map::new();
    let given = parameters.get("headers").and_then(Value::as_object).unwrap_or(&nothing);
    let mut content_type = None;
    let mut headers: Vec<(String, String)> = Vec::with_capacity(given.len());
    for (name, value) in given {
        let value = value.as_str().unwrap_or_default();
        check_header(name, value)?;
        if headers.iter().any(|(other, _)| crate::service::is_same_header(other, name)) {
            return Err(FetchError::new(format!("headers.{name}"), "is a duplicate header"));
        }
        if name.eq_ignore_ascii_case("content-type") {
            content_type = Some(value.to_owned());
        } else {
            headers.push((name.clone(), value.to_owned()));
        }
    }
    let body = match text("body") {
        Some(_) if matches!(method, HttpMethod::Get | HttpMethod::Head) => {
            return Err(FetchError::new("body", "cannot be sent with GET or HEAD"));
        }
        Some(body) => Some(RenderedBody {
            content_type: content_type.map_or("text/plain; charset=utf-8".into(), Into::into),
            bytes: body.as_bytes().to_vec(),
        }),
        None if content_type.is_some() => {
            return Err(FetchError::new("headers.Content-Type", "requires a `body`; remove it"));
        }
        None => None,
    };
    Ok(RenderedRequest { method, url, headers, body })
}

fn check_header(name: &str, value: &str) -> Result<(), FetchError> {
    let wrong = |reason: String| FetchError::new(format!("headers.{name}"), reason);
    let of_upgrade = name.eq_ignore_ascii_case("upgrade")
        || name.eq_ignore_ascii_case("http2-settings")
        || (name.eq_ignore_ascii_case("connection") && value.to_ascii_lowercase().contains("upgrade"));
    if of_upgrade {
        return Err(FetchError {
            upgrade: true,
            ..wrong("requests a protocol upgrade, which a fetch does not support".to_owned())
        });
    }
    if !name.eq_ignore_ascii_case("content-type") {
        check_fetch_header(name).map_err(wrong)?;
    }
    check_header_value(value).map_err(|reason| wrong(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_what_was_written() {
        let parameters = json!({
            "url": "https://example.com/a?b=c", "method": "POST", "headers": {"X-Trace": "1", "Content-Type": "text/csv"},
            "body": "a,b"
        });
        let request = request(&parameters).unwrap();
        assert_eq!((request.method, request.url.as_str()), (HttpMethod::Post, "https://example.com/a?b=c"));
        assert_eq!(request.headers, [("X-Trace".to_owned(), "1".to_owned())]);
        let body = request.body.unwrap();
        assert_eq!((body.content_type.as_ref(), body.bytes.as_slice()), ("text/csv", b"a,b".as_slice()));
    }

    #[test]
    fn what_frames_or_routes_a_request_cannot_be_written() {
        let of = |headers: Value| request(&json!({"url": "https://example.com", "headers": headers}));
        for name in ["Host", "content-length", "Transfer-Encoding", "connection", "X-Forwarded-For", "Cookie2", "te"] {
            assert!(of(json!({name: "x"})).is_err(), "{name}");
        }
        assert!(of(json!({"X-A": "1\r\nHost: evil"})).is_err());
        assert!(of(json!({"X-A": "1", "x_a": "2"})).is_err(), "one header to some servers");
        assert!(of(json!({"Authorization": "Bearer own"})).is_ok(), "a caller may authenticate by its own means");
    }

    #[test]
    fn an_upgrade_is_refused_as_one() {
        for headers in [json!({"Connection": "keep-alive, Upgrade"}), json!({"Upgrade": "websocket"})] {
            let error = request(&json!({"url": "https://example.com", "headers": headers})).unwrap_err();
            assert!(error.is_upgrade());
        }
    }

    #[test]
    fn an_address_that_hides_something_is_refused() {
        for url in ["ftp://example.com", "https://user@example.com", "https://", "file:///etc/passwd", "https://a b"] {
            assert_eq!(request(&json!({"url": url})).unwrap_err().parameter(), "url");
        }
        assert_eq!(request(&json!({"url": "https://a.b", "body": "x"})).unwrap_err().parameter(), "body");
        let alone = json!({"url": "https://a.b", "headers": {"content-type": "text/csv"}});
        assert!(request(&alone).is_err(), "it would be dropped without a word");
    }
}
