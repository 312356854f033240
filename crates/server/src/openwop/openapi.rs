//! The description of this protocol's routes, and of the hooks beside them, as an OpenAPI 3.1 document, put together once. The shapes of descriptors
//! and events come from where those are made.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use serde_json::{Value, json};
use toolgate_gate::refusal::Code;
use toolgate_model::descriptor::ToolDescriptor;
use toolgate_model::openwop_event::RunEvent;

use crate::openapi::assemble;

pub(crate) const PARTS: [&str; 6] = [
    include_str!("../../openapi/openwop/common.json"),
    include_str!("../../openapi/openwop/discovery.json"),
    include_str!("../../openapi/openwop/tools.json"),
    include_str!("../../openapi/openwop/events.json"),
    include_str!("../../openapi/openwop/sessions.json"),
    include_str!("../../openapi/openwop/hooks.json"),
];

static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));

/// Shows the document.
pub(super) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}

/// The whole document.
pub fn document() -> Value {
    let lists = json!({
        "components": {"schemas": {
            "ErrorCode": {"enum": Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()},
            "ToolDescriptor": ToolDescriptor::schema(),
            "CompactToolDescriptor": ToolDescriptor::compact_schema(),
            "RunEvent": RunEvent::schema(),
        }},
    });
    assemble(&PARTS, lists)
}
