//! The call that all verdicts are about: an agent that pays, with all that the gate knows about it.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::ports::guardian::{Hooked, HookedTool};
use toolgate_gate::ports::ledger::{Freshness, MarkScope};
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::SafetyTier;
use toolgate_model::guard::{AgentRef, Content, Dialect, Hook, HookEvent};
use toolgate_model::id::InvocationId;
use toolgate_model::principal::{Principal, PrincipalId};
use toolgate_model::scope::Scope;
use toolgate_model::service::ToolDefinition;
use toolgate_model::text::Label;
use toolgate_testkit::ledger_fixture::TestTenant;

pub const AGENT: &str = "payer";

/// A call in one tenant.
pub struct Scene {
    agent: Arc<Principal>,
    id: InvocationId,
    service: ServiceName,
    definition: Arc<ToolDefinition>,
    arguments: Map<String, Value>,
}

impl Scene {
    pub fn new(tenant: &TestTenant) -> Self {
        let mut agent = tenant.new_principal(&PrincipalId::parse(AGENT).unwrap());
        agent.labels = [Label::parse("untrusted").unwrap()].into();
        let definition = ToolDefinition {
            parameters: Some(parameters()),
            safety_tier: Some(SafetyTier::Write),
            labels: [Label::parse("money").unwrap()].into(),
            ..ToolDefinition::of_scope(Scope::parse("pay").unwrap())
        };
        Self {
            agent: Arc::new(agent),
            id: InvocationId::new(tenant.now(), [7; 10]),
            service: ServiceName::parse("bank").unwrap(),
            definition: Arc::new(definition),
            arguments: arguments().as_object().unwrap().clone(),
        }
    }

    pub fn event(&self, tenant: &TestTenant) -> HookEvent<'_> {
        HookEvent {
            hook: Hook::ToolCallRequest,
            agent: AgentRef { id: Cow::Borrowed(AGENT), name: None },
            tool: Some(Cow::Borrowed("bank.pay")),
            execution: Some(Cow::Owned(self.id.to_string())),
            session: None,
            turn: None,
            step: None,
            user: None,
            method: None,
            reasoning: Some(Cow::Borrowed("the rent for May is due, and the landlord's account is known")),
            time: tenant.now(),
            content: Content::Arguments(Cow::Borrowed(&self.arguments)),
        }
    }

    /// As the gate asks first: without the secret of the call, which nobody may need.
    pub fn hooked<'a>(&'a self, event: &'a HookEvent<'a>) -> Hooked<'a> {
        Hooked {
            event,
            dialect: Dialect::Native,
            request: None,
            tenant: &self.agent.tenant,
            invocation: Some(self.id),
            agent: &self.agent.id,
            principal: Some(&self.agent),
            actor: &self.agent,
            tool: Some(HookedTool {
                service: &self.service,
                name: "bank.pay",
                definition: &self.definition,
                external: false,
                registry: Some(1),
            }),
            arguments: None,
            run: None,
            marks: MarkScope { agent: self.agent.id.clone(), session: String::new() },
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            freshness: Freshness::Recent,
            secrets: None,
        }
    }
}

/// What the tool takes.
pub fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "amount": {"type": "integer"}, "currency": {"type": "string"}, "note": {"type": "string"},
            "to": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["amount", "currency"],
    })
}

/// What it is called with.
pub fn arguments() -> Value {
    json!({
        "amount": 4_000, "currency": "EUR", "note": "rent for May", "to": "landlord", "lines": ["rent", "heating"],
    })
}
