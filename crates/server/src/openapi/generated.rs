//! The documents as they follow from the declarations of the endpoints.

use serde_json::Value;
use toolgate_api::{DocumentError, openwop_document, toolgate_document};
use toolgate_gate::refusal::Code;

pub(super) fn toolgate() -> Result<Value, DocumentError> {
    toolgate_document(env!("CARGO_PKG_VERSION"), &codes())
}

pub(super) fn openwop() -> Result<Value, DocumentError> {
    openwop_document(env!("CARGO_PKG_VERSION"), &codes())
}

fn codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}
