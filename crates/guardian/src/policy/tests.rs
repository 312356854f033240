//! The policy engine, by its rules. The world that the tests share stands here.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::ports::guardian::{HookedTool, Subject};
use toolgate_gate::ports::ledger::{Counts, History};
use toolgate_model::credential::ServiceName;
use toolgate_model::guard::{AgentRef, Content, Dialect, Hook, HookEvent, PolicyFile, Verdict, VerdictKind};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::scope::Scope;
use toolgate_model::service::ToolDefinition;
use toolgate_model::text::Label;
use toolgate_model::time::Timestamp;

use super::*;
use toolgate_gate::ports::policy_book::PolicyTool;

mod annotations;
mod catalog;
mod index;
mod properties;
mod replay;
mod semantics;

/// An agent, a tool and the circumstances of a call.
#[derive(Debug, Clone)]
struct World {
    agent: Principal,
    service: ServiceName,
    name: String,
    definition: Arc<ToolDefinition>,
    external: bool,
    history: Option<History>,
    reasoning: Option<String>,
    address: Option<IpAddr>,
}

impl World {
    /// `bot`, which is `trusted`, and `mail.send`, which is `outbound`.
    fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "to": {"type": "string"}, "body": {"type": "string"}, "amount": {"type": "integer"},
                "price": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}}, "extra": {},
            },
            "required": ["to"],
        });
        let scope = Scope::parse("send").unwrap();
        let definition = ToolDefinition {
            parameters: Some(parameters),
            labels: labels(&["outbound"]),
            ..ToolDefinition::of_scope(scope)
        };
        let mut world = Self {
            agent: principal("bot"),
            service: ServiceName::parse("mail").unwrap(),
            name: "mail.send".to_owned(),
            definition: Arc::new(definition),
            external: false,
            history: Some(History::default()),
            reasoning: None,
            address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        world.agent.labels = labels(&["trusted"]);
        world
    }

    fn tool(&self) -> HookedTool<'_> {
        HookedTool {
            service: &self.service,
            name: &self.name,
            definition: &self.definition,
            external: self.external,
            registry: Some(1),
        }
    }

    fn subject(&self, hook: Hook) -> Subject<'_> {
        let about_tool = matches!(hook, Hook::ToolCallRequest | Hook::ToolCallResult);
        Subject {
            hook,
            agent: &self.agent.id,
            principal: Some(&self.agent),
            actor: &self.agent,
            tool: about_tool.then(|| self.tool()),
            dialect: Dialect::Native,
        }
    }

    fn event<'a>(&'a self, hook: Hook, content: Content<'a>) -> HookEvent<'a> {
        HookEvent {
            hook,
            agent: AgentRef { id: Cow::Borrowed(self.agent.id.as_str()), name: None },
            tool: None,
            execution: None,
            session: None,
            turn: None,
            step: None,
            user: None,
            method: None,
            reasoning: self.reasoning.as_deref().map(Cow::Borrowed),
            // A Sunday.
            time: Timestamp::parse("2026-11-15T21:30:05.250Z").unwrap(),
            content,
        }
    }

    fn facts<'a>(&'a self, event: &'a HookEvent<'a>) -> Facts<'a> {
        Facts {
            event,
            dialect: Dialect::Native,
            run: None,
            address: self.address,
            history: self.history.as_ref(),
            arguments: None,
            secrets: &[],
        }
    }

    fn judge_at(&self, set: &CompiledSet, hook: Hook, content: Content<'_>) -> Evaluation {
        let event = self.event(hook, content.into_owned());
        judge(&set.slice(&self.subject(hook)), &self.facts(&event))
    }

    fn call(&self, set: &CompiledSet, arguments: &Value) -> Evaluation {
        self.judge_at(set, Hook::ToolCallRequest, Content::Arguments(Cow::Owned(members(arguments))))
    }

    fn result(&self, set: &CompiledSet, value: &Value) -> Evaluation {
        self.judge_at(set, Hook::ToolCallResult, Content::Result { value: Cow::Borrowed(value), is_error: false })
    }

    fn policy_tool(&self) -> PolicyTool {
        PolicyTool {
            name: self.name.clone(),
            service: self.service.to_string(),
            definition: Arc::clone(&self.definition),
        }
    }
}

fn principal(id: &str) -> Principal {
    let id = PrincipalId::parse(id).unwrap();
    Principal::new(TenantId::default_tenant(), id, PrincipalKind::Agent, PermissionSet::default(), Timestamp::EPOCH)
}

fn labels(names: &[&str]) -> std::collections::BTreeSet<Label> {
    names.iter().map(|name| Label::parse(name).unwrap()).collect()
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn file(text: &str) -> PolicyFile {
    PolicyFile { name: "rules.cedar".to_owned(), text: text.to_owned() }
}

fn compile(text: &str) -> CompiledSet {
    CompiledSet::compile(7, &[file(text)]).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn problems(text: &str) -> Vec<Problem> {
    CompiledSet::compile(7, &[file(text)]).err().unwrap_or_default()
}

/// The call with ordinary arguments, under one set.
fn verdict(text: &str) -> Evaluation {
    World::new().call(&compile(text), &json!({"to": "ann", "body": "hello", "amount": 3}))
}

fn ids(evaluation: &Evaluation) -> Vec<&str> {
    evaluation.policies.iter().map(|policy| policy.id.as_str()).collect()
}

fn denial(evaluation: &Evaluation) -> &toolgate_model::guard::Denial {
    match &evaluation.verdict {
        Verdict::Deny(denial) => denial,
        other => panic!("{other:?}"),
    }
}
