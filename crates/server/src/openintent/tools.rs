//! Discovery of tools (RFC-0014 §2.3 and §8.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_api::grants::GrantSource;
use toolgate_api::tools::{
    GrantedTool, GrantedTools, ListGrantedTools, ListTools, ListToolsOfService, ServiceTools, Tool, ToolList,
    ToolsOfService,
};
use toolgate_gate::authority::discovery;
use toolgate_gate::catalog;

use super::error::Denied;
use crate::mount::TypedRequest;

pub(super) async fn list(request: TypedRequest<ListTools>) -> Result<ToolList, Denied> {
    let TypedRequest { app, caller, .. } = request;
    let tools = app.gate.administration.tools(&caller, None).await?;
    Ok(ToolList { services: by_service(&tools) })
}

pub(super) async fn of_service(request: TypedRequest<ListToolsOfService>) -> Result<ToolsOfService, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let tools = app.gate.administration.tools(&caller, Some(&path)).await?;
    Ok(ToolsOfService { service: path, services: by_service(&tools) })
}

pub(super) async fn granted(request: TypedRequest<ListGrantedTools>) -> Result<GrantedTools, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let granted = app.gate.administration.granted_tools(&caller, query.agent_id.as_ref()).await?;
    let agent_id = query.agent_id.unwrap_or_else(|| caller.id().clone());
    Ok(GrantedTools { agent_id, tools: granted.iter().map(granted_tool).collect() })
}

/// The tools in the shape of service definitions, one for each version.
fn by_service(tools: &[Arc<catalog::Tool>]) -> Vec<ServiceTools> {
    let mut services: Vec<ServiceTools> = Vec::new();
    for tool in tools {
        let shown = Tool::new(tool.id(), tool.source, &tool.definition);
        let last = services.last_mut().filter(|of| of.service == tool.service && of.version == tool.version);
        match last {
            Some(service) => {
                service.tools.insert(tool.name.clone(), shown);
            }
            None => services.push(ServiceTools {
                service: tool.service.clone(),
                version: tool.version.clone(),
                implicit: tool.version.is_none(),
                tools: BTreeMap::from([(tool.name.clone(), shown)]),
            }),
        }
    }
    services
}

fn granted_tool(granted: &discovery::GrantedTool) -> GrantedTool {
    let (held_grant, tool) = (&granted.held_grant, &granted.tool);
    let above = held_grant.lineage.ancestors().last();
    let environment =
        held_grant.credential.metadata.get_key_value("environment").filter(|(_, value)| value.is_string());
    GrantedTool {
        grant_id: held_grant.grant(),
        service: tool.service.clone(),
        tool: tool.name.clone(),
        version: tool.version.clone(),
        tool_id: tool.id(),
        name: tool.service.with_tool(tool.name.as_str()),
        alias: tool.alias().to_string(),
        scope: tool.definition.scope.clone(),
        description: tool.definition.description.clone(),
        parameters: tool.definition.parameters.clone(),
        safety_tier: tool.definition.tier(),
        approval: tool.definition.approval,
        required_scopes: tool.definition.required_scopes.clone(),
        constraints: held_grant.effective.constraints.to_json(),
        source: if above.is_none() { GrantSource::Direct } else { GrantSource::Delegated },
        context: held_grant.effective.context.clone(),
        expires_at: held_grant.effective.expires_at,
        metadata: environment.map(|(name, value)| (name.clone(), value.clone())).into_iter().collect(),
        delegated_from: above.map(|grant| grant.agent.clone()),
    }
}
