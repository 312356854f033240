//! Hook requests of other agents' runtimes: at each point of an agent's loop they ask whether it may continue. Requests
//! about a tool run through the call pipeline, up to the point where the runtime executes the tool; the others are
//! evaluated and recorded.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_model::approval::Category;
use toolgate_model::guard::{Content, Direction, Hook, HookDecision, HookEvent, Verdict, VerdictKind};
use toolgate_model::hook::RunId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use self::executions::Executions;
use self::hook_run::HookRun;
use self::parked::Parked;
pub use self::question::{AskForm, HookQuestion, HookResponse, HookTerms, UnknownTools};
use self::record::decision_on;
use self::tools::Named;
pub(super) use self::tools::unknown_tool;
use super::guard::refusal_of;
use super::{Call, Pipeline, RunState, ToolStanding};
use crate::builtin::Builtins;
use crate::catalog::Catalogs;
use crate::gate::{Ports, Shared};
use crate::identify::Caller;
use crate::ports::clock::Clock;
use crate::ports::guardian::{Guardian, Hooked, HookedTool, Ruling};
use crate::ports::ledger::{Approvals, Calls, Credentials, Freshness, GrantLookup, MarkScope, RecordDecision};
use crate::refusal::{Code, Refusal};

mod executions;
mod hook_run;
mod names;
mod parked;
mod question;
mod record;
mod tools;

/// The service name for events that are not about a tool.
const HOOKS: &str = "hook";

/// Decides the hook requests of other runtimes.
pub struct Hooks {
    held_grants: Arc<dyn GrantLookup>,
    credentials: Arc<dyn Credentials>,
    approvals: Arc<dyn Approvals>,
    calls: Arc<dyn Calls>,
    guardian: Arc<dyn Guardian>,
    clock: Arc<dyn Clock>,
    catalogs: Arc<Catalogs>,
    builtins: Arc<Builtins>,
    pub(super) pipeline: Arc<Pipeline>,
    executions: Executions,
    parked: Parked,
}

impl Hooks {
    pub(crate) fn new(ports: &Ports, shared: &Shared, pipeline: Arc<Pipeline>) -> Self {
        Self {
            held_grants: ports.ledger.clone(),
            credentials: ports.ledger.clone(),
            approvals: ports.ledger.clone(),
            calls: ports.ledger.clone(),
            guardian: Arc::clone(&ports.guardian),
            clock: Arc::clone(&ports.clock),
            catalogs: Arc::clone(&shared.catalogs),
            builtins: Arc::clone(&shared.builtins),
            pipeline,
            executions: Executions::default(),
            parked: Parked::default(),
        }
    }

    /// Decides a hook request. Everything that can be decided is; a refusal means that there is no decision, because
    /// nothing could be recorded.
    pub async fn decide_hook(&self, caller: Caller, question: HookQuestion) -> Result<HookResponse, Refusal> {
        if let Err(refusal) = caller.require_acting_for(&question.agent).and(caller.require(Permission::InvokeTools)) {
            return self.refuse_question(&caller, &question, &refusal).await;
        }
        match question.event.hook {
            Hook::ToolCallRequest => self.decide_tool_call(caller, question).await,
            _ => self.decide_event(caller, question).await,
        }
    }

    /// The calling runtime is about to call a tool.
    async fn decide_tool_call(&self, caller: Caller, question: HookQuestion) -> Result<HookResponse, Refusal> {
        let Content::Arguments(arguments) = &question.event.content else {
            return Err(Refusal::new(Code::Internal, "a tool call has no arguments"));
        };
        let name = question.event.tool.clone().unwrap_or_default();
        let named = match self.asked_tool(&caller, &question, &name).await {
            Ok(named) => named,
            Err(refusal) => return self.refuse_question(&caller, &question, &refusal).await,
        };
        let parameters = arguments.clone().into_owned();
        let hook_run =
            HookRun { named: named.clone(), parameters, content: Content::Arguments(Cow::Owned(Map::new())) };
        let response = self.run_question(caller.clone(), &question, hook_run).await?;
        if response.kind != VerdictKind::Deny {
            self.executions.remember(&caller, &question, named);
        }
        Ok(response)
    }

    /// Any other event: evaluated, and recorded before the response. It becomes a call only if it needs an approver.
    async fn decide_event(&self, caller: Caller, question: HookQuestion) -> Result<HookResponse, Refusal> {
        if let Err(refusal) = self.check_message(&caller, &question).await {
            return self.refuse_question(&caller, &question, &refusal).await;
        }
        let answered = match question.event.hook {
            Hook::ToolCallResult => match self.result_tool(&caller, &question).await {
                Ok(named) => Some(named),
                Err(refusal) => return self.refuse_question(&caller, &question, &refusal).await,
            },
            _ => None,
        };
        let Ruling { verdict, decision, .. } = self.rule_on_event(&caller, &question, answered.as_ref()).await?;
        let response = match verdict {
            Verdict::Pass { asks, .. } if !asks.is_empty() => {
                let hook = question.event.hook;
                let tool = Some(Arc::new(unknown_tool(&format!("{HOOKS}.{}", hook.as_str()), Category::Mcp)?));
                let content = question.event.content.clone();
                let parameters = Map::from_iter([("content".to_owned(), content.to_json())]);
                let named = Named { tool, standing: ToolStanding::Foreign };
                return self.run_question(caller, &question, HookRun { named, parameters, content }).await;
            }
            Verdict::Pass { content: None, .. } => HookResponse::allowed(),
            Verdict::Pass { content: Some(content), .. } => {
                let (reason, policy) = decision.as_deref().map(HookDecision::why_changed).unwrap_or_default();
                HookResponse::changed(*content, reason, policy)
            }
            Verdict::Deny(denial) => HookResponse::denied(&refusal_of(denial)),
        };
        let decision = decision.unwrap_or_else(|| Box::new(decision_on(&question, None)));
        self.record_question(&caller, question.agent.clone(), &question, decision).await?;
        Ok(response)
    }

    /// An MCP message that calls a tool of this gate must be one that the agent could send here: everything is checked
    /// but the rate, which counts calls.
    async fn check_message(&self, caller: &Caller, question: &HookQuestion) -> Result<(), Refusal> {
        let event = &question.event;
        let (Hook::Mcp(Direction::Outbound), Some(named), Content::Message(message)) =
            (event.hook, event.tool.as_deref(), &event.content)
        else {
            return Ok(());
        };
        // A name without a service belongs to the MCP server.
        if !self.governs(caller.tenant(), named, false).await? {
            return Ok(());
        }
        let arguments = message.pointer("/params/arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        let (call, _) = self.pipeline.begin(caller.clone(), self.request(question, named.to_owned(), arguments))?;
        let call = Arc::new(Call { takes_changes: false, waits: false, ..call });
        let mut run_state = RunState::default();
        let constrained = self.pipeline.check(&call, Freshness::Newest, &mut run_state).await?;
        let missing = || Refusal::new(Code::GrantNotFound, "there is no grant for this call");
        let preferred = constrained.into_alternatives().into_iter().next().ok_or_else(missing)?;
        let guarded = self.pipeline.guard(&call, preferred, Freshness::Newest, &mut run_state).await?;
        self.pipeline.require_passable(&call, &guarded).await
    }

    async fn rule_on_event(
        &self,
        caller: &Caller,
        question: &HookQuestion,
        answered: Option<&Named>,
    ) -> Result<Ruling, Refusal> {
        let HookQuestion { event, agent, .. } = question;
        let now = self.clock.now();
        let held_grants = self.held_grants.held_grants(caller.tenant(), agent, now, Freshness::Recent).await?;
        let run = run_of(event);
        let hooked = Hooked {
            event,
            dialect: question.dialect,
            request: question.request.as_deref(),
            tenant: caller.tenant(),
            invocation: None,
            agent,
            principal: held_grants.agent.as_ref(),
            actor: caller.principal(),
            tool: answered.and_then(|Named { tool, standing }| Some((tool.as_deref()?, standing))).map(
                |(tool, standing)| HookedTool {
                    service: &tool.service,
                    name: tool.qualified_name(),
                    definition: &tool.definition,
                    external: !standing.is_governed(),
                    registry: None,
                },
            ),
            arguments: None,
            run: run.as_ref(),
            marks: mark_scope(caller, question),
            address: question.address,
            // No admission follows that would check again.
            freshness: Freshness::Newest,
            secrets: Some(&[]),
        };
        self.guardian.judge(&hooked).await
    }

    /// Denies a hook request without consulting anyone, and records it.
    async fn refuse_question(
        &self,
        caller: &Caller,
        question: &HookQuestion,
        refusal: &Refusal,
    ) -> Result<HookResponse, Refusal> {
        // A caller that may not act for another agent is recorded as itself.
        let speaks = caller.require_acting_for(&question.agent).is_ok();
        let agent = if speaks { question.agent.clone() } else { caller.id().clone() };
        self.record_question(caller, agent, question, Box::new(decision_on(question, Some(refusal)))).await?;
        Ok(HookResponse::denied(refusal))
    }

    async fn record_question(
        &self,
        caller: &Caller,
        agent: PrincipalId,
        question: &HookQuestion,
        decision: Box<HookDecision>,
    ) -> Result<(), Refusal> {
        let command =
            RecordDecision { audit: caller.audit(self.clock.now()), agent, run: run_of(&question.event), decision };
        self.calls.record_decision(command).await
    }
}

/// The run of a hook request: its conversation.
fn run_of(event: &HookEvent<'_>) -> Option<RunId> {
    event.session.as_deref().and_then(|session| RunId::parse(session).ok())
}

fn mark_scope(caller: &Caller, question: &HookQuestion) -> MarkScope {
    let session = question.event.session.as_deref().filter(|_| *caller.id() != question.agent);
    MarkScope { agent: question.agent.clone(), session: session.unwrap_or_default().to_owned() }
}
