//! Guardians on the messages between the gate and mounted MCP servers, besides the hooks of tools. They see the message
//! without what belongs to the connection, and let it pass or not: to change a call they have the hooks of tools.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolgate_model::client_input::STATE;
use toolgate_model::guard::{Ask, Content, Direction, Hook, HookDecision, Verdict};

use super::eligible::{Candidate, EligibleGrant};
use super::{Admitted, Call, Pipeline, admit, guard};
use crate::action::Action;
use crate::ports::guardian::{Hooked, Ruling};
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// What guardians said about a message: the approvals that they ask for, or why it is refused.
pub(super) type Passed = (Result<Vec<Ask>, Refusal>, Option<Box<HookDecision>>);

impl Pipeline {
    /// Asks about the request that a call comes to, where it goes to a mounted server.
    pub(super) async fn guard_message(
        &self,
        call: &Call,
        eligible: &EligibleGrant,
        parameters: &Value,
        freshness: Freshness,
    ) -> Passed {
        if eligible.action() != Action::Mcp {
            return (Ok(Vec::new()), None);
        }
        let Some(mapping) = &eligible.candidate.tool.definition.mcp else { return (Ok(Vec::new()), None) };
        match self.is_concerned(call, &eligible.candidate, Direction::Outbound, freshness).await {
            Ok(true) => {}
            Ok(false) => return (Ok(Vec::new()), None),
            Err(refusal) => return (Err(refusal), None),
        }
        let input = call.input.as_deref();
        let rendered = parameters.as_object().and_then(|parameters| mapping.message(parameters, input).ok());
        // INVARIANT: `constrain` has rendered the same.
        let mut message: Value = rendered.and_then(|message| serde_json::from_slice(&message).ok()).unwrap_or_default();
        // Only the server can read its state.
        if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
            params.remove(STATE);
        }
        self.rule_on_message(call, eligible, Direction::Outbound, &message, freshness).await
    }

    /// Asks about a message between a server and the client of a call that is being executed. It is too late for an
    /// approval.
    pub(super) async fn pass_message(
        &self,
        admitted: &Admitted,
        direction: Direction,
        message: &Value,
        freshness: Freshness,
    ) -> (Result<(), Refusal>, Option<Box<HookDecision>>) {
        let (call, eligible) = (admitted.call(), admitted.eligible());
        match self.is_concerned(call, &eligible.candidate, direction, freshness).await {
            Ok(true) => {}
            Ok(false) => return (Ok(()), None),
            Err(refusal) => return (Err(refusal), None),
        }
        let (passed, decision) = self.rule_on_message(call, eligible, direction, message, freshness).await;
        let passed = passed.and_then(|asks| if asks.is_empty() { Ok(()) } else { Err(too_late()) });
        (passed, decision)
    }

    async fn rule_on_message(
        &self,
        call: &Call,
        eligible: &EligibleGrant,
        direction: Direction,
        message: &Value,
        freshness: Freshness,
    ) -> Passed {
        let judge = |secrets| self.judge_message(call, &eligible.candidate, direction, message, freshness, secrets);
        let (verdict, decision) = match judge(None).await {
            Ok(Ruling { lacks_secrets: true, .. }) => {
                let opened = self.open(eligible).await;
                if let Some(Err(refusal)) = &opened {
                    return (Err(refusal.clone()), None);
                }
                let secrets = admit::secrets(&opened);
                match judge(Some(&secrets)).await {
                    Ok(ruling) => (ruling.verdict, ruling.decision),
                    Err(refusal) => return (Err(refusal), None),
                }
            }
            Ok(ruling) => (ruling.verdict, ruling.decision),
            Err(refusal) => return (Err(refusal), None),
        };
        let passed = match verdict {
            Verdict::Deny(denial) => Err(guard::refusal_of(denial)),
            Verdict::Pass { content: Some(_), .. } => Err(unchangeable()),
            Verdict::Pass { content: None, asks } => Ok(asks),
        };
        (passed, decision)
    }

    /// Asks about the response of a mounted server. It is too late for an approval.
    pub(super) async fn inspect_message(
        &self,
        call: &Call,
        candidate: &Candidate,
        result: &Value,
        freshness: Freshness,
    ) -> (Result<(), Refusal>, Option<Box<HookDecision>>) {
        if candidate.action() != Action::Mcp {
            return (Ok(()), None);
        }
        match self.is_concerned(call, candidate, Direction::Inbound, freshness).await {
            Ok(true) => {}
            Ok(false) => return (Ok(()), None),
            Err(refusal) => return (Err(refusal), None),
        }
        let message = json!({"jsonrpc": "2.0", "result": result});
        // Every form of the secret was redacted from a response before it comes here.
        let judged = self.judge_message(call, candidate, Direction::Inbound, &message, freshness, Some(&[])).await;
        let ruling = match judged {
            Ok(ruling) => ruling,
            Err(refusal) => return (Err(refusal), None),
        };
        let passed = match ruling.verdict {
            Verdict::Deny(denial) => Err(guard::refusal_of(denial)),
            Verdict::Pass { content: Some(_), .. } => Err(unchangeable()),
            Verdict::Pass { asks, .. } if !asks.is_empty() => Err(too_late()),
            Verdict::Pass { .. } => Ok(()),
        };
        (passed, ruling.decision)
    }

    /// Whether anybody has a say in such messages. Where nobody has, the message is not even put together.
    async fn is_concerned(
        &self,
        call: &Call,
        candidate: &Candidate,
        direction: Direction,
        freshness: Freshness,
    ) -> Result<bool, Refusal> {
        let subject = call.subject(candidate, Hook::Mcp(direction));
        Ok(self.guardian.unconcerned(call.caller.tenant(), &subject, freshness).await?.is_none())
    }

    async fn judge_message(
        &self,
        call: &Call,
        candidate: &Candidate,
        direction: Direction,
        message: &Value,
        freshness: Freshness,
        secrets: Option<&[&[u8]]>,
    ) -> Result<Ruling, Refusal> {
        let content = Content::Message(Cow::Borrowed(message));
        let event = call.event(candidate, Hook::Mcp(direction), content, self.clock.now());
        let hooked: Hooked<'_> = call.hooked(candidate, &event, freshness, secrets);
        self.guardian.judge(&hooked).await
    }
}

fn too_late() -> Refusal {
    let reason = "a rule requires an approval of a message, and no approver can be asked at this point";
    Refusal::new(Code::GuardianDenied, reason)
}

fn unchangeable() -> Refusal {
    let reason =
        "policies or guardians let a message of MCP pass only with changes, which only the hooks of tools can make";
    Refusal::new(Code::GuardianDenied, reason)
}
