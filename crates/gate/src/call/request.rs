//! A call as it is received, and as the stages pass it on.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_model::approval::{ApprovalSession, CallLabel, MAX_WAIT, SessionName, Workspace};
use toolgate_model::client_input::ClientInput;
use toolgate_model::context::GrantContext;
use toolgate_model::guard::{Content, Dialect, Hook, TraceIds};
use toolgate_model::hook::{CallTrace, RunId};
use toolgate_model::id::{GrantId, InvocationId, SessionId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, PrincipalKind};
use toolgate_model::service::ServiceVersion;
use toolgate_model::time::Timestamp;

use super::Pipeline;
use super::context::CallTask;
use super::eligible::Candidate;
use super::presence::Presence;
use super::progress::{Observer, Progress};
use super::stream::StreamSink;
use super::trace::trace_of;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::ports::client_link::ClientLink;
use crate::ports::ledger::AskedApproval;
use crate::ports::telemetry::TracedCall;
use crate::refusal::{Code, Refusal};
use crate::request_context::{RequestContext, RequestId};

/// Where approvers see what the client has sent for a server, among the arguments.
const RESPONSES: &str = "io.modelcontextprotocol/inputResponses";

/// A call as a transport decodes it.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tool, as the caller names it: `service.tool`, or a scope that only one tool has.
    pub tool: String,
    /// The version of the service's definition; `None` selects the version of the credential, or the newest.
    pub version: Option<ServiceVersion>,
    /// `None` lets the gate select one.
    pub grant: Option<GrantId>,
    /// `None` is the caller itself.
    pub agent: Option<PrincipalId>,
    pub parameters: Map<String, Value>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// The intent, plan and task that it belongs to.
    pub context: GrantContext,
    /// `None` starts a new run.
    pub run: Option<RunId>,
    /// The tool session that it belongs to.
    pub session: Option<SessionId>,
    /// The conversation that it belongs to, and its working directory.
    pub approval_session: Option<(SessionName, Option<Workspace>)>,
    /// How long it waits for an approver if its tool does not say; `None` uses the value of its session or of the gate.
    pub approval_wait: Option<Duration>,
    /// The caller's name for the call.
    pub label: Option<CallLabel>,
    pub observer: Option<Observer>,
    /// Takes the events of a streamed result; `None` if the caller wants the result as a whole.
    pub stream: Option<StreamSink>,
    /// Why the agent makes the call, in its own words: for policies and guardians.
    pub reasoning: Option<String>,
    /// What its client can be asked for, and what it has sent; `None` if it cannot be asked.
    pub input: Option<Box<ClientInput>>,
    /// The client itself, if it can be asked while the call is executed.
    pub client: Option<Arc<dyn ClientLink>>,
    /// Whether the caller still waits, if the transport knows: then it runs the call in a task that outlives the
    /// connection. Otherwise the caller waits as long as it awaits the outcome.
    pub presence: Option<Presence>,
    pub address: IpAddr,
}

impl CallRequest {
    /// A call of this tool with defaults for everything else.
    pub fn new(tool: String, parameters: Map<String, Value>, address: IpAddr) -> Self {
        Self {
            tool,
            version: None,
            grant: None,
            agent: None,
            parameters,
            idempotency_key: None,
            context: GrantContext::default(),
            run: None,
            session: None,
            approval_session: None,
            approval_wait: None,
            label: None,
            observer: None,
            stream: None,
            reasoning: None,
            input: None,
            client: None,
            presence: None,
            address,
        }
    }
}

/// When a call that may be detached is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Detaching {
    /// Where the operator, the tool or the agent says so.
    #[default]
    WhereConfigured,
    /// Whenever it would wait for an approver.
    Always,
    /// The same, and whoever makes the same call again gets what came of it.
    ToBePickedUp,
}

/// What a transport sets for a call besides its request.
pub(super) struct CallOptions {
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) asked: Option<Arc<AskedHook>>,
    pub(super) takes_changes: bool,
    /// Whether it waits for an approver's decision. Otherwise it is refused with the approval, which stays open.
    pub(super) waits: bool,
    /// The approvals that were requested in an earlier run of the same call.
    pub(super) answered: Vec<AskedApproval>,
    /// Whether it is detached instead of waiting for an approver.
    pub(super) may_detach: bool,
    pub(super) detaching: Detaching,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            tool: None,
            asked: None,
            takes_changes: true,
            waits: true,
            answered: Vec::new(),
            may_detach: false,
            detaching: Detaching::default(),
        }
    }
}

/// A call in the pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: InvocationId,
    pub(crate) caller: Caller,
    pub(crate) agent: PrincipalId,
    pub(crate) tool: String,
    pub(crate) version: Option<ServiceVersion>,
    pub(crate) grant: Option<GrantId>,
    /// INVARIANT: an object.
    pub(crate) parameters: Value,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) context: GrantContext,
    /// The task of this gate in its context, once that is checked.
    pub(crate) task: Option<CallTask>,
    pub(crate) run: Option<RunId>,
    pub(crate) session: Option<SessionId>,
    pub(crate) approval_session: Option<ApprovalSession>,
    pub(crate) approval_wait: Option<Duration>,
    pub(crate) label: Option<CallLabel>,
    pub(crate) observer: Option<Observer>,
    pub(crate) stream: Option<StreamSink>,
    pub(crate) reasoning: Option<String>,
    pub(crate) input: Option<Box<ClientInput>>,
    pub(crate) client: Option<Arc<dyn ClientLink>>,
    /// Whether the client can take modified parameters.
    pub(crate) takes_changes: bool,
    /// Whether it waits for an approver's decision.
    pub(crate) waits: bool,
    /// The approvals that were requested in an earlier run of the same call.
    pub(crate) answered: Vec<AskedApproval>,
    /// Whether it waits in the ledger and not on a connection.
    pub(crate) detached: bool,
    /// Whether it is detached instead of waiting for an approver.
    pub(crate) may_detach: bool,
    pub(crate) detaching: Detaching,
    /// The hook request that it stands for.
    pub(crate) asked: Option<Arc<AskedHook>>,
    /// A tool that is in no catalog: that of a conformance endpoint, or a client-executed one.
    pub(crate) uncataloged_tool: Option<Arc<Tool>>,
    pub(crate) presence: Presence,
    pub(crate) address: IpAddr,
    pub(crate) arrived: Timestamp,
    pub(crate) request: Option<RequestId>,
    pub(crate) traced: Option<Box<TracedCall>>,
}

/// The parts of a hook request that only guardians need.
#[derive(Debug)]
pub(crate) struct AskedHook {
    pub(crate) hook: Hook,
    pub(crate) dialect: Dialect,
    pub(crate) ids: TraceIds,
    pub(crate) user: Option<String>,
    pub(crate) method: Option<String>,
    /// The relation of the tool to the gate.
    pub(crate) standing: ToolStanding,
    /// The tool's name in the hook request.
    pub(crate) tool: Option<String>,
    pub(crate) content: Content<'static>,
}

/// The relation of a tool in a hook request to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolStanding {
    /// A tool of the gate: the agent must have the grants and scopes to call it here.
    Governed,
    /// A tool that only the runtime knows, decided by policies and guardians.
    Foreign,
    /// The same, and every call needs an approval.
    ForeignAsks,
}

impl ToolStanding {
    pub(crate) fn is_governed(self) -> bool {
        self == Self::Governed
    }
}

impl Pipeline {
    /// Creates a call from a request, and decides whether its caller may call at all.
    pub(super) fn begin(&self, caller: Caller, request: CallRequest) -> Result<(Call, Result<(), Refusal>), Refusal> {
        let arrived = self.clock.now();
        if request.approval_wait.is_some_and(|wait| wait.is_zero() || wait > MAX_WAIT) {
            let reason = format!("the wait for an approval must be from 1 to {} seconds", MAX_WAIT.as_secs());
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "ttl_seconds"));
        }
        let agent = request.agent.unwrap_or_else(|| caller.id().clone());
        let permitted = require_permitted(&caller, &agent);
        let parameters = Value::Object(request.parameters);
        let owner = caller.id().clone();
        let id = self.ids.make(arrived, InvocationId::new)?;
        let (request_id, caller_trace) = match RequestContext::current() {
            Some(RequestContext { id, trace }) => (Some(id), trace),
            None => (None, None),
        };
        let call = Call {
            id,
            // A caller that may not act for another agent is recorded as itself.
            agent: if permitted.is_ok() { agent } else { caller.id().clone() },
            caller,
            tool: request.tool,
            version: request.version,
            grant: request.grant,
            parameters,
            idempotency_key: request.idempotency_key,
            context: request.context,
            task: None,
            run: request.run,
            session: request.session,
            approval_session: request.approval_session.map(|(name, workspace)| ApprovalSession {
                owner: owner.clone(),
                name,
                workspace,
            }),
            approval_wait: request.approval_wait,
            label: request.label,
            observer: request.observer,
            stream: request.stream,
            uncataloged_tool: None,
            reasoning: request.reasoning,
            input: request.input,
            client: request.client,
            takes_changes: true,
            waits: true,
            answered: Vec::new(),
            detached: false,
            may_detach: false,
            detaching: Detaching::default(),
            asked: None,
            presence: Presence::default(),
            address: request.address,
            arrived,
            request: request_id,
            traced: trace_of(id, caller_trace, self.settings.traces),
        };
        Ok((call, permitted))
    }
}

/// Whether the caller may call tools at all, for this agent.
pub(super) fn require_permitted(caller: &Caller, agent: &PrincipalId) -> Result<(), Refusal> {
    caller.require_acting_for(agent)?;
    caller.require(Permission::InvokeTools)
}

impl Call {
    pub(super) fn trace(&self, found: Option<&Candidate>) -> CallTrace {
        let is_agent = |kind: PrincipalKind| kind == PrincipalKind::Agent;
        let own = || self.agent == *self.caller.id() && is_agent(self.caller.principal().kind);
        let agent = found.and_then(|candidate| candidate.agent.as_ref());
        CallTrace {
            run: self.run.clone(),
            session: self.session,
            by_agent: agent.map_or_else(own, |agent| is_agent(agent.kind)),
            transport: found.map(|candidate| candidate.action().transport()).unwrap_or_default(),
            trace_id: self.traced.as_ref().map(|traced| traced.context.trace),
        }
    }

    /// A call whose caller disconnects before the admission is not made: nobody would receive its result.
    pub(super) fn require_present(&self) -> Result<(), Refusal> {
        if self.presence.is_gone() {
            let reason = "the caller disconnected before the call was admitted; nothing was run";
            return Err(Refusal::new(Code::CallCancelled, reason));
        }
        Ok(())
    }

    /// The arguments as somebody decides on them: with what the client has sent for a server, beside them.
    pub(super) fn decided_arguments<'a>(&self, parameters: &'a Value) -> Cow<'a, Value> {
        let responses = self.input.as_ref().map(|input| &input.responses).filter(|responses| !responses.is_empty());
        match (responses, parameters.as_object()) {
            (Some(responses), Some(members)) => {
                let mut members = members.clone();
                members.insert(RESPONSES.to_owned(), Value::Object(responses.clone()));
                Cow::Owned(Value::Object(members))
            }
            _ => Cow::Borrowed(parameters),
        }
    }

    /// What distinguishes the call from one with the same arguments.
    pub(super) fn digested_input(&self) -> Option<Value> {
        self.input.as_ref().and_then(|input| input.digested())
    }

    /// Adds that to what is hashed of the request. A call without input is hashed as it always was.
    pub(super) fn digest_input(&self, request: &mut Value) {
        if let (Some(input), Some(members)) = (self.digested_input(), request.as_object_mut()) {
            members.insert("input".to_owned(), input);
        }
    }

    /// Notifies the observer, if there is one.
    pub(super) fn notify(&self, progress: impl FnOnce() -> Progress) {
        if let Some(observer) = &self.observer {
            // A dropped receiver is not an error.
            let _ = observer.send(progress());
        }
    }

    pub(super) fn milliseconds_until(&self, now: Timestamp) -> u64 {
        u64::try_from(now.as_millis().saturating_sub(self.arrived.as_millis())).unwrap_or(0)
    }
}
