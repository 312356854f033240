//! Calls of tool sessions.

use super::{Call, Pipeline};
use crate::refusal::{Code, Refusal};

impl Pipeline {
    /// Adds a call of a session to the session's run. The admission checks whether the session is open.
    pub(super) async fn join_session(&self, call: &mut Call) -> Result<(), Refusal> {
        let Some(id) = call.session else { return Ok(()) };
        let found = self.tool_sessions.session(call.caller.tenant(), id).await?;
        let Some(session) = found.filter(|session| session.principal == call.agent) else { return Ok(()) };
        if call.run.as_ref().is_some_and(|run| *run != session.run) {
            let reason = format!("session {id} belongs to another run; omit `context.run_id`");
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "context.run_id"));
        }
        call.run = Some(session.run);
        Ok(())
    }
}
