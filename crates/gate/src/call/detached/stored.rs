//! The sealed parts of a detached call: the caller's request and the outcome.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_model::approval::{CallLabel, SessionName, Workspace};
use toolgate_model::client_input::ClientInput;
use toolgate_model::context::GrantContext;
use toolgate_model::hook::RunId;
use toolgate_model::id::{GrantId, InvocationId, SessionId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::principal::PrincipalId;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::service::ServiceVersion;
use toolgate_model::time::Timestamp;
use toolgate_model::trace_context::TraceParent;

use crate::call::{Call, CallRequest, CallResult, Denial};
use crate::ports::ledger::DetachedCall;
use crate::refusal::{Code, Refusal, Stage};
use crate::request_context::{CallerTrace, RequestId};

/// The field of the sealed material that holds the JSON.
pub(super) const FIELD: &str = "json";

/// The caller's request.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRequest {
    tool: String,
    version: Option<ServiceVersion>,
    grant: Option<GrantId>,
    agent: PrincipalId,
    parameters: Map<String, Value>,
    idempotency_key: Option<IdempotencyKey>,
    context: GrantContext,
    run: Option<RunId>,
    session: Option<SessionId>,
    approval_session: Option<(SessionName, Option<Workspace>)>,
    approval_wait_seconds: Option<u64>,
    label: Option<CallLabel>,
    reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Box<ClientInput>>,
    address: IpAddr,
    pub(super) arrived: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The caller's span; its flag is the sampling decision of the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl StoredRequest {
    pub(super) fn of(call: &Call) -> Self {
        let (session, traced) = (call.approval_session.as_ref(), call.traced.as_deref());
        Self {
            tool: call.tool.clone(),
            version: call.version.clone(),
            grant: call.grant,
            agent: call.agent.clone(),
            parameters: call.parameters.as_object().cloned().unwrap_or_default(),
            idempotency_key: call.idempotency_key.clone(),
            context: call.context.clone(),
            run: call.run.clone(),
            session: call.session,
            approval_session: session.map(|session| (session.name.clone(), session.workspace.clone())),
            approval_wait_seconds: call.approval_wait.map(|wait| wait.as_secs()),
            label: call.label.clone(),
            reasoning: call.reasoning.clone(),
            input: call.input.clone(),
            address: call.address,
            arrived: call.arrived,
            request_id: call.request.map(|id| id.to_string()),
            traceparent: traced
                .and_then(|traced| Some(TraceParent { span: traced.parent?, ..traced.context }.to_string())),
            tracestate: traced.and_then(|traced| traced.state.as_deref()).map(str::to_owned),
        }
    }

    pub(super) fn read(material: &Material) -> Result<Self, Refusal> {
        let unreadable = || Refusal::new(Code::Internal, "the stored request of this call cannot be read; call again");
        let text = material.get(FIELD).ok_or_else(unreadable)?;
        serde_json::from_str(text.expose()).map_err(|_| unreadable())
    }

    /// What is known without the sealed request, for the record of the refusal.
    pub(super) fn lost(call: &DetachedCall) -> Self {
        Self {
            tool: call.tool.clone(),
            version: None,
            grant: None,
            agent: call.agent.clone(),
            parameters: Map::new(),
            idempotency_key: call.idempotency_key.clone(),
            context: GrantContext::default(),
            run: None,
            session: None,
            approval_session: None,
            approval_wait_seconds: None,
            label: None,
            reasoning: None,
            input: None,
            address: IpAddr::from([0, 0, 0, 0]),
            arrived: call.created_at,
            request_id: None,
            traceparent: None,
            tracestate: None,
        }
    }

    pub(super) fn request_id(&self) -> Option<RequestId> {
        self.request_id.as_deref().and_then(RequestId::parse)
    }

    /// Trusted, because the gate itself set the flag.
    pub(super) fn caller_trace(&self) -> Option<CallerTrace> {
        let parent = TraceParent::parse(self.traceparent.as_deref()?)?;
        Some(CallerTrace { parent, state: self.tracestate.as_deref().map(Arc::from), is_trusted: true })
    }

    pub(super) fn into_request(self) -> CallRequest {
        CallRequest {
            version: self.version,
            grant: self.grant,
            agent: Some(self.agent),
            idempotency_key: self.idempotency_key,
            context: self.context,
            run: self.run,
            session: self.session,
            approval_session: self.approval_session,
            approval_wait: self.approval_wait_seconds.map(Duration::from_secs),
            label: self.label,
            reasoning: self.reasoning,
            input: self.input,
            ..CallRequest::new(self.tool, self.parameters, self.address)
        }
    }
}

/// The outcome for the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum StoredOutcome {
    Answered(Box<CallResult>),
    Refused {
        invocation: InvocationId,
        code: String,
        reason: String,
        stage: Option<String>,
        details: Map<String, Value>,
    },
}

impl StoredOutcome {
    pub(crate) fn answered(answer: &CallResult) -> Self {
        Self::Answered(Box::new(answer.clone()))
    }

    pub(crate) fn refused(invocation: InvocationId, refusal: &Refusal) -> Self {
        Self::Refused {
            invocation,
            code: refusal.code().as_str().to_owned(),
            reason: refusal.reason().to_owned(),
            stage: refusal.stage().map(|stage| stage.as_str().to_owned()),
            details: refusal.details().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        }
    }

    pub(super) fn material(&self) -> Option<Material> {
        let mut material = Material::new();
        material.insert(FIELD.to_owned(), Secret::new(serde_json::to_string(self).ok()?));
        Some(material)
    }

    pub(super) fn read(material: &Material) -> Result<Self, Refusal> {
        let unreadable = || Refusal::new(Code::Internal, "the stored outcome of this call cannot be read");
        let text = material.get(FIELD).ok_or_else(unreadable)?;
        serde_json::from_str(text.expose()).map_err(|_| unreadable())
    }

    /// As the caller would have received it on its connection.
    pub(super) fn into_result(self) -> Result<CallResult, Denial> {
        match self {
            Self::Answered(result) => Ok(*result),
            Self::Refused { invocation, code, reason, stage, details } => {
                let code = Code::ALL.iter().copied().find(|known| known.as_str() == code).unwrap_or(Code::Internal);
                let refusal = details
                    .into_iter()
                    .fold(Refusal::new(code, reason), |refusal, (name, value)| refusal.with(&name, value));
                let stage = stage.and_then(|stage| Stage::parse(&stage));
                let refusal = stage.map_or(refusal.clone(), |stage| refusal.at(stage));
                Err(Denial::refused(Some(invocation), refusal))
            }
        }
    }
}
