//! The catalog of RFC 0078: read only, through the eyes of the caller.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::{CompactDescriptor, SourceKind, ToolDescriptor, ToolId};

use super::ToolList;
use super::caller::{Asked, PathName};
use super::error::Flat;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    source: Option<SourceKind>,
    view: Option<View>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowQuery {
    view: Option<View>,
}

/// What is shown of a tool, where it is not everything.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum View {
    /// RFC 0112.
    Compact,
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<ListQuery>,
) -> Result<Json<Value>, Flat> {
    let tools = app.gate.administration.descriptors(&caller, query.source).await?;
    Ok(Json(match (query.view, app.openwop.tool_list) {
        (Some(View::Compact), _) => {
            json!({"tools": tools.iter().map(|tool| tool.compact()).collect::<Vec<CompactDescriptor>>()})
        }
        (None, ToolList::Array) => json!(shapes(&tools)),
        (None, ToolList::Object) => json!({"tools": shapes(&tools)}),
    }))
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<ShowQuery>,
    PathName(id): PathName,
) -> Result<Json<Value>, Flat> {
    // What is no id names nothing, and is refused like what does not exist.
    let missing = |_| Refusal::new(Code::ToolNotFound, "there is no such tool, or none that you may use");
    let id = ToolId::parse(&id).map_err(missing)?;
    let tool = app.gate.administration.descriptor(&caller, &id).await?;
    Ok(Json(match query.view {
        Some(View::Compact) => json!(tool.compact()),
        None => json!(*tool),
    }))
}

fn shapes(tools: &[Arc<ToolDescriptor>]) -> Vec<&ToolDescriptor> {
    tools.iter().map(AsRef::as_ref).collect()
}
