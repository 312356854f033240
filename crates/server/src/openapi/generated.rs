//! The documents as they follow from the endpoints, and the parts that are still written by hand.

use serde_json::{Map, Value, json};
use toolgate_api::document::merge;
use toolgate_api::{DocumentError, document};
use toolgate_gate::refusal::Code;
use toolgate_model::descriptor::ToolDescriptor;
use toolgate_model::openwop_event::RunEvent;

pub(super) const TOOLGATE_PARTS: [&str; 4] = [
    include_str!("../../openapi/common.json"),
    include_str!("../../openapi/tools.json"),
    include_str!("../../openapi/approvals.json"),
    include_str!("../../openapi/detached.json"),
];

pub(super) const OPENWOP_PARTS: [&str; 6] = [
    include_str!("../../openapi/openwop/common.json"),
    include_str!("../../openapi/openwop/discovery.json"),
    include_str!("../../openapi/openwop/tools.json"),
    include_str!("../../openapi/openwop/events.json"),
    include_str!("../../openapi/openwop/sessions.json"),
    include_str!("../../openapi/openwop/hooks.json"),
];

pub(super) fn toolgate() -> Result<Value, DocumentError> {
    document(base(&TOOLGATE_PARTS, json!({})), &toolgate_api::groups())
}

pub(super) fn openwop() -> Result<Value, DocumentError> {
    let schemas = json!({
        "ToolDescriptor": ToolDescriptor::schema(),
        "CompactToolDescriptor": ToolDescriptor::compact_schema(),
        "RunEvent": RunEvent::schema(),
    });
    document(base(&OPENWOP_PARTS, schemas), &[])
}

/// The hand-written parts, and what only the program knows.
fn base(parts: &[&str], schemas: Value) -> Value {
    let mut base = Value::Object(Map::new());
    for part in parts {
        merge(&mut base, serde_json::from_str(part).unwrap());
    }
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    merge(&mut base, json!({"info": {"version": env!("CARGO_PKG_VERSION")}, "components": {"schemas": schemas}}));
    merge(&mut base, json!({"components": {"schemas": {"ErrorCode": {"enum": codes}}}}));
    base
}
