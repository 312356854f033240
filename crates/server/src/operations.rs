//! What operators look at: is it alive, is it ready, what does it count, what does it serve.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{Method, StatusCode};
use serde_json::json;
use toolgate_gate::refusal::{Code, Refusal};

use crate::openapi;
use crate::router::{App, Route};
use crate::shutdown::Phase;

/// How long `/readyz` waits for each part.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

mod about;
pub mod metrics;
pub mod tasks;

/// The routes that need no key: they tell nothing about tenants.
pub fn routes() -> Vec<Route> {
    vec![
        Route { method: Method::GET, path: "/", handler: get(about::page) },
        Route { method: Method::GET, path: "/.well-known/openintent.json", handler: get(about::openintent) },
        Route { method: Method::GET, path: "/healthz", handler: get(health) },
        Route { method: Method::GET, path: "/readyz", handler: get(readiness) },
        Route { method: Method::GET, path: "/metrics", handler: get(metrics::show) },
        Route { method: Method::GET, path: "/openapi.json", handler: get(openapi::show_toolgate) },
    ]
}

async fn health() -> Json<serde_json::Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

/// A probe that waits is no answer to whether the gate is ready.
async fn within(check: impl Future<Output = Result<(), Refusal>>) -> Result<(), Refusal> {
    tokio::time::timeout(CHECK_TIMEOUT, check).await.unwrap_or_else(|_| {
        let reason = format!("there was no answer within {} seconds", CHECK_TIMEOUT.as_secs());
        Err(Refusal::new(Code::LedgerUnavailable, reason))
    })
}

/// Ready when the ledger takes writes, the key provider seals, nothing is sealed under a key that is gone, and the
/// background tasks run.
async fn readiness(State(app): State<Arc<App>>) -> Response {
    let ledger = app.gate.check_ledger();
    let keys = async {
        app.gate.check_key_provider().await?;
        app.gate.check_sealed().await
    };
    let (ledger, keys) = tokio::join!(within(ledger), within(keys));
    let stopping = match app.shutdown.phase() {
        Phase::Serving => Ok(()),
        Phase::LameDuck | Phase::Draining => Err(Refusal::new(Code::Overloaded, "the gate is about to stop")),
    };
    let tasks = app.tasks.check();
    let ready = ledger.is_ok() && keys.is_ok() && tasks.is_ok() && stopping.is_ok();
    let part = |result: &Result<(), Refusal>| match result {
        Ok(()) => json!({"status": "ok"}),
        Err(refusal) => json!({"status": "failed", "code": refusal.code().as_str(), "message": refusal.reason()}),
    };
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "status": if ready { "ready" } else { "not ready" },
        "ledger": part(&ledger),
        "key_provider": part(&keys),
        "tasks": part(&tasks),
        "shutdown": part(&stopping),
        // Everything is served all the same: a step may be the correction of a wrong time.
        "clock": if app.gate.has_steady_clock() { json!({"status": "ok"}) } else { json!({"status": "stepped"}) },
    });
    (status, Json(body)).into_response()
}
