//! Tool sessions (RFC 0078 §D): opened before the first call of a multi-step use of a tool, closed after the last one.

use std::time::Duration;

use toolgate_api::openwop::sessions::{CloseSession, OpenSession, Session, SessionEnd, ShowSession};
use toolgate_gate::authority::sessions::SessionRequest;
use toolgate_gate::ports::ledger::ToolSession;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::descriptor::ToolId;
use toolgate_model::id::SessionId;

use super::error::Flat;
use crate::mount::TypedRequest;

pub(super) async fn open(request: TypedRequest<OpenSession>) -> Result<Session, Flat> {
    let TypedRequest { app, caller, body, .. } = request;
    let missing = |_| Refusal::new(Code::ToolNotFound, "there is no such tool, or you may not use it");
    let request = SessionRequest {
        tool: ToolId::parse(&body.tool_id).map_err(missing)?,
        run: body.run_id,
        lifetime: body.ttl_seconds.map(Duration::from_secs),
    };
    Ok(shown(app.gate.administration.open_session(&caller, request).await?))
}

pub(super) async fn show(request: TypedRequest<ShowSession>) -> Result<Session, Flat> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(shown(app.gate.administration.session(&caller, read(&path.text)?).await?))
}

pub(super) async fn close(request: TypedRequest<CloseSession>) -> Result<(), Flat> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let completed = query.outcome != Some(SessionEnd::Failed);
    Ok(app.gate.administration.close_session(&caller, read(&path.text)?, completed).await?)
}

fn read(id: &str) -> Result<SessionId, Refusal> {
    SessionId::parse(id).map_err(|_| Refusal::new(Code::SessionNotFound, "there is no such session"))
}

fn shown(session: ToolSession) -> Session {
    Session {
        session_id: session.id,
        tool_id: session.tool,
        run_id: session.run,
        opened_at: session.opened_at,
        expires_at: session.expires_at,
    }
}
