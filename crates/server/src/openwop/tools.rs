//! The catalog of RFC 0078: read only, as far as the caller may use it.

use toolgate_api::openwop::tools::{Catalog, Descriptor, ListToolDescriptors, ShowToolDescriptor, View};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::{ToolDescriptor, ToolId};

use super::ToolList;
use super::error::Flat;
use crate::mount::TypedRequest;

pub(super) async fn list(request: TypedRequest<ListToolDescriptors>) -> Result<Catalog, Flat> {
    let TypedRequest { app, caller, query, .. } = request;
    let tools = app.gate.administration.descriptors(&caller, query.source).await?;
    Ok(match (query.view, app.openwop.tool_list) {
        (None, ToolList::Array) => Catalog::List(tools.iter().map(|tool| ToolDescriptor::clone(tool)).collect()),
        (view, _) => Catalog::Object { tools: tools.iter().map(|tool| shown(tool, view)).collect() },
    })
}

pub(super) async fn show(request: TypedRequest<ShowToolDescriptor>) -> Result<Descriptor, Flat> {
    let TypedRequest { app, caller, path, query, .. } = request;
    // Text that is not an id is refused like a tool that does not exist.
    let missing = |_| Refusal::new(Code::ToolNotFound, "there is no such tool, or you may not use it");
    let id = ToolId::parse(&path.text).map_err(missing)?;
    let tool = app.gate.administration.descriptor(&caller, &id).await?;
    Ok(shown(&tool, query.view))
}

fn shown(tool: &ToolDescriptor, view: Option<View>) -> Descriptor {
    match view {
        Some(View::Compact) => Descriptor::Compact(tool.compact()),
        None => Descriptor::Whole(tool.clone()),
    }
}
