//! A hook request in the call pipeline: up to the approval and the record. The calling runtime executes the tool.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolgate_model::approval::SessionName;
use toolgate_model::guard::Content;
use toolgate_model::id::ApprovalId;
use toolgate_model::time::Timestamp;

use super::Hooks;
use super::record::trace_ids;
use super::tools::Named;
use super::{AskForm, HookQuestion, HookResponse, parked, run_of};
use crate::call::{AskedHook, CallOptions, CallRequest, Denial, Modified, Progress};
use crate::identify::Caller;
use crate::ports::ledger::AskedApproval;
use crate::refusal::{Code, Refusal};

/// The call for a hook request, as it enters the pipeline.
pub(super) struct HookRun {
    pub(super) named: Named,
    pub(super) parameters: Map<String, Value>,
    pub(super) content: Content<'static>,
}

impl Hooks {
    pub(super) fn request(&self, question: &HookQuestion, tool: String, parameters: Map<String, Value>) -> CallRequest {
        let session = question.event.session.as_deref().and_then(|session| SessionName::parse(session).ok());
        CallRequest {
            agent: Some(question.agent.clone()),
            run: run_of(&question.event),
            approval_session: session.map(|session| (session, None)),
            approval_wait: question.terms.wait,
            reasoning: question.event.reasoning.as_deref().map(str::to_owned),
            ..CallRequest::new(tool, parameters, question.address)
        }
    }

    /// Runs a hook request through the pipeline.
    pub(super) async fn run_question(
        &self,
        caller: Caller,
        question: &HookQuestion,
        hook_run: HookRun,
    ) -> Result<HookResponse, Refusal> {
        if question.terms.ask == AskForm::Hold {
            return Ok(self.run_to_completion(caller, question, hook_run, CallOptions::default()).await?.0);
        }
        // The response says at once that an approval is pending, and nothing waits for it.
        let key = parked::key(&caller, question);
        let mut answered = None;
        if let Some(approval) = self.parked.find(&key) {
            let now = self.clock.now();
            match self.approvals.approval(caller.tenant(), approval).await? {
                Some(open) if open.status.is_open() && open.expires_at > now => {
                    return self.refuse_question(&caller, question, &waits_for(approval)).await;
                }
                Some(ended) if parked::is_fresh(&ended, now) => answered = self.parked.take(&key),
                _ => drop(self.parked.take(&key)),
            }
        }
        let answered = answered.map(|approval| AskedApproval { approval, first: true }).into_iter().collect();
        let options = CallOptions { waits: false, answered, ..CallOptions::default() };
        let (response, asked) = self.run_to_completion(caller, question, hook_run, options).await?;
        if let Some((approval, expires_at)) = asked {
            self.parked.wait(key, approval, expires_at, self.clock.now());
        }
        Ok(response)
    }

    /// The call for a hook request, with its options.
    fn call_for_question(
        &self,
        question: &HookQuestion,
        hook_run: HookRun,
        options: CallOptions,
    ) -> (CallRequest, CallOptions) {
        let HookRun { named: Named { tool, standing }, parameters, content } = hook_run;
        let event = &question.event;
        let owned = |text: &Option<Cow<'static, str>>| text.as_deref().map(str::to_owned);
        let asked = AskedHook {
            hook: event.hook,
            dialect: question.dialect,
            ids: trace_ids(question),
            user: owned(&event.user),
            method: owned(&event.method),
            standing,
            tool: owned(&event.tool),
            content,
        };
        let (name, tool) = match tool {
            Some(tool) if !standing.is_governed() => (tool.qualified_name().to_owned(), Some(tool)),
            // A tool that the gate knows is resolved again in the pipeline, with its grants.
            _ => (event.tool.as_deref().unwrap_or_default().to_owned(), None),
        };
        (self.request(question, name, parameters), CallOptions { tool, asked: Some(Arc::new(asked)), ..options })
    }

    /// The outcome of the hook request, and the approval that was requested.
    async fn run_to_completion(
        &self,
        caller: Caller,
        question: &HookQuestion,
        hook_run: HookRun,
        options: CallOptions,
    ) -> Result<(HookResponse, Option<(ApprovalId, Timestamp)>), Refusal> {
        let (request, options) = self.call_for_question(question, hook_run, options);
        let (observer, mut progress) = mpsc::unbounded_channel();
        let request = CallRequest { observer: Some(observer), ..request };
        let answered = options.answered.first().map(|asked| asked.approval);
        let mut running = Box::pin(self.pipeline.invoke_with(caller, request, options));
        let (mut asked, mut modified) = (None, None);
        let mut note_progress = |step| match step {
            // Nothing else is kept while the call waits.
            Progress::Asked(approval) => asked = Some((approval.id, approval.expires_at)),
            Progress::Modified(change) => modified = Some(*change),
            Progress::Covered(_) | Progress::Admitted(_) | Progress::Upstream(_) => {}
        };
        let outcome = loop {
            tokio::select! {
                biased;
                Some(step) = progress.recv() => note_progress(step),
                outcome = &mut running => break outcome,
            }
        };
        while let Ok(step) = progress.try_recv() {
            note_progress(step);
        }
        let approval = asked.map(|(approval, _)| approval).or(answered);
        let response = match outcome {
            Ok(response) => {
                let passed = match (&response.outcome.error, modified) {
                    // A call that ended in an error here must not be executed elsewhere.
                    (Some(error), _) => HookResponse::failed(error),
                    (None, Some(Modified { parameters, reason, policy })) => {
                        HookResponse::changed(changed(&question.event.content, parameters)?, reason, policy)
                    }
                    (None, None) => HookResponse::allowed(),
                };
                HookResponse { approval, invocation: Some(response.invocation), ..passed }
            }
            Err(Denial { invocation: Some(invocation), refusal, .. }) => {
                let denied = HookResponse::denied(&refusal);
                HookResponse { invocation: Some(invocation), approval: approval.or(denied.approval), ..denied }
            }
            // No record, no response.
            Err(Denial { invocation: None, refusal, .. }) => return Err(refusal),
        };
        Ok((response, asked))
    }
}

/// The content for the modified parameters.
fn changed(content: &Content<'_>, parameters: Value) -> Result<Content<'static>, Refusal> {
    let json = match (content, parameters) {
        (Content::Arguments(_), parameters) => Some(parameters),
        (_, Value::Object(mut members)) => members.remove("content"),
        _ => None,
    };
    let lost = || Refusal::new(Code::Internal, "the modified content does not fit the hook request");
    json.and_then(|json| content.with_json(json)).ok_or_else(lost)
}

fn waits_for(approval: ApprovalId) -> Refusal {
    let reason = format!("a person must approve this; ask again once approval {approval} is given");
    Refusal::new(Code::ApprovalRequired, reason).with("approval_id", approval)
}
