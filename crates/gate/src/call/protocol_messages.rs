//! Guardians on the messages of MCP that no call comes to: handshakes and lists. They are sent on behalf of the principal whose
//! call needs them, or of the gate itself. A message that is not to be changed and not to be asked about passes or does not.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;
use serde_json::Value;
use toolgate_model::guard::{AgentRef, Content, Dialect, Direction, Hook, HookEvent, Verdict};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};

use super::{Admitted, Pipeline, guard};
use crate::ports::guardian::{Hooked, Subject};
use crate::ports::ledger::{Freshness, MarkScope};
use crate::ports::mount::MessageGuard;
use crate::refusal::{Code, Refusal};

/// The messages of a call, or of the gate itself.
pub(super) struct ProtocolMessages<'a> {
    pipeline: &'a Pipeline,
    behalf: Behalf<'a>,
}

/// On whose behalf messages are sent. Nothing is built unless a rule or a guardian applies.
enum Behalf<'a> {
    Call(&'a Admitted),
    Gate { tenant: &'a TenantId, actor: Box<Principal> },
}

impl Pipeline {
    /// Messages in the course of a call.
    pub(super) fn messages_of_call<'a>(&'a self, admitted: &'a Admitted) -> ProtocolMessages<'a> {
        ProtocolMessages { pipeline: self, behalf: Behalf::Call(admitted) }
    }

    /// Messages of the gate itself, which looks at what a server offers.
    pub(super) fn own_messages<'a>(&'a self, tenant: &'a TenantId) -> ProtocolMessages<'a> {
        let (system, now) = (PrincipalId::system(), self.clock.now());
        let actor = Principal::new(tenant.clone(), system, PrincipalKind::Service, PermissionSet::default(), now);
        ProtocolMessages { pipeline: self, behalf: Behalf::Gate { tenant, actor: Box::new(actor) } }
    }
}

#[async_trait]
impl MessageGuard for ProtocolMessages<'_> {
    async fn check(&self, direction: Direction, message: &Value) -> Result<(), String> {
        self.judge(direction, message).await.map_err(|refusal| refusal.reason().to_owned())
    }
}

impl ProtocolMessages<'_> {
    async fn judge(&self, direction: Direction, message: &Value) -> Result<(), Refusal> {
        let (hook, freshness) = (Hook::Mcp(direction), Freshness::Recent);
        let (call, tenant, agent, actor) = match &self.behalf {
            Behalf::Call(admitted) => {
                let call = admitted.call();
                let caller = &call.caller;
                (Some((call, admitted.candidate())), caller.tenant(), &call.agent, caller.principal())
            }
            Behalf::Gate { tenant, actor } => (None, *tenant, &actor.id, &**actor),
        };
        let principal = call.and_then(|(_, candidate)| candidate.agent.as_ref());
        let subject = Subject {
            hook,
            agent,
            principal: principal.map(|principal| &**principal),
            actor,
            tool: None,
            dialect: Dialect::Native,
        };
        let guardian = &self.pipeline.guardian;
        if guardian.unconcerned(tenant, &subject, freshness).await?.is_some() {
            return Ok(());
        }
        let text = |member: &str| message.get(member).and_then(Value::as_str);
        let event = HookEvent {
            hook,
            agent: AgentRef { id: Cow::Borrowed(agent.as_str()), name: None },
            tool: None,
            execution: call.map(|(call, _)| Cow::Owned(call.id.to_string())),
            session: None,
            turn: None,
            step: None,
            user: None,
            method: text("method").map(Cow::Borrowed),
            reasoning: None,
            time: self.pipeline.clock.now(),
            content: Content::Message(Cow::Borrowed(message)),
        };
        // Neither a handshake nor a list has a secret of ours.
        let nothing: &[&[u8]] = &[];
        let hooked = Hooked {
            event: &event,
            dialect: Dialect::Native,
            request: None,
            tenant,
            invocation: call.map(|(call, _)| call.id),
            agent,
            principal,
            actor,
            tool: None,
            arguments: None,
            run: call.and_then(|(call, _)| call.run.as_ref()),
            marks: call.map_or_else(
                || MarkScope { agent: agent.clone(), session: String::new() },
                |(call, _)| call.mark_scope(),
            ),
            address: call.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |(call, _)| call.address),
            freshness,
            secrets: Some(nothing),
        };
        match guardian.judge(&hooked).await?.verdict {
            Verdict::Deny(denial) => Err(guard::refusal_of(denial)),
            Verdict::Pass { content: None, asks } if asks.is_empty() => Ok(()),
            Verdict::Pass { .. } => {
                let reason = "policies or guardians let a message of MCP pass only with changes or an approval, which \
                              handshakes and lists cannot have";
                Err(Refusal::new(Code::GuardianDenied, reason))
            }
        }
    }
}
