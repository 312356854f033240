//! The description of what is served under `/api/v1` and to operators, as an OpenAPI 3.1 document, put together once.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header;
use serde_json::{Value, json};
use toolgate_gate::refusal::Code;
use toolgate_model::permission::Permission;

use crate::openapi::assemble;

pub(crate) const PARTS: [&str; 15] = [
    include_str!("../../openapi/common.json"),
    include_str!("../../openapi/tenants.json"),
    include_str!("../../openapi/agents.json"),
    include_str!("../../openapi/vaults.json"),
    include_str!("../../openapi/credentials.json"),
    include_str!("../../openapi/grants.json"),
    include_str!("../../openapi/services.json"),
    include_str!("../../openapi/tools.json"),
    include_str!("../../openapi/approvals.json"),
    include_str!("../../openapi/policies.json"),
    include_str!("../../openapi/invocations.json"),
    include_str!("../../openapi/detached.json"),
    include_str!("../../openapi/audit.json"),
    include_str!("../../openapi/master_keys.json"),
    include_str!("../../openapi/operations.json"),
];

static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));

/// Shows the document.
pub async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}

/// The whole document.
pub fn document() -> Value {
    let lists = json!({
        "components": {"schemas": {
            "ErrorCode": {"enum": Code::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()},
            "Permission": {"enum": Permission::ALL},
        }},
    });
    assemble(&PARTS, lists)
}
