//! Guardians that answer as a test tells them, and events to ask them about.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolgate_gate::ports::guardian::{Hooked, HookedTool};
use toolgate_gate::ports::guardian_link::{Link, LinkFailure, LinkResponse};
use toolgate_gate::ports::ledger::{Freshness, MarkScope};
use toolgate_model::credential::ServiceName;
use toolgate_model::guard::{AgentRef, Content, Dialect, Hook, HookEvent};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::scope::Scope;
use toolgate_model::service::ToolDefinition;
use toolgate_model::time::Timestamp;

use super::{RemoteGuardian, RemoteSettings};
use crate::time::now;

/// What a link does with a question.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Respond(LinkResponse),
    Fail(LinkFailure),
    After(Duration, Box<Act>),
}

impl Act {
    /// A body that is said to be JSON.
    pub(crate) fn body(body: impl Into<Vec<u8>>) -> Self {
        Self::Respond(LinkResponse {
            status: 200,
            content_type: Some("application/json".to_owned()),
            body: body.into(),
        })
    }

    /// The result of a question.
    pub(crate) fn result(question: &Value, result: Value) -> Self {
        Self::body(json!({"jsonrpc": "2.0", "id": question["id"], "result": result}).to_string())
    }

    pub(crate) fn allow(question: &Value) -> Self {
        Self::result(question, json!({"decision": "allow", "message": "fine"}))
    }

    pub(crate) fn deny(question: &Value, reason: &str) -> Self {
        Self::result(question, json!({"decision": "deny", "reason": reason}))
    }

    /// Other arguments, as a fragment.
    pub(crate) fn modify(question: &Value, arguments: &Map<String, Value>) -> Self {
        let inputs: Value = arguments.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        Self::result(question, json!({"decision": "modify", "modifiedRequest": {"inputs": inputs}}))
    }

    pub(crate) fn after(self, seconds: u64) -> Self {
        Self::After(Duration::from_secs(seconds), Box::new(self))
    }
}

/// The arguments that a question is about.
pub(crate) fn arguments_of(question: &Value) -> Map<String, Value> {
    let inputs = question["params"]["toolCallRequest"]["inputs"].as_array().expect("inputs").iter();
    inputs.map(|input| (input["name"].as_str().expect("a name").to_owned(), input["value"].clone())).collect()
}

/// A link with scripted responses, which keeps the requests.
pub(crate) struct FakeLink {
    act: Box<dyn Fn(&Value) -> Act + Send + Sync>,
    questions: Mutex<Vec<Value>>,
    answered: AtomicUsize,
}

impl FakeLink {
    pub(crate) fn new(act: impl Fn(&Value) -> Act + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { act: Box::new(act), questions: Mutex::default(), answered: AtomicUsize::new(0) })
    }

    pub(crate) fn questions(&self) -> Vec<Value> {
        self.questions.lock().unwrap().clone()
    }

    /// How many questions were answered, or failed; the others were cancelled or are in flight.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Link for FakeLink {
    async fn post(&self, question: Vec<u8>, _timeout: Duration) -> Result<LinkResponse, LinkFailure> {
        let question: Value = serde_json::from_slice(&question).unwrap();
        self.questions.lock().unwrap().push(question.clone());
        let mut act = (self.act)(&question);
        loop {
            match act {
                Act::After(time, then) => {
                    tokio::time::timeout(time, std::future::pending::<()>()).await.unwrap_err();
                    act = *then;
                }
                Act::Respond(response) => {
                    self.answered.fetch_add(1, Ordering::SeqCst);
                    return Ok(response);
                }
                Act::Fail(failure) => {
                    self.answered.fetch_add(1, Ordering::SeqCst);
                    return Err(failure);
                }
            }
        }
    }
}

pub(crate) fn settings(name: &str) -> RemoteSettings {
    RemoteSettings::new(name, Dialect::Joch)
}

pub(crate) fn guardian(settings: RemoteSettings, link: &Arc<FakeLink>) -> RemoteGuardian {
    RemoteGuardian::new(settings, Arc::clone(link) as Arc<dyn Link>).unwrap()
}

/// A time that no question reaches.
pub(crate) fn some_day() -> Instant {
    now() + Duration::from_secs(3600)
}

/// An event, and all that a gate knows about it.
pub(crate) struct World {
    pub(crate) event: HookEvent<'static>,
    pub(crate) tenant: TenantId,
    pub(crate) agent: PrincipalId,
    pub(crate) principal: Arc<Principal>,
    pub(crate) service: ServiceName,
    pub(crate) tool: String,
    pub(crate) definition: Arc<ToolDefinition>,
}

impl World {
    /// An agent is about to call `mail.send` with these arguments.
    pub(crate) fn of(arguments: Value) -> Self {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let (tenant, agent) = (TenantId::default_tenant(), PrincipalId::parse("helper-1").unwrap());
        let principal = Principal::new(
            tenant.clone(),
            agent.clone(),
            PrincipalKind::Agent,
            PermissionSet::default(),
            Timestamp::EPOCH,
        );
        let event = HookEvent {
            hook: Hook::ToolCallRequest,
            agent: AgentRef { id: Cow::Borrowed("helper-1"), name: None },
            tool: Some(Cow::Borrowed("mail.send")),
            execution: Some(Cow::Borrowed("exec-1")),
            session: None,
            turn: None,
            step: None,
            user: None,
            method: None,
            reasoning: None,
            time: Timestamp::EPOCH,
            content: Content::Arguments(Cow::Owned(arguments)),
        };
        Self {
            event,
            tenant,
            agent,
            principal: Arc::new(principal),
            service: ServiceName::parse("mail").unwrap(),
            tool: "mail.send".to_owned(),
            definition: Arc::new(ToolDefinition::of_scope(Scope::parse("mail.send").unwrap())),
        }
    }

    pub(crate) fn hooked(&self) -> Hooked<'_> {
        Hooked {
            event: &self.event,
            dialect: Dialect::Native,
            request: None,
            tenant: &self.tenant,
            invocation: None,
            agent: &self.agent,
            principal: Some(&self.principal),
            actor: &self.principal,
            tool: Some(HookedTool {
                service: &self.service,
                name: &self.tool,
                definition: &self.definition,
                external: false,
                registry: None,
            }),
            arguments: None,
            run: None,
            marks: MarkScope { agent: self.agent.clone(), session: String::new() },
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            freshness: Freshness::Recent,
            secrets: Some(&[]),
        }
    }
}
