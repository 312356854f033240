//! Peer agents at `/a2a/{agent}`: A2A 1.0 and 0.3, over JSON-RPC and as HTTP and JSON. Requests are decoded into calls of the
//! tools of the peer's service, and their outcomes encoded; nothing is decided here.

use axum::routing::{delete, get, post};
use http::Method;

use crate::router::Route;

mod call;
mod card;
mod endpoint;
mod json_rpc;
mod outcome;
mod resource;
mod spoken;
mod stream;
mod version;

#[cfg(test)]
mod tests;

/// Below this path each peer has its address.
const PATH: &str = "/a2a";

/// The routes of this protocol, which need a key.
pub fn routes() -> Vec<Route> {
    vec![
        Route { method: Method::POST, path: "/a2a/{agent}", handler: post(endpoint::json_rpc) },
        Route { method: Method::GET, path: "/a2a/{agent}/{*resource}", handler: get(endpoint::resource) },
        Route { method: Method::POST, path: "/a2a/{agent}/{*resource}", handler: post(endpoint::resource) },
        Route { method: Method::DELETE, path: "/a2a/{agent}/{*resource}", handler: delete(endpoint::resource) },
    ]
}
