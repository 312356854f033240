//! OpenWOP types: descriptors of tools, and events.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{schema, schemas, words};
use crate::descriptor::{CompactDescriptor, SourceKind, ToolDescriptor};
use crate::openwop_event::RunEvent;

schemas! {
    ToolDescriptor => "ToolDescriptor" |_generator| ToolDescriptor::schema();
    CompactDescriptor => "CompactToolDescriptor" |_generator| ToolDescriptor::compact_schema();
    RunEvent => "RunEvent" |_generator| RunEvent::schema();
    SourceKind => "SourceKind" |_generator| json!({
        "type": "string",
        "description": "The source of a tool.",
        "enum": words(SourceKind::WORDS),
    });
}
