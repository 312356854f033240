//! A call as it comes in, and as the stages hand it on.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_model::approval::{ApprovalSession, CallLabel, MAX_WAIT, SessionName, Workspace};
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
use super::eligible::Candidate;
use super::presence::Presence;
use super::progress::{Observer, Progress};
use super::trace::trace_of;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::ports::ledger::AskedApproval;
use crate::ports::telemetry::TracedCall;
use crate::refusal::{Code, Refusal};
use crate::request_context::{RequestContext, RequestId};

/// A call as a transport decodes it.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tool, as the caller names it: `service.tool`, or a scope that only one tool has.
    pub tool: String,
    /// The version of the service's definition; `None` is what the credential says, or the newest.
    pub version: Option<ServiceVersion>,
    /// The grant to use; `None` lets the gate pick.
    pub grant: Option<GrantId>,
    /// For whom; `None` is the caller itself.
    pub agent: Option<PrincipalId>,
    /// The parameters.
    pub parameters: Map<String, Value>,
    /// The caller's name for this call.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The intent, plan and task that it belongs to.
    pub context: GrantContext,
    /// The execution that it belongs to; `None` is one of its own.
    pub run: Option<RunId>,
    /// The multi-step use of a tool that it is part of.
    pub session: Option<SessionId>,
    /// The conversation that it belongs to, and the directory that this works in.
    pub approval_session: Option<(SessionName, Option<Workspace>)>,
    /// How long it waits for a person, where its tool does not say; `None` is as its session or the gate says.
    pub approval_wait: Option<Duration>,
    /// What the caller calls it.
    pub label: Option<CallLabel>,
    /// Who is told how far it has come.
    pub observer: Option<Observer>,
    /// Why the agent makes it, in its own words: for policies and guardians.
    pub reasoning: Option<String>,
    /// Whether the caller still waits, where the transport knows: then it runs the call in a task that outlives the
    /// connection. Otherwise the caller waits for as long as it awaits the outcome.
    pub presence: Option<Presence>,
    /// From where it comes.
    pub address: IpAddr,
}

impl CallRequest {
    /// A call of this tool that says nothing else about itself.
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
            reasoning: None,
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

/// What a transport says about a call beside its request.
pub(super) struct CallOptions {
    pub(super) tool: Option<Arc<Tool>>,
    pub(super) asked: Option<Arc<AskedHook>>,
    pub(super) takes_changes: bool,
    /// Whether it waits for an approver's decision. Otherwise it is refused with the approval, which stays open.
    pub(super) waits: bool,
    /// The approvals that were asked for when the same call was run before.
    pub(super) answered: Vec<AskedApproval>,
    /// Whether it becomes detached where it would wait for an approver.
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

/// A call on its way.
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
    pub(crate) run: Option<RunId>,
    pub(crate) session: Option<SessionId>,
    pub(crate) approval_session: Option<ApprovalSession>,
    pub(crate) approval_wait: Option<Duration>,
    pub(crate) label: Option<CallLabel>,
    pub(crate) observer: Option<Observer>,
    pub(crate) reasoning: Option<String>,
    /// Whether whoever asks can take changed parameters.
    pub(crate) takes_changes: bool,
    /// Whether it waits for an approver's decision.
    pub(crate) waits: bool,
    /// The approvals that were asked for when the same call was run before.
    pub(crate) answered: Vec<AskedApproval>,
    /// Whether it waits in the ledger and not on a connection.
    pub(crate) detached: bool,
    /// Whether it becomes detached where it would wait for an approver.
    pub(crate) may_detach: bool,
    pub(crate) detaching: Detaching,
    /// The question of another agent's runtime that it stands for.
    pub(crate) asked: Option<Arc<AskedHook>>,
    /// A tool that is not in any catalog: that of a conformance endpoint, or a client-executed one.
    pub(crate) uncataloged_tool: Option<Arc<Tool>>,
    /// Whether the caller still waits for the response.
    pub(crate) presence: Presence,
    pub(crate) address: IpAddr,
    pub(crate) arrived: Timestamp,
    /// The request that it came with.
    pub(crate) request: Option<RequestId>,
    pub(crate) traced: Option<Box<TracedCall>>,
}

/// A question of another agent's runtime, as far as only guardians need to know of it.
#[derive(Debug)]
pub(crate) struct AskedHook {
    pub(crate) hook: Hook,
    pub(crate) dialect: Dialect,
    pub(crate) ids: TraceIds,
    pub(crate) user: Option<String>,
    pub(crate) method: Option<String>,
    /// What the tool is to the gate.
    pub(crate) standing: ToolStanding,
    /// What whoever asks calls the tool.
    pub(crate) tool: Option<String>,
    pub(crate) content: Content<'static>,
}

/// What a tool that another runtime asks about is to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolStanding {
    /// One of its own: the agent must have what it needs to call it here.
    Governed,
    /// One that only the runtime knows, judged by policies and guardians.
    Foreign,
    /// The same, and an approver must agree to every call.
    ForeignAsks,
}

impl ToolStanding {
    pub(crate) fn is_governed(self) -> bool {
        self == Self::Governed
    }
}

impl Pipeline {
    /// Makes a call of a request, and says whether its caller may make it at all.
    pub(super) fn begin(&self, caller: Caller, request: CallRequest) -> Result<(Call, Result<(), Refusal>), Refusal> {
        let arrived = self.clock.now();
        if request.approval_wait.is_some_and(|wait| wait.is_zero() || wait > MAX_WAIT) {
            let reason = format!("an approval can be waited for from 1 to {} seconds", MAX_WAIT.as_secs());
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
            // Whoever may not speak for another is written down as itself.
            agent: if permitted.is_ok() { agent } else { caller.id().clone() },
            caller,
            tool: request.tool,
            version: request.version,
            grant: request.grant,
            parameters,
            idempotency_key: request.idempotency_key,
            context: request.context,
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
            uncataloged_tool: None,
            reasoning: request.reasoning,
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

/// Whether somebody may call anything at all, for this agent.
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

    /// A call whose caller is gone before the admission is not made: nobody would learn of its result.
    pub(super) fn require_present(&self) -> Result<(), Refusal> {
        if self.presence.is_gone() {
            let reason = "the caller disconnected before the call was admitted; nothing was run";
            return Err(Refusal::new(Code::CallCancelled, reason));
        }
        Ok(())
    }

    /// Tells whoever wants to know how far it has come.
    pub(super) fn notify(&self, progress: impl FnOnce() -> Progress) {
        if let Some(observer) = &self.observer {
            // Whoever does not listen any more does not want to know.
            let _ = observer.send(progress());
        }
    }

    pub(super) fn milliseconds_until(&self, now: Timestamp) -> u64 {
        u64::try_from(now.as_millis().saturating_sub(self.arrived.as_millis())).unwrap_or(0)
    }
}
