//! The questions of other agents' runtimes: at each point of an agent's loop they ask whether it may go on. What is about
//! a tool walks the path of every call, up to the point where somebody else carries it out; the rest is judged and
//! written down.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolgate_model::approval::{Category, SessionName};
use toolgate_model::arguments::arguments_hash;
use toolgate_model::context::GrantContext;
use toolgate_model::guard::{
    Content, Denial as Refused, Dialect, GuardMode, GuardianRecord, Hook, HookDecision, HookEvent, Outcome, PolicyRef,
    TraceIds, Verdict, VerdictKind,
};
use toolgate_model::hook::RunId;
use toolgate_model::id::{ApprovalId, InvocationId};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use self::executions::Remembered;
use super::external::external_tool;
use super::guard::refusal_of;
use super::{AskedHook, CallRequest, Denial, Own, Progress};
use crate::catalog::Tool;
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::guardian::{Hooked, HookedTool, Ruling};
use crate::ports::ledger::{Freshness, MarkScope, RecordDecision};
use crate::refusal::{Code, Refusal};

pub(crate) mod executions;
pub(crate) mod parked;

/// Under which name the gate itself says no in the record.
const GATE: &str = "gate";
/// What stands for a tool whose name has no service.
const NO_SERVICE: &str = "agent";
/// What stands for the service of what is no tool.
const HOOKS: &str = "hook";

/// What a runtime asks.
#[derive(Debug, Clone)]
pub struct HookQuestion {
    /// The agent that it is about.
    pub agent: PrincipalId,
    /// What is about to happen.
    pub event: HookEvent<'static>,
    /// In whose words it was asked.
    pub dialect: Dialect,
    /// The id of the question.
    pub request: Option<String>,
    /// What is agreed with whoever asks.
    pub terms: HookTerms,
    /// From where it comes.
    pub address: IpAddr,
}

/// What is agreed with a runtime that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookTerms {
    /// What becomes of a question that a person must answer.
    pub ask: AskForm,
    /// Whether tools that the gate does not know are judged like others, or denied.
    pub unknown_tools: UnknownTools,
    /// How long a person has to answer.
    pub wait: Option<Duration>,
}

/// What becomes of a question that a person must answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AskForm {
    /// It is answered when the person has.
    #[default]
    Hold,
    /// It is denied at once, with the approval to wait for; once that is given, the same question is allowed once.
    Deny,
}

/// What becomes of tools that the gate does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownTools {
    /// They are judged by guardians and policies, without grants.
    #[default]
    Judge,
    /// They are denied.
    Deny,
}

/// What the runtime is told.
#[derive(Debug, Clone, PartialEq)]
pub struct HookAnswer {
    /// Allow, modify or deny.
    pub kind: VerdictKind,
    /// Why, in a sentence.
    pub reason: String,
    /// Why, in a word; `None` where nothing is in the way.
    pub code: Option<String>,
    /// The rule behind it.
    pub policy: Option<PolicyRef>,
    /// What is to be used instead.
    pub content: Option<Content<'static>>,
    /// The approval that it waits for, or rests on.
    pub approval: Option<ApprovalId>,
    /// The record of it, where it is about a tool.
    pub invocation: Option<InvocationId>,
}

impl HookAnswer {
    fn denied(refusal: &Refusal) -> Self {
        let text = |name: &str| refusal.details().find(|(key, _)| *key == name).and_then(|(_, value)| value.as_str());
        let policy = text("policy_id").zip(text("policy_version"));
        Self {
            kind: VerdictKind::Deny,
            reason: refusal.reason().to_owned(),
            code: Some(refusal.code().as_str().to_ascii_lowercase()),
            policy: policy.map(|(id, version)| PolicyRef { id: id.to_owned(), version: version.to_owned() }),
            content: None,
            approval: text("approval_id").and_then(|id| ApprovalId::parse(id).ok()),
            invocation: None,
        }
    }

    fn passed(content: Option<Content<'static>>) -> Self {
        let (kind, reason) = match content {
            Some(_) => (VerdictKind::Modify, "allowed with changes"),
            None => (VerdictKind::Allow, "allowed"),
        };
        Self { kind, reason: reason.to_owned(), code: None, policy: None, content, approval: None, invocation: None }
    }
}

impl Gate {
    /// Answers a runtime. Whatever can be decided is decided; a refusal means that there is no decision, because nothing
    /// could be written down.
    pub async fn answer_hook(self: &Arc<Self>, caller: Caller, question: HookQuestion) -> Result<HookAnswer, Refusal> {
        if let Err(refusal) = caller.require_acting_for(&question.agent).and(caller.require(Permission::InvokeTools)) {
            return self.refuse_question(&caller, &question, &refusal).await;
        }
        match question.event.hook {
            Hook::ToolCallRequest => self.answer_tool_call(caller, question).await,
            _ => self.answer_event(caller, question).await,
        }
    }

    /// A tool is about to be called by somebody else.
    async fn answer_tool_call(self: &Arc<Self>, caller: Caller, question: HookQuestion) -> Result<HookAnswer, Refusal> {
        let Content::Arguments(arguments) = &question.event.content else {
            return Err(Refusal::new(Code::Internal, "a call of a tool came without arguments"));
        };
        let arguments = arguments.clone().into_owned();
        let named = question.event.tool.clone().unwrap_or_default();
        let known = self.known_tool(&caller, &question, &named, arguments.clone()).await?;
        let (tool, governed) = match known {
            Some(tool) => (Arc::new(tool.as_external()), true),
            None => match self.foreign_tool(&caller, &question, &named).await {
                Ok(tool) => (Arc::new(tool), false),
                Err(refusal) => return self.refuse_question(&caller, &question, &refusal).await,
            },
        };
        if let Some(execution) = &question.event.execution {
            self.executions.remember(
                &caller,
                &question.agent,
                execution,
                Remembered { tool: Arc::clone(&tool), governed },
            );
        }
        let content = Content::Arguments(Cow::Owned(arguments.clone()));
        self.walk_question(caller, question, Walk { tool, governed, parameters: arguments, content }).await
    }

    /// Anything else: judged, and written down before it is answered. Only what a person must answer becomes a call.
    async fn answer_event(self: &Arc<Self>, caller: Caller, question: HookQuestion) -> Result<HookAnswer, Refusal> {
        let Ruling { verdict, decision, .. } = self.rule_on_event(&caller, &question).await?;
        let answer = match verdict {
            Verdict::Pass { asks, .. } if !asks.is_empty() => {
                let hook = question.event.hook;
                let tool = Arc::new(unknown_tool(&format!("{HOOKS}.{}", hook.as_str()), Category::Mcp)?);
                let content = question.event.content.clone();
                let parameters = Map::from_iter([("content".to_owned(), content.to_json())]);
                return self.walk_question(caller, question, Walk { tool, governed: false, parameters, content }).await;
            }
            Verdict::Pass { content, .. } => HookAnswer::passed(content.map(|content| *content)),
            Verdict::Deny(denial) => deny(denial),
        };
        if let Some(decision) = decision {
            let run = run_of(&question.event);
            let command = RecordDecision { stamp: self.stamp(&caller), agent: question.agent, run, decision };
            self.ledger.record_decision(command).await?;
        }
        Ok(answer)
    }

    async fn rule_on_event(&self, caller: &Caller, question: &HookQuestion) -> Result<Ruling, Refusal> {
        let HookQuestion { event, agent, .. } = question;
        let now = self.clock.now();
        let holdings = self.ledger.holdings(caller.tenant(), agent, now, Freshness::Recent).await?;
        let remembered = match (event.hook, &event.execution) {
            (Hook::ToolCallResult, Some(execution)) => self.executions.find(caller, agent, execution),
            _ => None,
        };
        let run = run_of(event);
        let hooked = Hooked {
            event,
            dialect: question.dialect,
            request: question.request.as_deref(),
            tenant: caller.tenant(),
            invocation: None,
            agent,
            principal: holdings.agent.as_ref(),
            actor: caller.principal(),
            tool: remembered.as_ref().map(|Remembered { tool, governed }| HookedTool {
                service: &tool.service,
                name: &tool.name,
                definition: &tool.definition,
                external: !governed,
                registry: None,
            }),
            arguments: None,
            run: run.as_ref(),
            marks: mark_scope(caller, question),
            address: question.address,
            freshness: Freshness::Recent,
            secrets: Some(&[]),
        };
        self.guardian.judge(&hooked).await
    }

    /// The tool that the question names, if the gate governs it: with the agent's grants where it may use it, else as the
    /// catalog has it, so that the path refuses it.
    async fn known_tool(
        self: &Arc<Self>,
        caller: &Caller,
        question: &HookQuestion,
        named: &str,
        arguments: Map<String, Value>,
    ) -> Result<Option<Arc<Tool>>, Refusal> {
        let request = self.request(question, named.to_owned(), arguments);
        let (call, _) = self.begin(caller.clone(), request)?;
        let found = match self.resolve(&call, Freshness::Newest).await {
            Ok(resolved) => resolved.first().map(|candidate| candidate.tool),
            Err(refusal) if matches!(refusal.code(), Code::LedgerUnavailable | Code::Internal) => return Err(refusal),
            Err(_) => None,
        };
        if found.is_some() {
            return Ok(found);
        }
        let catalog = self.catalog(caller.tenant(), Freshness::Newest).await?;
        let wanted = named.strip_prefix("connector:").unwrap_or(named);
        let is_meant = |tool: &&Arc<Tool>| {
            let rest = wanted.strip_prefix(tool.service.as_str()).and_then(|rest| rest.strip_prefix('.'));
            rest == Some(tool.name.as_str()) || tool.id().is_some_and(|id| id.as_str() == named)
        };
        Ok(catalog.services().flat_map(|service| service.tools()).find(is_meant).cloned())
    }

    /// A tool that the gate does not know, if those may be asked about.
    async fn foreign_tool(&self, caller: &Caller, question: &HookQuestion, named: &str) -> Result<Tool, Refusal> {
        if question.terms.unknown_tools == UnknownTools::Deny {
            return Err(Refusal::new(Code::ToolNotFound, format!("`{named}` is no tool that this gate knows")));
        }
        let tool = unknown_tool(named, Category::Mcp)?;
        self.require_foreign(caller, &tool).await?;
        Ok(tool)
    }

    /// Says no to a question that nobody is asked about, and writes it down.
    async fn refuse_question(
        &self,
        caller: &Caller,
        question: &HookQuestion,
        refusal: &Refusal,
    ) -> Result<HookAnswer, Refusal> {
        let HookQuestion { event, .. } = question;
        let record = GuardianRecord {
            guardian: GATE.to_owned(),
            dialect: Dialect::Native,
            mode: GuardMode::Enforce,
            verdict: Some(VerdictKind::Deny),
            outcome: Outcome::Enforced,
            reason: Some(refusal.reason().to_owned()),
            policies: Vec::new(),
            failure: None,
            latency_us: 0,
        };
        let decision = HookDecision {
            hook: event.hook,
            dialect: question.dialect,
            invocation: None,
            ids: trace_ids(question),
            tool: event.tool.as_deref().map(str::to_owned),
            guardians: vec![record],
            shadow: Vec::new(),
            hash_before: arguments_hash(&event.content.to_json(), &[]),
            hash_after: None,
            effective: VerdictKind::Deny,
            approval: None,
            policy_version: None,
            facts: None,
            content: None,
        };
        // Whoever may not speak for another is written down as itself.
        let agent = caller.id().clone();
        let run = run_of(event);
        let command = RecordDecision { stamp: self.stamp(caller), agent, run, decision: Box::new(decision) };
        self.ledger.record_decision(command).await?;
        Ok(HookAnswer::denied(refusal))
    }

    fn request(&self, question: &HookQuestion, tool: String, parameters: Map<String, Value>) -> CallRequest {
        let session = question.event.session.as_deref().and_then(|session| SessionName::parse(session).ok());
        CallRequest {
            tool,
            version: None,
            grant: None,
            agent: Some(question.agent.clone()),
            parameters,
            idempotency_key: None,
            context: GrantContext::default(),
            run: run_of(&question.event),
            session: None,
            approval_session: session.map(|session| (session, None)),
            approval_wait: question.terms.wait,
            label: None,
            observer: None,
            reasoning: question.event.reasoning.as_deref().map(str::to_owned),
            address: question.address,
        }
    }

    /// Walks a question down the path.
    async fn walk_question(
        self: &Arc<Self>,
        caller: Caller,
        question: HookQuestion,
        walk: Walk,
    ) -> Result<HookAnswer, Refusal> {
        let key = parked::key(&caller, &question, &walk.content);
        if question.terms.ask == AskForm::Hold {
            return self.walk_to_the_end(caller, question, walk, |_| {}).await;
        }
        match self.parked.look(&key, self.clock.now()) {
            Some(parked::State::Waiting(approval)) => return Ok(waits_for(approval)),
            Some(parked::State::Answered(answer)) => return Ok(*answer),
            None => {}
        }
        // Whoever asks is told at once that a person is asked; the wait goes on without it.
        let (asked, mut heard) = mpsc::unbounded_channel();
        let gate = Arc::clone(self);
        let waiting_key = key;
        let mut walking = tokio::spawn(async move {
            let tell = |approval| {
                gate.parked.wait(waiting_key, approval, gate.clock.now());
                let _ = asked.send(approval);
            };
            let answer = gate.walk_to_the_end(caller, question, walk, tell).await;
            gate.parked.answer(&waiting_key, answer.as_ref().ok(), gate.clock.now());
            answer
        });
        let broken = || Refusal::new(Code::Internal, "the question broke off inside the gate; see its log");
        tokio::select! {
            biased;
            Some(approval) = heard.recv() => Ok(waits_for(approval)),
            answer = &mut walking => answer.map_err(|_| broken())?,
        }
    }

    async fn walk_to_the_end(
        self: &Arc<Self>,
        caller: Caller,
        question: HookQuestion,
        walk: Walk,
        asked: impl Fn(ApprovalId),
    ) -> Result<HookAnswer, Refusal> {
        let Walk { tool, governed, parameters, content } = walk;
        let event = &question.event;
        let owned = |text: &Option<Cow<'static, str>>| text.as_deref().map(str::to_owned);
        let asked_hook = AskedHook {
            hook: event.hook,
            dialect: question.dialect,
            ids: trace_ids(&question),
            user: owned(&event.user),
            method: owned(&event.method),
            governed,
            tool: owned(&event.tool),
            content: content.clone(),
        };
        let named = match governed {
            true => event.tool.as_deref().unwrap_or_default().to_owned(),
            false => format!("{}.{}", tool.service, tool.name),
        };
        let (observer, mut progress) = mpsc::unbounded_channel();
        let request = CallRequest { observer: Some(observer), ..self.request(&question, named, parameters) };
        // A tool that the gate knows is found again on the path, with the grants that open it.
        let own = Own { tool: (!governed).then_some(tool), asked: Some(Arc::new(asked_hook)) };
        let mut walking = Box::pin(self.invoke_with(caller, request, own));
        let (mut approval, mut modified) = (None, None);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(step) = progress.recv() => match step {
                    Progress::Asked(asked_for) => {
                        asked(asked_for.id);
                        approval = Some(asked_for.id);
                    }
                    Progress::Modified(parameters) => modified = Some(*parameters),
                    Progress::Covered(_) | Progress::Admitted(_) => {}
                },
                outcome = &mut walking => break outcome,
            }
        };
        while let Ok(step) = progress.try_recv() {
            if let Progress::Modified(parameters) = step {
                modified = Some(*parameters);
            }
        }
        match outcome {
            Ok(answer) => {
                let changed = modified.map(|parameters| changed(&content, parameters)).transpose()?;
                let answer_of = HookAnswer::passed(changed);
                Ok(HookAnswer { approval, invocation: Some(answer.invocation), ..answer_of })
            }
            Err(Denial { invocation: Some(invocation), refusal }) => {
                let denied = HookAnswer::denied(&refusal);
                Ok(HookAnswer { invocation: Some(invocation), approval: approval.or(denied.approval), ..denied })
            }
            // No record, no answer.
            Err(Denial { invocation: None, refusal }) => Err(refusal),
        }
    }
}

/// What is walked down the path for a question.
struct Walk {
    tool: Arc<Tool>,
    governed: bool,
    parameters: Map<String, Value>,
    content: Content<'static>,
}

/// The content that the changed parameters stand for.
fn changed(content: &Content<'_>, parameters: Value) -> Result<Content<'static>, Refusal> {
    let json = match (content, parameters) {
        (Content::Arguments(_), parameters) => Some(parameters),
        (_, Value::Object(mut members)) => members.remove("content"),
        _ => None,
    };
    let lost = || Refusal::new(Code::Internal, "what guardians made of the question cannot be told");
    json.and_then(|json| content.with_json(json)).ok_or_else(lost)
}

fn deny(denial: Refused) -> HookAnswer {
    HookAnswer::denied(&refusal_of(denial))
}

fn waits_for(approval: ApprovalId) -> HookAnswer {
    let reason = format!("a person must approve this; ask again once approval {approval} is given");
    let refusal = Refusal::new(Code::ApprovalRequired, reason).with("approval_id", approval);
    HookAnswer::denied(&refusal)
}

fn trace_ids(question: &HookQuestion) -> TraceIds {
    let owned = |text: &Option<Cow<'static, str>>| text.as_deref().map(str::to_owned);
    let event = &question.event;
    TraceIds {
        execution: owned(&event.execution),
        session: owned(&event.session),
        turn: owned(&event.turn),
        step: owned(&event.step),
        request: question.request.clone(),
    }
}

/// The execution that a question belongs to: the conversation.
fn run_of(event: &HookEvent<'_>) -> Option<RunId> {
    event.session.as_deref().and_then(|session| RunId::parse(session).ok())
}

fn mark_scope(caller: &Caller, question: &HookQuestion) -> MarkScope {
    let session = question.event.session.as_deref().filter(|_| *caller.id() != question.agent);
    MarkScope { agent: question.agent.clone(), session: session.unwrap_or_default().to_owned() }
}

/// A tool that only whoever asks knows. What cannot stand in a name is written as `@` and its bytes, so that no two names
/// become one.
fn unknown_tool(named: &str, category: Category) -> Result<Tool, Refusal> {
    let mut name = String::with_capacity(named.len());
    for letter in named.chars() {
        if letter.is_ascii_alphanumeric() || "._:-".contains(letter) {
            name.push(letter);
            continue;
        }
        let mut buffer = [0; 4];
        for byte in letter.encode_utf8(&mut buffer).bytes() {
            name.push_str(&format!("@{byte:02x}"));
        }
    }
    let tool = match name.split_once('.') {
        Some((service, tool)) if !service.is_empty() && !tool.is_empty() => name.clone(),
        _ => format!("{NO_SERVICE}.{name}"),
    };
    external_tool(&tool, category)
}
