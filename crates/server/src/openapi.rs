//! The OpenAPI documents as they are served. They are files of the repository: a test generates them from the
//! declarations in `toolgate-api` and compares.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;

#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;

/// The API under `/api/v1` and for operators.
pub const TOOLGATE: &str = include_str!("../openapi/openapi.json");

/// The API under `/v1`.
pub const OPENWOP: &str = include_str!("../openapi/openwop.json");

pub(crate) async fn show_toolgate() -> Response {
    show(TOOLGATE)
}

pub(crate) async fn show_openwop() -> Response {
    show(OPENWOP)
}

fn show(document: &'static str) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Bytes::from_static(document.as_bytes())).into_response()
}
