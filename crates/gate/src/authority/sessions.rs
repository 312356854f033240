//! Tool sessions (RFC 0078 §D): a multi-step use of a tool, with an event at its start and its end. A session that is
//! not closed ends by its deadline or at the next start.

use std::time::Duration;

use toolgate_model::descriptor::ToolId;
use toolgate_model::hook::RunId;
use toolgate_model::id::SessionId;
use toolgate_model::permission::Permission;

use super::Administration;
use crate::identify::Caller;
use crate::ports::ledger::{CloseSession, OpenSession, ToolSession};
use crate::refusal::{Code, Refusal};

/// The maximum lifetime of a session.
const LONGEST: Duration = Duration::from_secs(3600);
/// The default lifetime of a session.
const USUAL: Duration = Duration::from_secs(300);

/// A session to open.
pub struct SessionRequest {
    pub tool: ToolId,
    /// The run that it belongs to; `None` starts a new one.
    pub run: Option<RunId>,
    pub lifetime: Option<Duration>,
}

impl Administration {
    /// Opens a session of a tool that the caller may use.
    pub async fn open_session(&self, caller: &Caller, request: SessionRequest) -> Result<ToolSession, Refusal> {
        caller.require(Permission::InvokeTools)?;
        self.descriptor(caller, &request.tool).await?;
        self.open_session_of(caller, request.tool.as_str().to_owned(), request.run, request.lifetime).await
    }

    pub(crate) async fn open_session_of(
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
        let audit = caller.mandate(self.clock.now());
        let id = self.ids.make(audit.time(), SessionId::new)?;
        let unnamed = || {
            RunId::parse(&id.to_string()).map_err(|_| {
                Refusal::new(
                    Code::Internal,
                    "an id is not a valid \
            name",
                )
            })
        };
        let session = ToolSession {
            id,
            principal: caller.id().clone(),
            tool,
            run: run.map_or_else(unnamed, Ok)?,
            opened_at: audit.time(),
            expires_at: audit.time().plus(lifetime),
        };
        let most = self.settings.sessions_of_principal;
        self.tool_sessions.open_session(OpenSession { audit, session: session.clone(), most }).await?;
        Ok(session)
    }

    pub async fn session(&self, caller: &Caller, id: SessionId) -> Result<ToolSession, Refusal> {
        let found = self.tool_sessions.session(caller.tenant(), id).await?;
        let missing = || Refusal::new(Code::SessionNotFound, format!("there is no open session {id}"));
        found.filter(|session| session.principal == *caller.id()).ok_or_else(missing)
    }

    /// Closes a session of the caller.
    pub async fn close_session(&self, caller: &Caller, id: SessionId, completed: bool) -> Result<(), Refusal> {
        self.session(caller, id).await?;
        self.tool_sessions.close_session(CloseSession { audit: caller.mandate(self.clock.now()), id, completed }).await
    }
}
