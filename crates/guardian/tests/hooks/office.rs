//! A gate on SQLite with fakes where nothing is decided: material that opens or does not, a service that answers always,
//! and nobody who could approve anything unless a test brings an approver.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolgate_gate::call::{Admitted, AskForm, CallRequest, HookQuestion, HookResponse, HookTerms, UnknownTools};
use toolgate_gate::identify::Caller;
use toolgate_gate::ports::approver::{
    ApprovalOutcome, Approver, Ask, Asked, Attached, Covered, Gone, Presentation, Risk, RiskLevel,
};
use toolgate_gate::ports::entropy::random;
use toolgate_gate::ports::guardian::Guardian;
use toolgate_gate::ports::ledger::{ApplyPolicies, ApplyService, Freshness, PolicyChange};
use toolgate_gate::ports::sealer::{MasterKeyId, SealBinding, SealError, SealedMaterial, Sealer};
use toolgate_gate::ports::source::{Access, Execution, ServiceResponse, Source, Sources};
use toolgate_gate::ports::telemetry::NoTelemetry;
use toolgate_gate::{Action, Code, Gate, Ports, Refusal, Settings};
use toolgate_guardian::composition::{Guardians, LogAlarm};
use toolgate_guardian::policy::{CedarBook, PolicyEngine};
use toolgate_model::approval::{Approval, Coverage, Reach, StandingApproval, StandingRequest};
use toolgate_model::credential::{Credential, ServiceName};
use toolgate_model::grant::Grant;
use toolgate_model::guard::{AgentRef, Content, Dialect, Direction, Hook, HookEvent, PolicyFile, VerdictKind};
use toolgate_model::id::{ProcessId, StandingApprovalId};
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::secret::{Material, Secret};
use toolgate_model::service::ServiceDefinition;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal, scopes};

/// The secret of every credential.
pub const SECRET: &str = "seven green bottles on the wall";
/// From where everybody calls.
pub const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Credentials with this label cannot be opened.
pub const CLOSED: &str = "closed";

pub struct Office {
    pub gate: Arc<Gate>,
    pub tenant: TestTenant,
    pub agent: PrincipalId,
    key: String,
}

/// Opens what is not under the master key of this name.
struct FakeSealer;

#[async_trait]
impl Sealer for FakeSealer {
    async fn seal(&self, _: &SealBinding, _: &Material) -> Result<SealedMaterial, SealError> {
        Err(SealError::Provider { reason: "nothing is sealed here".to_owned() })
    }

    async fn unseal(&self, _: &SealBinding, sealed: &SealedMaterial) -> Result<Material, SealError> {
        if sealed.key.0 == CLOSED {
            return Err(SealError::KeyMissing { key: sealed.key.clone() });
        }
        let mut material = Material::new();
        material.insert("token".to_owned(), Secret::new(SECRET.to_owned()));
        Ok(material)
    }

    async fn rewrap(&self, _: &SealBinding, sealed: &SealedMaterial) -> Result<SealedMaterial, SealError> {
        Ok(sealed.clone())
    }

    async fn current_key(&self) -> Result<MasterKeyId, SealError> {
        Ok(MasterKeyId("first".to_owned()))
    }

    async fn renew_key(&self) -> Result<MasterKeyId, SealError> {
        self.current_key().await
    }

    async fn forget_key(&self, _: &MasterKeyId) -> Result<(), SealError> {
        Ok(())
    }

    async fn check(&self) -> Result<(), SealError> {
        Ok(())
    }
}

struct FakeSource;

#[async_trait]
impl Source for FakeSource {
    fn executes(&self, _: Action) -> bool {
        true
    }

    async fn execute(&self, _: &Admitted, _: Option<Access<'_>>) -> Execution {
        Ok(ServiceResponse::said(json!({"done": true})))
    }
}

/// Refuses what needs an approver.
struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn approve(&self, ask: Ask, _asked: Asked<'_>, _gone: Gone) -> Result<ApprovalOutcome, Refusal> {
        let reasons: Vec<&str> = ask.approval.reasons.iter().map(|reason| reason.text.as_str()).collect();
        let reason = format!("this call needs a person's approval ({}), and nobody can be asked", reasons.join("; "));
        Err(Refusal::new(Code::ApprovalRequired, reason))
    }

    fn resolved(&self, _approval: &Approval) {}

    fn standing(&self, _approval: &Approval, _wish: &StandingRequest) -> Result<(Coverage, Reach), String> {
        Err("nobody can be asked".to_owned())
    }

    fn covering(&self, _standing: &[StandingApproval], _call: &Covered<'_>) -> Result<Vec<StandingApprovalId>, String> {
        Err("nobody can be asked".to_owned())
    }

    fn protects(&self, _call: &Covered<'_>) -> Option<String> {
        None
    }

    fn present(&self, _approval: &Approval, _standing: &[StandingApproval]) -> Presentation {
        let risk = Risk { level: RiskLevel::High, notes: Vec::new() };
        Presentation { risk, parts: Vec::new(), offers: Vec::new(), no_offer_reason: None }
    }

    fn attach(&self, _tenant: &TenantId) -> Attached {
        Box::new(())
    }

    async fn close(&self) {}
}

impl Office {
    /// A gate with an agent in a tenant of its own.
    pub async fn open(fixture: &LedgerFixture, agent: impl FnOnce(&mut Principal)) -> Self {
        let policies = PolicyEngine::new(fixture.ledger().clone(), Arc::new(fixture.clock().clone()));
        let guardian = Guardians::new(Arc::new(policies), Vec::new(), Arc::new(LogAlarm::default()));
        let tenant = fixture.tenant().await;
        Self::made_of(fixture, tenant, agent, Arc::new(guardian), Sources::default().with(FakeSource), Arc::new(Nobody))
            .await
    }

    /// The same for this tenant, with this guardian, this source and this approver.
    pub async fn with(
        fixture: &LedgerFixture,
        tenant: TestTenant,
        guardian: Arc<dyn Guardian>,
        source: impl Source + 'static,
        approver: Arc<dyn Approver>,
    ) -> Self {
        Self::made_of(fixture, tenant, |_| {}, guardian, Sources::default().with(source), approver).await
    }

    async fn made_of(
        fixture: &LedgerFixture,
        tenant: TestTenant,
        agent: impl FnOnce(&mut Principal),
        guardian: Arc<dyn Guardian>,
        sources: Sources,
        approver: Arc<dyn Approver>,
    ) -> Self {
        let clock = Arc::new(fixture.clock().clone());
        let ports = Ports {
            ledger: Arc::clone(fixture.ledger()),
            sealer: Arc::new(FakeSealer),
            clock,
            mounts: Arc::new(toolgate_gate::ports::mount::NoMounts),
            sources,
            guardian,
            policy_book: Arc::new(CedarBook),
            approver,
            telemetry: Arc::new(NoTelemetry),
            tokens: None,
            process: ProcessId::new(tenant.now(), random().unwrap()),
        };
        let gate = Arc::new(Gate::new(ports, Arc::clone(fixture.signer()), Settings::default()));
        let id = principal("clerk");
        let mut new = tenant.new_principal(&id);
        agent(&mut new);
        tenant.ledger.create_principal(tenant.registration(new)).await.unwrap();
        let key = format!("the key of clerk in {}", tenant.id);
        tenant.key(&id, &key).await;
        Self { gate, tenant, agent: id, key }
    }

    pub async fn caller(&self) -> Caller {
        self.gate.authenticator.identify(Some(&self.key), HERE, Freshness::Newest).await.unwrap()
    }

    /// Registers a service.
    pub async fn service(&self, definition: &Value) {
        register(&self.tenant, definition, false).await;
    }

    /// A credential for this service, that opens or does not.
    pub async fn credential(&self, service: &str, available: &[&str], metadata: Value, opens: bool) -> Credential {
        let vault = self.tenant.vault().await;
        let Value::Object(metadata) = metadata else { panic!("metadata is an object") };
        let credential = Credential {
            service: ServiceName::parse(service).unwrap(),
            scopes_available: scopes(available),
            metadata,
            ..self.tenant.new_credential(vault.id)
        };
        if opens {
            return self.tenant.store_credential(credential).await;
        }
        let sealed = Some(toolgate_testkit::ledger_fixture::sealed_under(CLOSED));
        let command = toolgate_gate::ports::ledger::CreateCredential {
            audit: self.tenant.audit(),
            credential: credential.clone(),
            sealed,
        };
        self.tenant.ledger.create_credential(command).await.unwrap();
        credential
    }

    /// Grants the agent this much of a credential.
    pub async fn grant(&self, credential: &Credential, change: impl FnOnce(&mut Grant)) -> Grant {
        let mut grant = self.tenant.new_grant(credential, &self.agent);
        change(&mut grant);
        self.tenant.store_grant(grant).await.unwrap()
    }

    /// Makes this text the policies.
    pub async fn policies(&self, text: &str) {
        let files = vec![PolicyFile { name: "main.cedar".to_owned(), text: text.to_owned() }];
        let command = ApplyPolicies {
            audit: self.tenant.audit(),
            change: PolicyChange::Applied,
            files,
            note: None,
            expected: None,
            rules: 1,
            shadowed: 0,
        };
        self.tenant.ledger.apply_policies(command).await.unwrap();
    }

    /// Whether a call through the gate is refused, or ends in an error.
    pub async fn invoke_refuses(&self, tool: &str, arguments: &Value) -> bool {
        let Value::Object(parameters) = arguments.clone() else { panic!("arguments are an object") };
        let request = CallRequest::new(tool.to_owned(), parameters, HERE);
        match self.gate.pipeline.invoke(self.caller().await, request).await {
            Ok(answer) => answer.outcome.error.is_some(),
            Err(_) => true,
        }
    }

    /// A question about a call.
    pub fn question(&self, tool: &str, arguments: &Value, unknown_tools: UnknownTools) -> HookQuestion {
        let content = Content::Arguments(Cow::Owned(arguments.as_object().unwrap().clone()));
        self.about(Hook::ToolCallRequest, Some(tool), content, unknown_tools)
    }

    /// A question about a message of MCP that calls a tool.
    pub fn message(&self, tool: &str, arguments: &Value) -> HookQuestion {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let content = Content::Message(Cow::Owned(message));
        self.about(Hook::Mcp(Direction::Outbound), Some(tool), content, UnknownTools::Ask)
    }

    /// A question about a result.
    pub fn result(&self, tool: Option<&str>, execution: &str, session: &str) -> HookQuestion {
        let content = Content::Result { value: Cow::Owned(json!({"text": "found"})), is_error: false };
        let question = self.about(Hook::ToolCallResult, tool, content, UnknownTools::Judge);
        in_execution(question, execution, session)
    }

    fn about(
        &self,
        hook: Hook,
        tool: Option<&str>,
        content: Content<'static>,
        unknown_tools: UnknownTools,
    ) -> HookQuestion {
        HookQuestion {
            agent: self.agent.clone(),
            event: HookEvent {
                hook,
                agent: AgentRef { id: Cow::Owned(self.agent.as_str().to_owned()), name: None },
                tool: tool.map(|tool| Cow::Owned(tool.to_owned())),
                execution: None,
                session: None,
                turn: None,
                step: None,
                user: None,
                method: None,
                reasoning: None,
                time: self.tenant.now(),
                content,
            },
            dialect: Dialect::Aos,
            request: Some("q-1".to_owned()),
            terms: HookTerms { ask: AskForm::Hold, unknown_tools, wait: None },
            address: HERE,
        }
    }

    pub async fn ask(&self, question: HookQuestion) -> HookResponse {
        self.gate.hooks.decide_hook(self.caller().await, question).await.unwrap()
    }

    /// Asks about a call of a tool with these arguments, by the terms that hold where nothing is agreed.
    pub async fn asks(&self, tool: &str, arguments: Value) -> VerdictKind {
        self.ask(self.question(tool, &arguments, UnknownTools::default())).await.kind
    }

    /// All that was decided at hooks, in order.
    pub async fn decisions(&self) -> Vec<Value> {
        self.tenant.events_of("hook.decided").await.into_iter().map(|event| event["data"].clone()).collect()
    }
}

/// Registers a service, or replaces its definition.
pub async fn register(tenant: &TestTenant, definition: &Value, replace: bool) {
    let definition = ServiceDefinition::from_json(definition).unwrap();
    tenant.ledger.apply_service(ApplyService { audit: tenant.audit(), definition, replace }).await.unwrap();
}

/// The same as part of an execution of a session.
pub fn in_execution(mut question: HookQuestion, execution: &str, session: &str) -> HookQuestion {
    question.event.execution = Some(Cow::Owned(execution.to_owned()));
    question.event.session = Some(Cow::Owned(session.to_owned()));
    question
}

/// A service with tools that need nothing but their scope, which is their name.
pub fn definition(service: &str, version: &str, tools: &[&str]) -> Value {
    let tool = |name: &&str| {
        let http = json!({"method": "POST", "path": format!("/{name}")});
        ((*name).to_owned(), json!({"http": http}))
    };
    let tools: Map<String, Value> = tools.iter().map(tool).collect();
    json!({"service": service, "version": version, "base_url": "https://service.example", "tools": tools})
}
