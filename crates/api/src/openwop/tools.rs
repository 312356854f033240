//! The catalog of RFC 0078.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_model::descriptor::{CompactDescriptor, SourceKind, ToolDescriptor};

use crate::endpoint::endpoints;
use crate::parameters::{DescribedPath, PathText, inline_schema};

endpoints! {
    tag "tools" = "The catalog, as far as the caller may use it.";

    /// List the tools that the caller may invoke, by id
    ///
    /// An array, or an object with `tools` where the operator configured it so. With `view=compact` always an object.
    ListToolDescriptors = GET "/v1/tools" as "list_tool_descriptors" {
        query: CatalogQuery,
        reply: OK Catalog = "The tools.",
    }

    /// Show a tool that the caller may invoke
    ShowToolDescriptor = GET "/v1/tools/{toolId}" as "show_tool_descriptor" {
        path: PathText<ToolIdText>,
        query: ToolQuery,
        reply: OK Descriptor = "The tool.",
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogQuery {
    /// Only tools of this source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceKind>,
    /// What a model needs to call a tool, and no more (RFC 0112).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolQuery {
    /// What a model needs to call a tool, and no more (RFC 0112).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
}

/// The shown part of a tool, if it is not everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum View {
    Compact,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, deny_unknown_fields)]
pub enum Catalog {
    List(Vec<ToolDescriptor>),
    Object { tools: Vec<Descriptor> },
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Descriptor {
    Whole(ToolDescriptor),
    Compact(CompactDescriptor),
}

/// Text that should be the id of a tool.
pub struct ToolIdText;

inline_schema!(ToolIdText, "ToolIdText", json!({"type": "string", "minLength": 1}));

impl DescribedPath for ToolIdText {
    const DESCRIPTION: &'static str = "Such as `connector:stripe.charges.create`.";
}
