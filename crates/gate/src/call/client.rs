//! The client of a call as its source reaches it: guardians see what a server asks and what the client sends back, like
//! every other message between the gate and a mounted server.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolgate_model::client_input::InputCapabilities;
use toolgate_model::guard::{Direction, HookDecision};

use super::{Admitted, Pipeline};
use crate::ports::client_link::{ClientLink, Unanswered};
use crate::ports::ledger::{Freshness, RecordDecision};
use crate::refusal::Refusal;

/// A client behind guardians.
pub(super) struct GuardedClient<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) admitted: &'a Admitted,
    pub(super) link: &'a dyn ClientLink,
}

impl std::fmt::Debug for GuardedClient<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GuardedClient").field("link", &self.link).finish_non_exhaustive()
    }
}

#[async_trait]
impl ClientLink for GuardedClient<'_> {
    fn capabilities(&self) -> InputCapabilities {
        self.link.capabilities()
    }

    async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Map<String, Value>, Unanswered> {
        let request = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.require_passed(Direction::Inbound, &request).await?;
        let result = self.link.ask(method, params).await?;
        let response = json!({"jsonrpc": "2.0", "result": result});
        self.require_passed(Direction::Outbound, &response).await?;
        Ok(result)
    }

    fn log(&self, params: Map<String, Value>) {
        self.link.log(params);
    }
}

impl GuardedClient<'_> {
    /// Refuses a message that guardians do not let pass. Their decision is recorded at once: the call goes on.
    async fn require_passed(&self, direction: Direction, message: &Value) -> Result<(), Unanswered> {
        let (passed, decision) = self.pipeline.pass_message(self.admitted, direction, message, Freshness::Recent).await;
        let recorded = match decision {
            Some(decision) => self.record(decision).await,
            None => Ok(()),
        };
        passed.and(recorded).map_err(|refusal| Unanswered::Denied { reason: refusal.reason().to_owned() })
    }

    async fn record(&self, decision: Box<HookDecision>) -> Result<(), Refusal> {
        let call = self.admitted.call();
        let decision = Box::new(HookDecision { invocation: Some(call.id), ..*decision });
        let (audit, agent) = (self.pipeline.audit(&call.caller), call.agent.clone());
        let record = RecordDecision { audit, agent, run: call.run.clone(), decision };
        self.pipeline.calls.record_decision(record).await
    }
}
