//! Everything that is served, in one router.

use std::sync::Arc;

use axum::Router;
use axum::routing::MethodRouter;
use http::Method;
use toolgate_gate::Gate;
use toolgate_gate::refusal::{Code, Refusal};

use crate::openintent::{self, error::Denied};
use crate::operations::metrics::Metrics;
use crate::operations::{self};

/// What the handlers share.
pub struct App {
    /// The gate.
    pub gate: Arc<Gate>,
    /// What is counted.
    pub metrics: Metrics,
    /// The largest body that is read, in bytes.
    pub max_body: usize,
}

/// One route. The list of them is what the router is made of and what tests go through.
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path, with placeholders in braces.
    pub path: &'static str,
    /// What answers it.
    pub handler: MethodRouter<Arc<App>>,
}

/// The routes that need a key: all but the probes and the metrics.
pub fn guarded_routes() -> Vec<Route> {
    openintent::routes()
}

/// The router over the gate.
pub fn router(app: Arc<App>) -> Router {
    let mut router: Router<Arc<App>> = Router::new();
    for route in guarded_routes().into_iter().chain(operations::routes()) {
        router = router.route(route.path, route.handler);
    }
    router
        .fallback(|| async {
            Denied::from(Refusal::new(Code::RouteNotFound, "there is nothing at this path; see docs/api.md"))
        })
        .method_not_allowed_fallback(|| async {
            Denied::from(Refusal::new(Code::MethodNotAllowed, "this path does not take this method; see docs/api.md"))
        })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app), operations::metrics::count))
        .with_state(app)
}
