//! The questions of other agents' runtimes: at each point of an agent's loop they ask whether it may go on. What is about
//! a tool walks the path of every call, up to the point where somebody else carries it out; the rest is judged and
//! written down.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Map;
use toolgate_model::approval::Category;
use toolgate_model::arguments::arguments_hash;
use toolgate_model::guard::{
    Content, Dialect, GuardMode, GuardianRecord, Hook, HookDecision, HookEvent, Outcome, TraceIds, Verdict, VerdictKind,
};
use toolgate_model::hook::RunId;
use toolgate_model::permission::Permission;

use self::executions::Remembered;
pub use self::question::{AskForm, HookAnswer, HookQuestion, HookTerms, UnknownTools};
use self::tools::unknown_tool;
use self::walk::Walk;
use super::guard::refusal_of;
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::guardian::{Hooked, HookedTool, Ruling};
use crate::ports::ledger::{Freshness, MarkScope, RecordDecision};
use crate::refusal::{Code, Refusal};

pub(crate) mod executions;
pub(crate) mod parked;
mod question;
mod tools;
mod walk;

/// Under which name the gate itself says no in the record.
const GATE: &str = "gate";
/// What stands for the service of what is no tool.
const HOOKS: &str = "hook";

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
            Verdict::Pass { content: None, .. } => HookAnswer::allowed(),
            Verdict::Pass { content: Some(content), .. } => {
                let (reason, policy) = decision.as_deref().map(HookDecision::why_changed).unwrap_or_default();
                HookAnswer::changed(*content, reason, policy)
            }
            Verdict::Deny(denial) => HookAnswer::denied(&refusal_of(denial)),
        };
        if let Some(decision) = decision {
            let run = run_of(&question.event);
            let command = RecordDecision { stamp: self.stamp(&caller), agent: question.agent, run, decision };
            self.ledger.record_decision(command).await?;
        }
        Ok(answer)
    }

    async fn rule_on_event(self: &Arc<Self>, caller: &Caller, question: &HookQuestion) -> Result<Ruling, Refusal> {
        let HookQuestion { event, agent, .. } = question;
        let now = self.clock.now();
        let holdings = self.ledger.holdings(caller.tenant(), agent, now, Freshness::Recent).await?;
        let answered = match event.hook {
            Hook::ToolCallResult => Some(self.answered_tool(caller, question).await?),
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
            tool: answered.as_ref().map(|Remembered { tool, governed }| HookedTool {
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
            // Nothing is admitted that would be checked again.
            freshness: Freshness::Newest,
            secrets: Some(&[]),
        };
        self.guardian.judge(&hooked).await
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
        };
        // Whoever may not speak for another is written down as itself.
        let agent = caller.id().clone();
        let run = run_of(event);
        let command = RecordDecision { stamp: self.stamp(caller), agent, run, decision: Box::new(decision) };
        self.ledger.record_decision(command).await?;
        Ok(HookAnswer::denied(refusal))
    }
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
