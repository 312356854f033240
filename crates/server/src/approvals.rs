//! Approvals over HTTP: the inbox, the answers, what stands of them, and the stream of what happens. Decisions are made by
//! POST and by nothing else.

use axum::routing::{MethodRouter, delete, get, post, put};
use http::Method;

use crate::router::Route;

mod ask;
mod decide;
mod links;
mod page;
mod requests;
pub(crate) mod sessions;
pub(crate) mod shapes;
mod standing;
mod stream;

/// Every route of this surface.
pub fn routes() -> Vec<Route> {
    let route = |method: Method, path: &'static str, handler: MethodRouter<_>| Route { method, path, handler };
    vec![
        route(Method::GET, "/api/v1/approvals", get(requests::list)),
        route(Method::GET, "/api/v1/approvals/stream", get(stream::open)),
        route(Method::POST, "/api/v1/approvals/ask", post(ask::ask)),
        route(Method::GET, "/api/v1/approvals/{approval_id}", get(requests::show)),
        route(Method::POST, "/api/v1/approvals/{approval_id}/decide", post(decide::decide)),
        route(Method::POST, "/api/v1/approvals/links/{token}/redeem", post(links::redeem)),
        route(Method::GET, "/api/v1/standing-approvals", get(standing::list)),
        route(Method::POST, "/api/v1/standing-approvals/explain", post(standing::explain)),
        route(Method::GET, "/api/v1/standing-approvals/{standing_approval_id}", get(standing::show)),
        route(Method::DELETE, "/api/v1/standing-approvals/{standing_approval_id}", delete(standing::revoke)),
        route(Method::GET, "/api/v1/approval-sessions/{session}", get(sessions::show)),
        route(Method::PUT, "/api/v1/approval-sessions/{session}", put(sessions::set)),
    ]
}

/// The page that one-time links lead to, which needs no key and tells nothing.
pub fn open_routes() -> Vec<Route> {
    vec![Route { method: Method::GET, path: "/approvals/open/{token}", handler: get(page::show) }]
}
