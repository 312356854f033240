//! Sessions: the mode, the timeout and the attendance of a conversation.

use std::time::Duration;

use toolgate_api::approvals::{SessionTerms, SetApprovalSession, ShowApprovalSession};
use toolgate_gate::authority::approvals::SessionView;
use toolgate_gate::ports::ledger;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::Mode;

use crate::mount::TypedRequest;
use crate::openintent::error::Denied;

pub(super) async fn show(request: TypedRequest<ShowApprovalSession>) -> Result<SessionTerms, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(terms(app.gate.approvals.approval_session(&caller, &path).await?))
}

pub(super) async fn set(request: TypedRequest<SetApprovalSession>) -> Result<SessionTerms, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let mode = body.mode.as_deref().map(Mode::parse).transpose();
    let no_mode = "`mode` must be default, auto_edit or force";
    let mode = mode.map_err(|_| Refusal::new(Code::InvalidField, no_mode).with("path", "mode"))?;
    let wait = body.ttl_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
    let changes = ledger::SessionTerms { mode, wait, attendance: body.attendance };
    Ok(terms(app.gate.approvals.set_approval_session(&caller, path, changes).await?))
}

fn terms(session: SessionView) -> SessionTerms {
    SessionTerms {
        name: session.name,
        mode: session.mode,
        ttl_seconds: session.wait.as_secs(),
        attendance: session.attendance,
    }
}
