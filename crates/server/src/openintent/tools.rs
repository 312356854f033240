//! Discovery: which tools there are for whom (RFC-0014 §2.3 and §8.2).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::authority::discovery::GrantedTool;
use toolgate_gate::catalog::Tool;
use toolgate_model::constraint::Cost;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::PrincipalId;

use super::error::Denied;
use crate::caller::{Asked, Identified};
use crate::parameters::Id;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GrantedQuery {
    agent_id: Option<PrincipalId>,
}

pub(super) async fn list(State(app): State<Arc<App>>, Identified(caller): Identified) -> Result<Json<Value>, Denied> {
    let tools = app.gate.administration.tools(&caller, None).await?;
    Ok(Json(json!({"services": by_service(&tools)})))
}

pub(super) async fn of_service(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(service): Id<ServiceName>,
) -> Result<Json<Value>, Denied> {
    let tools = app.gate.administration.tools(&caller, Some(&service)).await?;
    Ok(Json(json!({"service": service, "services": by_service(&tools)})))
}

pub(super) async fn granted(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<GrantedQuery>,
) -> Result<Json<Value>, Denied> {
    let granted = app.gate.administration.granted_tools(&caller, query.agent_id.as_ref()).await?;
    let tools: Vec<Value> = granted.iter().map(granted_shape).collect();
    Ok(Json(json!({"agent_id": query.agent_id.as_ref().unwrap_or(caller.id()), "tools": tools})))
}

/// The tools in the shape of service definitions, one for each version.
fn by_service(tools: &[Arc<Tool>]) -> Vec<Value> {
    let mut services: Vec<(&Tool, Map<String, Value>)> = Vec::new();
    for tool in tools {
        let last = services.last_mut().filter(|(of, _)| of.service == tool.service && of.version == tool.version);
        match last {
            Some((_, members)) => {
                members.insert(tool.name.to_string(), tool_shape(tool));
            }
            None => services.push((tool, Map::from_iter([(tool.name.to_string(), tool_shape(tool))]))),
        }
    }
    let shape = |(of, tools): (&Tool, Map<String, Value>)| json!({"service": of.service, "version": of.version, "implicit": of.version.is_none(), "tools": tools});
    services.into_iter().map(shape).collect()
}

fn tool_shape(tool: &Tool) -> Value {
    let definition = &tool.definition;
    json!({
        "tool_id": tool.id(),
        "title": definition.title,
        "description": definition.description,
        "scope": definition.scope,
        "source": tool.source,
        "parameters": definition.parameters,
        "returns": definition.returns,
        "idempotent": definition.idempotent,
        "estimated_cost_usd": definition.estimated_cost.map(Cost::dollars),
        "safety_tier": definition.tier(),
        "approval": definition.approval,
        "required_scopes": definition.required_scopes,
        "egress": definition.egress,
        "replay_policy": definition.replay_policy,
        "cost_hint": definition.cost_hint,
        "latency_hint": definition.latency_hint,
        "rate_limit": definition.rate_limit,
    })
}

fn granted_shape(granted: &GrantedTool) -> Value {
    let held_grant = &granted.held_grant;
    let mut shape = json!({
        "grant_id": held_grant.grant(),
        "service": granted.tool.service,
        "tool": granted.tool.name,
        "version": granted.tool.version,
        "tool_id": granted.tool.id(),
        "name": granted.tool.service.with_tool(granted.tool.name.as_str()),
        "scope": granted.tool.definition.scope,
        "description": granted.tool.definition.description,
        "parameters": granted.tool.definition.parameters,
        "safety_tier": granted.tool.definition.tier(),
        "approval": granted.tool.definition.approval,
        "required_scopes": granted.tool.definition.required_scopes,
        "constraints": held_grant.effective.constraints.to_json(),
        "source": if held_grant.lineage.ancestors().is_empty() { "direct" } else { "delegated" },
        "context": held_grant.effective.context,
        "expires_at": held_grant.effective.expires_at,
    });
    if let (Some(above), Value::Object(members)) = (held_grant.lineage.ancestors().last(), &mut shape) {
        members.insert("delegated_from".to_owned(), json!(above.agent));
    }
    shape
}
