//! Leases on parts of an intent.

use std::time::Duration;

use toolgate_api::work::leases::{AcquireLease, Lease, LeaseList, ListLeases, ReleaseLease, RenewLease};
use toolgate_gate::authority::work::NewLease;
use toolgate_model::work::{self, LeaseStatus};

use crate::mount::TypedRequest;
use crate::openintent::error::Denied;

/// As the Python client of OpenIntent has it.
const USUAL_SECONDS: u32 = 300;

pub(super) async fn list(request: TypedRequest<ListLeases>) -> Result<LeaseList, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let found = app.gate.work.leases(&caller, path).await?;
    Ok(LeaseList { leases: found.into_iter().map(shown).collect() })
}

pub(super) async fn acquire(request: TypedRequest<AcquireLease>) -> Result<Lease, Denied> {
    let TypedRequest { app, caller, path: intent, body, .. } = request;
    let scope = body.scope.as_str().to_owned();
    let new = NewLease { intent, scope, duration: duration(body.duration_seconds), agent: None };
    Ok(shown(app.gate.work.acquire_lease(&caller, new).await?))
}

pub(super) async fn renew(request: TypedRequest<RenewLease>) -> Result<Lease, Denied> {
    let TypedRequest { app, caller, path: (intent, lease), body, .. } = request;
    Ok(shown(app.gate.work.renew_lease(&caller, intent, lease, duration(body.duration_seconds)).await?))
}

pub(super) async fn release(request: TypedRequest<ReleaseLease>) -> Result<Lease, Denied> {
    let TypedRequest { app, caller, path: (intent, lease), .. } = request;
    Ok(shown(app.gate.work.end_lease(&caller, intent, lease).await?))
}

fn duration(seconds: Option<u32>) -> Duration {
    Duration::from_secs(u64::from(seconds.unwrap_or(USUAL_SECONDS)))
}

fn shown(lease: work::Lease) -> Lease {
    Lease {
        id: lease.id,
        intent_id: lease.intent,
        task_id: lease.task,
        agent_id: lease.agent,
        scope: lease.scope,
        released_at: lease.ended_at.filter(|_| lease.status == LeaseStatus::Released),
        status: lease.status,
        created_at: lease.created_at,
        acquired_at: lease.created_at,
        expires_at: lease.expires_at,
    }
}
