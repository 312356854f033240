//! Endpoints for operators: health, readiness, metrics and the API documents.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use toolgate_api::operations::{
    ClockStatus, Health, PartStatus, Readiness, ReadinessClock, ReadinessPart, ReadinessStatus, ShowHealth,
    ShowMetrics, ShowOpenApi, ShowOpenIntentDiscovery, ShowPage, ShowReadiness,
};
use toolgate_api::reply::{ErrorCode, Okay};
use toolgate_gate::refusal::{Code, Refusal};

use crate::mount::special;
use crate::openapi;
use crate::router::{App, Route};
use crate::shutdown::Phase;

/// The timeout of `/readyz` per component.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

mod about;
pub mod metrics;
pub mod tasks;

/// The routes that need no key: they reveal nothing about tenants.
pub fn routes() -> Vec<Route> {
    vec![
        special::<ShowPage, _, _>(about::page),
        special::<ShowOpenIntentDiscovery, _, _>(about::openintent),
        special::<ShowHealth, _, _>(health),
        special::<ShowReadiness, _, _>(readiness),
        special::<ShowMetrics, _, _>(metrics::show),
        special::<ShowOpenApi, _, _>(openapi::show_toolgate),
    ]
}

async fn health() -> Json<Health> {
    Json(Health { status: Okay::Value, version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// A probe must not wait to find out whether the gate is ready.
async fn within(check: impl Future<Output = Result<(), Refusal>>) -> Result<(), Refusal> {
    tokio::time::timeout(CHECK_TIMEOUT, check).await.unwrap_or_else(|_| {
        let reason = format!("no response within {} seconds", CHECK_TIMEOUT.as_secs());
        Err(Refusal::new(Code::LedgerUnavailable, reason))
    })
}

/// Ready if the ledger accepts writes, the key provider seals, nothing is sealed under a missing key, and the
/// background tasks run.
async fn readiness(State(app): State<Arc<App>>) -> Response {
    let ledger = app.gate.maintenance.check_ledger();
    let keys = async {
        app.gate.maintenance.check_key_provider().await?;
        app.gate.maintenance.check_sealed().await
    };
    let (ledger, keys) = tokio::join!(within(ledger), within(keys));
    let stopping = match app.shutdown.phase() {
        Phase::Serving => Ok(()),
        Phase::LameDuck | Phase::Draining => Err(Refusal::new(Code::Overloaded, "the gate is shutting down")),
    };
    let tasks = app.tasks.check();
    let ready = ledger.is_ok() && keys.is_ok() && tasks.is_ok() && stopping.is_ok();
    let body = Readiness {
        status: if ready { ReadinessStatus::Ready } else { ReadinessStatus::NotReady },
        ledger: part(ledger),
        key_provider: part(keys),
        tasks: part(tasks),
        shutdown: part(stopping),
        // Everything is served all the same: a step may be the correction of a wrong time.
        clock: ReadinessClock {
            status: if app.gate.clock.is_steady() { ClockStatus::Ok } else { ClockStatus::Stepped },
        },
    };
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(body)).into_response()
}

fn part(result: Result<(), Refusal>) -> ReadinessPart {
    match result {
        Ok(()) => ReadinessPart { status: PartStatus::Ok, code: None, message: None },
        Err(refusal) => ReadinessPart {
            status: PartStatus::Failed,
            code: Some(ErrorCode(refusal.code().as_str().to_owned())),
            message: Some(refusal.reason().to_owned()),
        },
    }
}
