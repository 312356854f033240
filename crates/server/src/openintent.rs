//! OpenIntent RFC-0014 under `/api/v1`: vaults, credentials, grants and delegation in the RFC's shapes and in those of its
//! Python SDK, and the administration that both leave open (agents, keys, tenants, the audit log).

use axum::routing::{MethodRouter, delete, get, patch, post, put};
use http::Method;

use crate::router::Route;

mod agents;
mod audit;
mod credentials;
mod detached;
pub mod error;
mod grants;
mod invocations;
mod invoke;
mod master_keys;
pub(crate) mod progress;
mod services;
mod shapes;
mod tenants;
mod tools;
mod vaults;
mod why;

/// Every route of this protocol.
pub fn routes() -> Vec<Route> {
    let route = |method: Method, path: &'static str, handler: MethodRouter<_>| Route { method, path, handler };
    vec![
        route(Method::POST, "/api/v1/tenants", post(tenants::create)),
        route(Method::GET, "/api/v1/tenants", get(tenants::list)),
        route(Method::GET, "/api/v1/tenants/{tenant_id}", get(tenants::show)),
        route(Method::GET, "/api/v1/whoami", get(agents::whoami)),
        route(Method::POST, "/api/v1/agents", post(agents::create)),
        route(Method::GET, "/api/v1/agents", get(agents::list)),
        route(Method::GET, "/api/v1/agents/{agent_id}", get(agents::show)),
        route(Method::PATCH, "/api/v1/agents/{agent_id}", patch(agents::update)),
        route(Method::DELETE, "/api/v1/agents/{agent_id}", delete(agents::remove)),
        route(Method::POST, "/api/v1/agents/{agent_id}/keys", post(agents::create_key)),
        route(Method::GET, "/api/v1/agents/{agent_id}/keys", get(agents::list_keys)),
        route(Method::GET, "/api/v1/agents/{agent_id}/grants", get(grants::of_agent)),
        route(Method::DELETE, "/api/v1/keys/{key_id}", delete(agents::revoke_key)),
        route(Method::POST, "/api/v1/vaults", post(vaults::create)),
        route(Method::GET, "/api/v1/vaults", get(vaults::list)),
        route(Method::GET, "/api/v1/vaults/{vault_id}", get(vaults::show)),
        route(Method::DELETE, "/api/v1/vaults/{vault_id}", delete(vaults::remove)),
        route(Method::POST, "/api/v1/vaults/{vault_id}/credentials", post(credentials::create_in_vault)),
        route(Method::GET, "/api/v1/vaults/{vault_id}/credentials", get(credentials::list)),
        route(Method::POST, "/api/v1/credentials", post(credentials::create)),
        route(Method::GET, "/api/v1/credentials/{credential_id}", get(credentials::show)),
        route(Method::DELETE, "/api/v1/credentials/{credential_id}", delete(credentials::revoke)),
        route(Method::PATCH, "/api/v1/credentials/{credential_id}/rotate", patch(credentials::rotate)),
        route(Method::POST, "/api/v1/credentials/{credential_id}/verify", post(credentials::verify)),
        route(Method::POST, "/api/v1/grants", post(grants::create)),
        route(Method::GET, "/api/v1/grants", get(grants::list)),
        route(Method::GET, "/api/v1/grants/{grant_id}", get(grants::show)),
        route(Method::DELETE, "/api/v1/grants/{grant_id}", delete(grants::revoke)),
        route(Method::GET, "/api/v1/grants/{grant_id}/tree", get(grants::tree)),
        route(Method::POST, "/api/v1/grants/{grant_id}/delegate", post(grants::delegate)),
        route(Method::PATCH, "/api/v1/grants/{grant_id}/suspend", patch(grants::suspend)),
        route(Method::PATCH, "/api/v1/grants/{grant_id}/resume", patch(grants::resume)),
        route(Method::POST, "/api/v1/services", post(services::create)),
        route(Method::GET, "/api/v1/services", get(services::list)),
        route(Method::GET, "/api/v1/services/{service}", get(services::show)),
        route(Method::PUT, "/api/v1/services/{service}", put(services::replace)),
        route(Method::DELETE, "/api/v1/services/{service}", delete(services::remove)),
        route(Method::GET, "/api/v1/tools", get(tools::list)),
        route(Method::GET, "/api/v1/tools/granted", get(tools::granted)),
        route(Method::GET, "/api/v1/tools/why", get(why::explain)),
        route(Method::GET, "/api/v1/tools/{service}", get(tools::of_service)),
        route(Method::POST, "/api/v1/tools/invoke", post(invoke::invoke)),
        route(Method::POST, "/api/v1/invocations", post(invocations::report)),
        route(Method::GET, "/api/v1/invocations", get(invocations::list)),
        route(Method::GET, "/api/v1/invocations/{invocation_id}", get(invocations::show)),
        route(Method::GET, "/api/v1/invocations/{invocation_id}/result", get(detached::result)),
        route(Method::DELETE, "/api/v1/invocations/{invocation_id}/result", delete(detached::forget)),
        route(Method::POST, "/api/v1/invocations/{invocation_id}/cancel", post(detached::cancel)),
        route(Method::GET, "/api/v1/detached-calls", get(detached::list)),
        route(Method::GET, "/api/v1/grants/{grant_id}/invocations", get(invocations::of_grant)),
        route(Method::GET, "/api/v1/intents/{intent_id}/invocations", get(invocations::of_intent)),
        route(Method::GET, "/api/v1/tasks/{task_id}/invocations", get(invocations::of_task)),
        route(Method::GET, "/api/v1/audit/events", get(audit::events)),
        route(Method::GET, "/api/v1/audit/head", get(audit::head)),
        route(Method::GET, "/api/v1/audit/proof", get(audit::proof)),
        route(Method::GET, "/api/v1/audit/export", get(audit::export)),
        route(Method::GET, "/api/v1/master-keys", get(master_keys::status)),
        route(Method::POST, "/api/v1/master-keys/rekey", post(master_keys::rekey)),
    ]
}
