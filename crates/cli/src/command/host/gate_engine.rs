//! The engine over HTTP.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_api::approvals::{
    CallSession, DecideApproval, DecisionRequest, FollowApprovals, SessionTermsRequest, SetApprovalSession,
    ShowApprovalSession,
};
use toolgate_api::tools::{CallRequest, InvokeTool};
use toolgate_model::approval::{Channel, Decision, Mode, SessionName, Workspace};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::PrincipalId;

use super::engine::{Decided, Ended, Engine, EngineCall, EngineError, ProgressReporter, Verdict};
use super::reading::{self, Step};
use crate::client::{Client, ClientError, Events};
use crate::clock::pause;
use crate::output::clean_lines;

/// The delay before the event stream is opened again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The limit of the gate for a reason, in bytes.
const MAX_REASON: usize = 2_000;

pub(super) struct GateEngine {
    pub(super) client: Client,
    /// The agent of the calls, if the key belongs to another principal.
    pub(super) agent: Option<PrincipalId>,
    pub(super) session: SessionName,
    pub(super) workspace: Workspace,
}

impl GateEngine {
    pub(super) async fn mode(&self) -> Result<Mode, EngineError> {
        effective_mode(self.client.to::<ShowApprovalSession>().at(&self.session).send_as().await)
    }

    /// Attends the approvals: from the time that this returns, for as long as the returned future is polled.
    pub(super) async fn attend(&self) -> impl Future<Output = Infallible> {
        let mut following = self.follow().await;
        async move {
            loop {
                if let Ok(flow) = &mut following {
                    // Each call receives its own events.
                    while flow.next().await.is_ok() {}
                }
                pause(RETRY_INTERVAL).await;
                following = self.follow().await;
            }
        }
    }

    /// A principal that follows approvals counts as attending.
    async fn follow(&self) -> Result<Events<'_, Value>, ClientError> {
        self.client.to::<FollowApprovals>().events_as().await
    }

    async fn run(&self, call: EngineCall, progress_reporter: &mut impl ProgressReporter) -> Result<Ended, ClientError> {
        let body = CallRequest {
            tool: Some(call.tool),
            parameters: Some(call.arguments),
            approval_session: Some(CallSession { name: self.session.clone(), workspace: Some(self.workspace.clone()) }),
            call_id: Some(call.label),
            agent_id: self.agent.clone(),
            ..CallRequest::default()
        };
        let mut lines = self.client.to::<InvokeTool>().body(&body).lines_as().await?;
        while let Some(line) = lines.next().await? {
            match reading::step(line) {
                Some(Step::Progress(progress)) => progress_reporter.send(progress).await,
                Some(Step::Quiet) => {}
                Some(Step::Ended(ended)) => return Ok(ended),
                None => return Ok(reading::broken(STRANGE.to_owned())),
            }
        }
        Ok(reading::broken(
            "the response of the gate ended before the outcome of the call; check the log of the gate".to_owned(),
        ))
    }
}

const STRANGE: &str = "could not parse a step of the call; use the same version of toolgate as the gate";

impl Engine for GateEngine {
    async fn call(&self, call: EngineCall, mut progress_reporter: impl ProgressReporter) -> Ended {
        match self.run(call, &mut progress_reporter).await {
            Ok(ended) => ended,
            Err(ClientError::Refused { body, .. }) => reading::ended(json!(body)),
            Err(error) => reading::broken(error.to_string()),
        }
    }

    async fn decide(&self, approval: &str, verdict: &Verdict) -> Result<Decided, EngineError> {
        let body = DecisionRequest {
            decision: if verdict.approved { Decision::Approve } else { Decision::Deny },
            scope: verdict.approved.then(|| verdict.scope.to_decision()),
            reason: verdict.reason.as_deref().map(acceptable),
            answer: verdict.answer.clone(),
            idempotency_key: IdempotencyKey::parse(&verdict.key).ok(),
            channel: Some(Channel::Host),
        };
        let send = || self.client.to::<DecideApproval>().named(approval).body(&body).send_as();
        let mut outcome = send().await;
        if matches!(outcome, Err(ClientError::BrokenOff { .. })) {
            // It may have been counted already; with the same key it is not counted twice.
            outcome = send().await;
        }
        decided(&outcome.map_err(EngineError::from)?)
    }

    async fn set_mode(&self, mode: Mode) -> Result<Mode, EngineError> {
        let body = SessionTermsRequest { mode: Some(mode.as_str().to_owned()), ..SessionTermsRequest::default() };
        effective_mode(self.client.to::<SetApprovalSession>().at(&self.session).body(&body).send_as().await)
    }
}

impl From<ClientError> for EngineError {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match &error {
            ClientError::Refused { body, .. } => match body.code() {
                "APPROVAL_DECIDED" => Self::Already(message),
                "APPROVAL_ENDED" => Self::Expired(message),
                _ if error.may_pass() => Self::Unavailable(message),
                _ => Self::Refused(message),
            },
            _ => Self::Unavailable(message),
        }
    }
}

fn effective_mode(session: Result<Value, ClientError>) -> Result<Mode, EngineError> {
    let session = session.map_err(EngineError::from)?;
    let mode = session.get("mode").and_then(Value::as_str).and_then(|word| Mode::parse(word).ok());
    mode.ok_or_else(|| EngineError::Refused("the response of the gate does not contain the mode".to_owned()))
}

fn decided(approval: &Value) -> Result<Decided, EngineError> {
    let count = |path: &str| approval.pointer(path).and_then(Value::as_u64).unwrap_or(1);
    let notice = || approval.get("notice").and_then(Value::as_str).map(str::to_owned);
    match approval.get("status").and_then(Value::as_str) {
        Some("approved") => Ok(Decided::Ended { approved: true, notice: notice() }),
        Some("denied") => Ok(Decided::Ended { approved: false, notice: notice() }),
        Some("pending") => {
            Ok(Decided::Counted { given: count("/approvers/given"), needed: count("/approvers/needed") })
        }
        _ => {
            Err(EngineError::Refused("the response of the gate does not contain the status of the approval".to_owned()))
        }
    }
}

/// Shortens a reason to what the gate accepts: a denial must not fail because of its reason.
fn acceptable(reason: &str) -> String {
    let mut accepted = String::new();
    for letter in clean_lines(reason).chars() {
        if accepted.len() + letter.len_utf8() > MAX_REASON {
            break;
        }
        accepted.push(letter);
    }
    accepted
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::client::Refused;

    fn refused(status: StatusCode, code: &str) -> EngineError {
        ClientError::Refused { status, body: Box::new(Refused::sample(code, "no", json!({}))) }.into()
    }

    #[test]
    fn late_answers_are_told_apart_from_refused_ones_and_from_a_gate_that_is_away() {
        assert!(matches!(refused(StatusCode::CONFLICT, "APPROVAL_DECIDED"), EngineError::Already(_)));
        assert!(matches!(refused(StatusCode::GONE, "APPROVAL_ENDED"), EngineError::Expired(_)));
        assert!(matches!(refused(StatusCode::FORBIDDEN, "PERMISSION_DENIED"), EngineError::Refused(_)));
        assert!(matches!(refused(StatusCode::SERVICE_UNAVAILABLE, "LEDGER_UNAVAILABLE"), EngineError::Unavailable(_)));
        let away = ClientError::Unreachable { url: "http://gate".to_owned(), reason: "refused".to_owned() };
        assert!(matches!(EngineError::from(away), EngineError::Unavailable(_)));
    }

    #[test]
    fn only_an_approval_that_says_so_is_approved() {
        let ended = |approved| Ok(Decided::Ended { approved, notice: None });
        assert_eq!(decided(&json!({"status": "approved", "notice": null})), ended(true));
        assert_eq!(decided(&json!({"status": "denied"})), ended(false));
        let waiting = json!({"status": "pending", "approvers": {"needed": 2, "given": 1}});
        assert_eq!(decided(&waiting), Ok(Decided::Counted { given: 1, needed: 2 }));
        for strange in [json!({}), json!({"status": "Approved"}), json!({"status": true})] {
            assert!(decided(&strange).is_err(), "{strange}");
        }
    }

    #[test]
    fn a_no_does_not_fail_for_its_words() {
        assert_eq!(acceptable("too dangerous"), "too dangerous");
        assert_eq!(acceptable("a\u{1b}[31m\nb"), "a\\u{1b}[31m\nb");
        assert!(acceptable(&"€".repeat(2_000)).len() <= MAX_REASON);
    }
}
