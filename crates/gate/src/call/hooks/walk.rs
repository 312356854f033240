//! A question on the path of calls: as far as a person's answer and the record, and carried out by whoever asks.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolgate_model::approval::SessionName;
use toolgate_model::context::GrantContext;
use toolgate_model::guard::{Content, VerdictKind};
use toolgate_model::id::ApprovalId;

use super::{AskForm, HookAnswer, HookQuestion, parked, run_of, trace_ids};
use crate::call::{AskedHook, Call, CallRequest, Denial, Modified, Own, Progress, Reached};
use crate::catalog::Tool;
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

/// What is walked down the path for a question.
pub(super) struct Walk {
    pub(super) tool: Arc<Tool>,
    pub(super) governed: bool,
    pub(super) parameters: Map<String, Value>,
    pub(super) content: Content<'static>,
}

impl Gate {
    pub(super) fn request(&self, question: &HookQuestion, tool: String, parameters: Map<String, Value>) -> CallRequest {
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
    pub(super) async fn walk_question(
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
            Some(parked::State::Answered(answer)) => {
                return self.still_answered(&caller, &question, walk, *answer).await;
            }
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

    /// The call that stands for a question, and what it brings along.
    fn on_its_way(&self, question: &HookQuestion, walk: Walk) -> (CallRequest, Own) {
        let Walk { tool, governed, parameters, content } = walk;
        let event = &question.event;
        let owned = |text: &Option<Cow<'static, str>>| text.as_deref().map(str::to_owned);
        let asked = AskedHook {
            hook: event.hook,
            dialect: question.dialect,
            ids: trace_ids(question),
            user: owned(&event.user),
            method: owned(&event.method),
            governed,
            tool: owned(&event.tool),
            content,
        };
        let named = match governed {
            true => event.tool.as_deref().unwrap_or_default().to_owned(),
            false => tool.service.with_tool(tool.name.as_str()),
        };
        // A tool that the gate knows is found again on the path, with the grants that open it.
        let own = Own { tool: (!governed).then_some(tool), asked: Some(Arc::new(asked)), ..Own::default() };
        (self.request(question, named, parameters), own)
    }

    /// What was answered when a person said yes, if it still holds: time has passed since.
    async fn still_answered(
        self: &Arc<Self>,
        caller: &Caller,
        question: &HookQuestion,
        walk: Walk,
        answer: HookAnswer,
    ) -> Result<HookAnswer, Refusal> {
        if answer.kind == VerdictKind::Deny {
            return Ok(answer);
        }
        let (request, own) = self.on_its_way(question, walk);
        let (call, _) = self.begin(caller.clone(), request)?;
        let call = Call { own_tool: own.tool, asked: own.asked, ..call };
        let mut reached = Reached::default();
        let checked = match self.check(&call, Freshness::Newest, &mut reached).await {
            Ok(constrained) => match constrained.into_alternatives().into_iter().next() {
                Some(first) => self.guard(&call, first, Freshness::Newest, &mut reached).await.map(drop),
                None => Err(Refusal::new(Code::GrantNotFound, "there is no grant for this call")),
            },
            Err(refusal) => Err(refusal),
        };
        match checked {
            Ok(()) => Ok(answer),
            Err(refusal) => self.refuse_question(caller, question, &refusal).await,
        }
    }

    async fn walk_to_the_end(
        self: &Arc<Self>,
        caller: Caller,
        question: HookQuestion,
        walk: Walk,
        asked: impl Fn(ApprovalId),
    ) -> Result<HookAnswer, Refusal> {
        let content = walk.content.clone();
        let (request, own) = self.on_its_way(&question, walk);
        let (observer, mut progress) = mpsc::unbounded_channel();
        let request = CallRequest { observer: Some(observer), ..request };
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
                    Progress::Modified(change) => modified = Some(*change),
                    Progress::Covered(_) | Progress::Admitted(_) => {}
                },
                outcome = &mut walking => break outcome,
            }
        };
        while let Ok(step) = progress.try_recv() {
            if let Progress::Modified(change) = step {
                modified = Some(*change);
            }
        }
        match outcome {
            Ok(answer) => {
                let passed = match modified {
                    Some(Modified { parameters, reason, policy }) => {
                        HookAnswer::changed(changed(&content, parameters)?, reason, policy)
                    }
                    None => HookAnswer::allowed(),
                };
                Ok(HookAnswer { approval, invocation: Some(answer.invocation), ..passed })
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

fn waits_for(approval: ApprovalId) -> HookAnswer {
    let reason = format!("a person must approve this; ask again once approval {approval} is given");
    let refusal = Refusal::new(Code::ApprovalRequired, reason).with("approval_id", approval);
    HookAnswer::denied(&refusal)
}
