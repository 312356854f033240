//! Tool sessions (RFC 0078 §D): a multi-step use of a tool, with an event at each end of it. One that is not brought to
//! its end is closed by the clock, or at the next start.

use std::time::Duration;

use toolgate_model::descriptor::ToolId;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::permission::Permission;

use super::Call;
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::ledger::{CloseSession, OpenSession, ToolSession};
use crate::refusal::{Code, Refusal};

/// The longest that a session may be open.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long one is open that does not say.
const USUAL: Duration = Duration::from_secs(300);

/// A session to be opened.
pub struct SessionRequest {
    /// Of which tool.
    pub tool: ToolId,
    /// The execution that it belongs to; `None` is one of its own.
    pub run: Option<RunId>,
    /// How long it may be open.
    pub lifetime: Option<Duration>,
}

impl Gate {
    /// Opens a session of a tool that the caller may use.
    pub async fn open_session(&self, caller: &Caller, request: SessionRequest) -> Result<ToolSession, Refusal> {
        caller.require(Permission::InvokeTools)?;
        self.descriptor(caller, &request.tool).await?;
        self.open_session_of(caller, request.tool.as_str().to_owned(), request.run, request.lifetime).await
    }

    pub(super) async fn open_session_of(
        &self,
        caller: &Caller,
        tool: String,
        run: Option<RunId>,
        lifetime: Option<Duration>,
    ) -> Result<ToolSession, Refusal> {
        let lifetime = lifetime.unwrap_or(USUAL);
        if lifetime.is_zero() || lifetime > LONGEST {
            let reason = format!("a session may be open for 1 to {} seconds", LONGEST.as_secs());
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "ttlSeconds"));
        }
        let stamp = self.mandate(caller);
        let id = self.ids.make(stamp.time(), SessionId::new)?;
        let unnamed = || RunId::parse(&id.to_string()).map_err(|_| Refusal::new(Code::Internal, "an id is no name"));
        let session = ToolSession {
            id,
            principal: caller.id().clone(),
            tool,
            run: run.map_or_else(unnamed, Ok)?,
            opened_at: stamp.time(),
            expires_at: stamp.time().plus(lifetime),
        };
        let most = self.settings.sessions_of_principal;
        self.ledger.open_session(OpenSession { stamp, session: session.clone(), most }).await?;
        Ok(session)
    }

    /// An open session of the caller.
    pub async fn session(&self, caller: &Caller, id: SessionId) -> Result<ToolSession, Refusal> {
        let found = self.ledger.session(caller.tenant(), id).await?;
        let missing = || Refusal::new(Code::SessionNotFound, format!("there is no open session {id}"));
        found.filter(|session| session.principal == *caller.id()).ok_or_else(missing)
    }

    /// Brings a session of the caller to its end.
    pub async fn close_session(&self, caller: &Caller, id: SessionId, completed: bool) -> Result<(), Refusal> {
        self.session(caller, id).await?;
        self.ledger.close_session(CloseSession { stamp: self.mandate(caller), id, completed }).await
    }

    /// Makes a call of a session part of its execution. Whether it is open is decided when the call is admitted.
    pub(super) async fn join_session(&self, call: &mut Call) -> Result<(), Refusal> {
        let Some(id) = call.session else { return Ok(()) };
        let found = self.ledger.session(call.caller.tenant(), id).await?;
        let Some(session) = found.filter(|session| session.principal == call.agent) else { return Ok(()) };
        if call.run.as_ref().is_some_and(|run| *run != session.run) {
            let reason = format!("session {id} belongs to another run; leave `context.run_id` out");
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "context.run_id"));
        }
        call.run = Some(session.run);
        Ok(())
    }

    /// Closes the sessions that nobody brings to their end.
    pub async fn close_sessions(&self) -> Result<u64, Refusal> {
        if !self.clock.is_steady() {
            return Ok(0);
        }
        self.ledger.close_sessions(self.clock.now()).await
    }
}
