//! Policies over HTTP: what is in force, its versions, changes to it, and what a draft or the past says about it.

use axum::routing::{MethodRouter, get, post, put};
use http::Method;

use crate::router::Route;

mod active;
mod changes;
mod files;
mod shapes;
mod trials;
mod versions;

/// Every route of this surface.
pub fn routes() -> Vec<Route> {
    let route = |method: Method, path: &'static str, handler: MethodRouter<_>| Route { method, path, handler };
    vec![
        route(Method::GET, "/api/v1/policies", get(active::show)),
        route(Method::PUT, "/api/v1/policies", put(changes::apply)),
        route(Method::POST, "/api/v1/policies/check", post(trials::check)),
        route(Method::POST, "/api/v1/policies/promote", post(changes::promote)),
        route(Method::POST, "/api/v1/policies/rollback", post(changes::roll_back)),
        route(Method::GET, "/api/v1/policies/schema", get(active::schema)),
        route(Method::GET, "/api/v1/policies/shadow", get(trials::shadow)),
        route(Method::POST, "/api/v1/policies/simulate", post(trials::simulate)),
        route(Method::GET, "/api/v1/policies/versions", get(versions::list)),
        route(Method::GET, "/api/v1/policies/versions/{version}", get(versions::show)),
        route(Method::GET, "/api/v1/runs/{run_id}/replay", get(trials::replay)),
    ]
}
