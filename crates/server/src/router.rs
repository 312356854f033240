//! Everything that is served, in one router.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use http::{HeaderMap, Method, Uri};
use toolgate_gate::Gate;
use toolgate_gate::refusal::{Code, Refusal};

use crate::a2a;
use crate::aos::{self, HookSettings};
use crate::approvals;
use crate::limiter::{BodyMemory, InFlightLimit, Limiter};
use crate::llm;
use crate::mcp::{self, Mcp};
use crate::openintent::{self, error::Denied};
use crate::openwop::{self, error::Flat};
use crate::operations::metrics::Metrics;
use crate::operations::tasks::Tasks;
use crate::operations::{self};
use crate::policies;
use crate::protected_resource::{self, ProtectedResource};
use crate::shutdown::Shutdown;

/// The state shared by handlers.
pub struct App {
    pub gate: Arc<Gate>,
    pub metrics: Arc<Metrics>,
    /// Limits the requests of one client, if configured.
    pub limiter: Option<Arc<Limiter>>,
    pub in_flight: Arc<InFlightLimit>,
    pub body_memory: Arc<BodyMemory>,
    /// The largest body that is read, in bytes.
    pub max_body: usize,
    /// How OpenWOP is spoken.
    pub openwop: openwop::Settings,
    /// The settings of the runtimes that send hook requests.
    pub hooks: HookSettings,
    /// How the Model Context Protocol is spoken.
    pub mcp: Mcp,
    /// Set if an issuer of access tokens is configured.
    pub protected_resource: Option<ProtectedResource>,
    /// How the background tasks are doing.
    pub tasks: Arc<Tasks>,
    pub shutdown: Arc<Shutdown>,
}

/// A route. The router and the tests use the same list.
pub struct Route {
    pub method: Method,
    /// With placeholders in braces.
    pub path: &'static str,
    pub handler: MethodRouter<Arc<App>>,
}

/// The routes under `/api/v1`, all of which need a key.
pub fn guarded_routes() -> Vec<Route> {
    openintent::routes().into_iter().chain(approvals::routes()).chain(policies::routes()).collect()
}

/// The router over the gate.
pub fn router(app: Arc<App>) -> Router {
    let mut router: Router<Arc<App>> = Router::new();
    let conformance = if app.openwop.conformance { openwop::conformance_routes() } else { Vec::new() };
    let openwop = openwop::routes().into_iter().chain(openwop::open_routes()).chain(conformance);
    let open = operations::routes().into_iter().chain(approvals::open_routes()).chain(protected_resource::routes());
    for route in guarded_routes()
        .into_iter()
        .chain(open)
        .chain(openwop)
        .chain(aos::routes())
        .chain(mcp::routes())
        .chain(llm::routes())
        .chain(a2a::routes())
    {
        router = router.route(route.path, route.handler);
    }
    router
        .fallback(|uri: Uri, headers: HeaderMap| async move {
            refused(&uri, &headers, Code::RouteNotFound, "there is nothing at this path")
        })
        .method_not_allowed_fallback(|uri: Uri, headers: HeaderMap| async move {
            refused(&uri, &headers, Code::MethodNotAllowed, "this path does not support this method")
        })
        .layer(from_fn_with_state(Arc::clone(&app), operations::metrics::count))
        .with_state(app)
}

/// A refusal in the format of the path's protocol.
fn refused(uri: &Uri, headers: &HeaderMap, code: Code, reason: &str) -> Response {
    if openwop::error::speaks_for(uri.path()) {
        return Flat::from(Refusal::new(code, format!("{reason}; see docs/openwop.md"))).into_response();
    }
    if llm::speaks_for(uri.path()) {
        // A path that the provider may have, and this gate does not, looks like a model that is not there.
        let vendor = llm::error::vendor_of(uri.path(), headers);
        return llm::error::Failure::not_there().response(vendor);
    }
    Denied::from(Refusal::new(code, format!("{reason}; see docs/api.md"))).into_response()
}
