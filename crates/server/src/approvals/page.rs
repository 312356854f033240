//! The page of one-time links. It is the same for every link and contains no data: it asks for the person's key and
//! uses it with the same routes as any other client.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use toolgate_model::merkle::sha256;

#[cfg(test)]
mod tests;

const TEMPLATE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// The page and its policy, put together once.
struct Page {
    html: Bytes,
    policy: HeaderValue,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let html = TEMPLATE.replace("{{style}}", STYLE).replace("{{script}}", SCRIPT);
    Page { html: Bytes::from(html), policy: HeaderValue::try_from(policy()).unwrap_or(NOTHING) }
});

/// The policy if the real one cannot be written as a header.
const NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'");

/// Only our own script runs, and it connects only to this gate; the page cannot be framed and submits no form.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        sha256(SCRIPT.as_bytes()),
        sha256(STYLE.as_bytes())
    )
}

/// Shows the page, whatever the link is.
pub(super) async fn show() -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, PAGE.policy.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // The address of the page has the token in it.
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow")),
    ];
    (headers, PAGE.html.clone()).into_response()
}
