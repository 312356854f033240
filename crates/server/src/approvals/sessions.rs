//! Sessions: the mode, the timeout and the attendance of a conversation.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::authority::approvals::SessionView;
use toolgate_gate::ports::ledger::SessionTerms;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Attendance, Mode, SessionName, Workspace};

use crate::body::Body;
use crate::caller::Identified;
use crate::openintent::error::Denied;
use crate::parameters::Id;
use crate::router::App;

/// The session of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionBody {
    pub(crate) name: SessionName,
    pub(crate) workspace: Option<Workspace>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TermsBody {
    mode: Option<String>,
    ttl_seconds: Option<u32>,
    attendance: Option<Attendance>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(name): Id<SessionName>,
) -> Result<Json<Value>, Denied> {
    Ok(Json(shape(&app.gate.approvals.approval_session(&caller, &name).await?)))
}

pub(super) async fn set(
    State(app): State<Arc<App>>,
    Identified(caller): Identified,
    Id(name): Id<SessionName>,
    Body(body): Body<TermsBody>,
) -> Result<Json<Value>, Denied> {
    let mode = body.mode.as_deref().map(Mode::parse).transpose();
    let no_mode = "`mode` must be default, auto_edit or force";
    let mode = mode.map_err(|_| Refusal::new(Code::InvalidField, no_mode).with("path", "mode"))?;
    let wait = body.ttl_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
    let changes = SessionTerms { mode, wait, attendance: body.attendance };
    Ok(Json(shape(&app.gate.approvals.set_approval_session(&caller, name, changes).await?)))
}

fn shape(session: &SessionView) -> Value {
    json!({
        "name": session.name,
        "mode": session.mode,
        "ttl_seconds": session.wait.as_secs(),
        "attendance": session.attendance,
    })
}
