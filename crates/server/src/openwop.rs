//! OpenWOP, major 1, under `/v1`: what this host can do, the catalog of RFC 0078, and the content-free trail of RFC 0064
//! as events, of the whole log or of one run. Toolgate runs no workflows; a run is what its callers tie calls together by.

use axum::routing::{MethodRouter, delete, get, post};
use http::Method;

use crate::openapi;
use crate::router::Route;

mod approval_gate;
mod caller;
mod conformance;
mod discovery;
pub mod error;
mod events;
mod reading;
mod runs;
mod sessions;
mod stream;
mod tools;

/// What an operator decides about this protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    /// How the list of tools looks.
    pub tool_list: ToolList,
    /// Whether the conformance endpoints are served.
    pub conformance: bool,
}

/// How the list of tools looks: the protocol's texts contradict each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolList {
    /// A bare array, as the conformance suite wants it.
    #[default]
    Array,
    /// An object with `tools`, as the prose of RFC 0078 §B says.
    Object,
}

/// The routes that need a key.
pub fn routes() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/tools", get(tools::list)),
        route(Method::GET, "/v1/tools/{toolId}", get(tools::show)),
        route(Method::POST, "/v1/runs", post(runs::create)),
        route(Method::GET, "/v1/runs/{runId}", get(runs::show)),
        route(Method::GET, "/v1/runs/{runId}/events", get(runs::events)),
        route(Method::GET, "/v1/runs/{runId}/events/poll", get(runs::poll)),
        route(Method::GET, "/v1/events", get(events::list)),
        route(Method::POST, "/v1/tool-sessions", post(sessions::open)),
        route(Method::GET, "/v1/tool-sessions/{sessionId}", get(sessions::show)),
        route(Method::DELETE, "/v1/tool-sessions/{sessionId}", delete(sessions::close)),
    ]
}

/// The routes of the conformance suite, which are there only where the operator says so.
pub fn conformance_routes() -> Vec<Route> {
    conformance::routes()
}

/// The routes that need no key: they tell nothing about tenants.
pub fn open_routes() -> Vec<Route> {
    vec![
        route(Method::GET, "/.well-known/openwop", get(discovery::show)),
        route(Method::GET, "/v1/openapi.json", get(openapi::show_openwop)),
    ]
}

fn route(method: Method, path: &'static str, handler: MethodRouter<std::sync::Arc<crate::App>>) -> Route {
    Route { method, path, handler }
}
