//! The path of a call. There is exactly one: every transport decodes into a [`CallRequest`], and [`Gate::invoke`] walks
//! it down the stages, one module each, in the order in which they stand here.
//!
//! Each stage takes the value of the one before, and only `admit` makes an [`Admitted`], without which nothing can be
//! carried out. A refusal at any stage is written down before it is answered.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use toolgate_model::approval::{Approval, ApprovalSession, CallLabel, LONGEST_WAIT, SessionName, Workspace};
use toolgate_model::context::GrantContext;
use toolgate_model::guard::{Content, Dialect, Hook, HookDecision, PolicyRef, TraceIds};
use toolgate_model::hook::{CallTrace, RunId};
use toolgate_model::id::{ApprovalId, GrantId, InvocationId, SessionId, StandingApprovalId};
use toolgate_model::invocation::IdempotencyKey;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, PrincipalKind, TenantId};
use toolgate_model::service::ServiceVersion;
use toolgate_model::time::Timestamp;

use crate::catalog::Tool;
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::entropy::random_for_id;
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal, Stage};

pub use self::admit::{Admitted, Target};
pub use self::denial::Denial;
pub use self::explain::{Explanation, Question, Step};
pub use self::external::{ExternalCall, ExternalLeave};
pub use self::hooks::{AskForm, HookAnswer, HookQuestion, HookTerms, UnknownTools};
pub use self::presence::{Presence, Waiting};
pub use self::seams::Rehearsal;
pub use self::sessions::SessionRequest;
pub use self::settle::{CallAnswer, CallError, CallOutcome};

mod action;
mod admit;
mod approve;
pub(crate) mod authorize;
mod constrain;
mod denial;
mod execute;
mod explain;
mod external;
mod fit;
mod guard;
pub(crate) mod hooks;
mod inspect;
mod presence;
pub(crate) mod refused;
pub(crate) mod renewals;
mod resolve;
mod seams;
mod sessions;
mod settle;
pub(crate) mod turns;
pub(crate) mod under_way;

/// How often a call is decided on when what it rests on changes between the decision and the admission.
const JUDGEMENTS: u32 = 4;
/// The same for calls that are judged by counts, in which every call of the same agent on another replica is a change.
const COUNTED_JUDGEMENTS: u32 = 64;

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
    /// Whether the caller still waits, where the transport knows; otherwise for as long as it awaits the outcome.
    pub presence: Option<Presence>,
    /// From where it comes.
    pub address: IpAddr,
}

/// What a call brings along that no catalog has.
struct Own {
    tool: Option<Arc<Tool>>,
    asked: Option<Arc<AskedHook>>,
    takes_changes: bool,
    /// Whether it waits for an approver's decision. Otherwise it is refused with the approval, which stays open.
    waits: bool,
    /// The approval that the same call was refused with before.
    answered: Option<ApprovalId>,
}

impl Default for Own {
    fn default() -> Self {
        Self { tool: None, asked: None, takes_changes: true, waits: true, answered: None }
    }
}

/// Is told how far a call has come.
pub type Observer = tokio::sync::mpsc::UnboundedSender<Progress>;

/// How far a call has come.
#[derive(Debug, Clone)]
pub enum Progress {
    /// It waits for a person.
    Asked(Box<Approval>),
    /// Earlier answers cover it.
    Covered(Vec<StandingApprovalId>),
    /// Guardians changed it.
    Modified(Box<Modified>),
    /// It is about to be carried out.
    Admitted(InvocationId),
}

/// What guardians made of a call.
#[derive(Debug, Clone)]
pub struct Modified {
    /// Its parameters now.
    pub parameters: Value,
    /// Why.
    pub reason: Option<String>,
    /// The rule behind it.
    pub policy: Option<PolicyRef>,
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
    /// The approval that the same call was refused with before.
    pub(crate) answered: Option<ApprovalId>,
    /// The question of another agent's runtime that it stands for.
    pub(crate) asked: Option<Arc<AskedHook>>,
    /// A tool that is not in any catalog: one of the conformance seams, or somebody else's.
    pub(crate) own_tool: Option<Arc<Tool>>,
    /// Whether the caller still waits for the response.
    pub(crate) presence: Presence,
    pub(crate) address: IpAddr,
    pub(crate) arrived: Timestamp,
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

/// How far a refused call came, for its record.
#[derive(Clone, Default)]
struct Reached {
    found: Option<fit::Candidate>,
    grant: Option<GrantId>,
    decision: Option<Box<HookDecision>>,
}

/// How far a call came in one go.
enum Walked {
    /// To its end. A call that was admitted is never refused any more: what goes wrong then leaves it unsettled.
    Done(Box<Result<CallAnswer, Denial>>),
    /// A person has answered, or what it rests on has changed: everything is decided again, on the newest state.
    Again {
        /// Whether it was judged by what its agent has called and spent so far, which other calls change.
        counted: bool,
    },
}

/// What a call keeps from one go to the next.
#[derive(Default)]
struct Kept {
    /// What people have approved, each for what was shown.
    answered: Vec<approve::Answered>,
    /// Its turn among the calls that are judged by the same counts.
    turn: Option<turns::Turn>,
}

impl Gate {
    /// Walks a call down the path.
    pub async fn invoke(self: &Arc<Self>, caller: Caller, request: CallRequest) -> Result<CallAnswer, Denial> {
        self.invoke_with(caller, request, Own::default()).await
    }

    /// The same, with a tool that is in no catalog. The call runs in a task of its own: a caller that disconnects takes
    /// back a call that is not admitted yet, and neither its refusal nor its settlement is lost with the connection.
    async fn invoke_with(
        self: &Arc<Self>,
        caller: Caller,
        request: CallRequest,
        own: Own,
    ) -> Result<CallAnswer, Denial> {
        let (_waiting, own_presence) = Presence::new();
        let presence = request.presence.clone().unwrap_or(own_presence);
        let (call, permitted) = self.begin(caller, request).map_err(Denial::unrecorded)?;
        let Own { tool: own_tool, asked, takes_changes, waits, answered } = own;
        let call = Call { own_tool, asked, takes_changes, waits, answered, presence, ..call };
        let (tenant, id) = (call.caller.tenant().clone(), call.id);
        let (gate, under_way) = (Arc::clone(self), self.under_way.enter());
        let running = tokio::spawn(async move {
            let _under_way = under_way;
            gate.run(call, permitted).await
        });
        match running.await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.broke_off(&tenant, id).await),
        }
    }

    async fn run(self: &Arc<Self>, mut call: Call, permitted: Result<(), Refusal>) -> Result<CallAnswer, Denial> {
        let permitted = match permitted.and_then(|()| self.refused_calls.check(&call.caller, call.arrived)) {
            Ok(()) => self.join_session(&mut call).await,
            refused => refused,
        };
        let call = Arc::new(call);
        let mut reached = Reached::default();
        let walked = match permitted {
            Ok(()) => self.walk(&call, &mut reached).await,
            Err(refusal) => Err(refusal.at(Stage::Identify)),
        };
        match walked {
            Ok(outcome) => outcome,
            Err(refusal) => Err(self.record_denial(&call, reached, refusal).await),
        }
    }

    /// What is said of a call that broke off by a fault of the gate: the ledger knows whether it was admitted.
    async fn broke_off(&self, tenant: &TenantId, id: InvocationId) -> Denial {
        let fault = Refusal::new(Code::Internal, "the call broke off inside the gate; see its log");
        match self.ledger.invocation(tenant, id).await {
            Ok(None) => Denial::unrecorded(fault),
            Ok(Some(_)) | Err(_) => Denial::unsettled(id, &fault),
        }
    }

    /// Runs the stages; a refusal comes from before the admission.
    async fn walk(
        self: &Arc<Self>,
        call: &Arc<Call>,
        reached: &mut Reached,
    ) -> Result<Result<CallAnswer, Denial>, Refusal> {
        let mut call = Arc::clone(call);
        let mut kept = Kept::default();
        let mut freshness = Freshness::Recent;
        let mut left = JUDGEMENTS;
        while left > 0 {
            let counted = match self.walk_once(&call, freshness, &mut kept, reached).await? {
                Walked::Done(outcome) => return Ok(*outcome),
                Walked::Again { counted } => counted,
            };
            left -= 1;
            if counted && kept.turn.is_none() {
                // From here on only calls of other replicas can come between the judgement and the admission.
                kept.turn = Some(self.turns.take(call.caller.tenant(), &call.agent).await);
                left = COUNTED_JUDGEMENTS;
            }
            let caller = self.identify_again(&call.caller).await.map_err(|refusal| refusal.at(Stage::Admit))?;
            require_permitted(&caller, &call.agent).map_err(|refusal| refusal.at(Stage::Admit))?;
            call = Arc::new(Call { caller, ..(*call).clone() });
            freshness = Freshness::Newest;
        }
        let reason = "what this call is judged by keeps changing; try again";
        Err(Refusal::new(Code::VersionConflict, reason).at(Stage::Admit))
    }

    /// Decides on each action that the call may come to, and makes the call as the first whose grants have room for it.
    async fn walk_once(
        self: &Arc<Self>,
        call: &Arc<Call>,
        mut freshness: Freshness,
        kept: &mut Kept,
        reached: &mut Reached,
    ) -> Result<Walked, Refusal> {
        let constrained = match self.check(call, freshness, reached).await {
            Ok(constrained) => constrained,
            // What is refused is refused on the newest state: a grant that was just given must be seen.
            Err(_) => {
                freshness = Freshness::Newest;
                self.check(call, freshness, reached).await?
            }
        };
        let mut refused = None;
        for alternative in constrained.into_alternatives() {
            let is_first = refused.is_none();
            match self.walk_as(call, alternative, is_first, freshness, kept, reached).await {
                // Another grant may have room, or may still stand.
                Err(refusal)
                    if matches!(refusal.stage(), Some(Stage::Approve | Stage::Admit))
                        && admit::is_about_the_grant(refusal.code()) =>
                {
                    refused = refused.or(Some(refusal));
                }
                walked => return walked,
            }
        }
        let nothing = || Refusal::new(Code::GrantNotFound, "there is no grant for this call").at(Stage::Admit);
        Err(refused.unwrap_or_else(nothing))
    }

    /// Makes the call as this action, once guardians and people have decided on exactly this one.
    async fn walk_as(
        self: &Arc<Self>,
        call: &Arc<Call>,
        alternative: fit::Alternative,
        is_first: bool,
        freshness: Freshness,
        kept: &mut Kept,
        reached: &mut Reached,
    ) -> Result<Walked, Refusal> {
        reached.grant = alternative.first.candidate.grant();
        let guarded =
            self.guard(call, alternative, freshness, reached).await.map_err(|refusal| refusal.at(Stage::Guard))?;
        let approved = match self.approve(call, guarded, is_first, kept).await {
            Ok(Some(approved)) => approved,
            // Time has passed: what holds now is what counts.
            Ok(None) => return Ok(Walked::Again { counted: false }),
            Err(refusal) => return Err(refusal.at(Stage::Approve)),
        };
        let counted = approved.judged.basis.counts.is_some();
        // Told once the call is admitted: what a rule takes out of a call that is refused is nobody's to learn.
        let modified = approved.modified.clone().map(|parameters| {
            let decision = approved.judged.decision.as_deref();
            let (reason, policy) = decision.map(HookDecision::why_changed).unwrap_or_default();
            Modified { parameters, reason, policy }
        });
        call.require_present().map_err(|refusal| refusal.at(Stage::Admit))?;
        let (admitted, opened) = match self.admit(call, approved).await.map_err(|refusal| refusal.at(Stage::Admit))? {
            admit::Outcome::Admitted(admitted, opened) => {
                if let Some(modified) = modified {
                    call.tell(|| Progress::Modified(Box::new(modified)));
                }
                call.tell(|| Progress::Admitted(call.id));
                (*admitted, opened)
            }
            admit::Outcome::Replayed(answer) => return Ok(Walked::Done(Box::new(Ok(*answer)))),
            admit::Outcome::Stale => return Ok(Walked::Again { counted }),
        };
        // The next call of the agent may be judged while this one is executed.
        kept.turn = None;
        // From here on the call goes on to its settlement, even when the caller is gone.
        Ok(Walked::Done(Box::new(self.carry_out(admitted, opened).await)))
    }

    /// Everything after the admission. No failure in here is a refusal: the call may have been carried out.
    async fn carry_out(&self, admitted: Admitted, opened: execute::Opened) -> Result<CallAnswer, Denial> {
        let id = admitted.invocation().id;
        let execution = self.execute(&admitted, opened).await;
        let inspected = self.inspect(&admitted, execution).await;
        self.settle(admitted, inspected).await.map_err(|failure| Denial::unsettled(id, &failure))
    }

    async fn check(
        &self,
        call: &Call,
        freshness: Freshness,
        reached: &mut Reached,
    ) -> Result<constrain::Constrained, Refusal> {
        let resolved = self.resolve(call, freshness).await.map_err(|refusal| refusal.at(Stage::Resolve))?;
        reached.found = resolved.first();
        let authorized = self.authorize(call, resolved).map_err(|refusal| refusal.at(Stage::Authorize))?;
        reached.grant = authorized.preferred();
        self.constrain(call, authorized).map_err(|refusal| refusal.at(Stage::Constrain))
    }

    /// Makes a call of a request, and says whether its caller may make it at all.
    fn begin(&self, caller: Caller, request: CallRequest) -> Result<(Call, Result<(), Refusal>), Refusal> {
        let arrived = self.clock.now();
        if request.approval_wait.is_some_and(|wait| wait.is_zero() || wait > LONGEST_WAIT) {
            let reason = format!("an approval can be waited for from 1 to {} seconds", LONGEST_WAIT.as_secs());
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "ttl_seconds"));
        }
        let agent = request.agent.unwrap_or_else(|| caller.id().clone());
        let permitted = require_permitted(&caller, &agent);
        let parameters = Value::Object(request.parameters);
        let owner = caller.id().clone();
        let call = Call {
            id: InvocationId::new(arrived, random_for_id()?),
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
            own_tool: None,
            reasoning: request.reasoning,
            takes_changes: true,
            waits: true,
            answered: None,
            asked: None,
            presence: Presence::default(),
            address: request.address,
            arrived,
        };
        Ok((call, permitted))
    }
}

/// Whether somebody may call anything at all, for this agent.
fn require_permitted(caller: &Caller, agent: &PrincipalId) -> Result<(), Refusal> {
    caller.require_acting_for(agent)?;
    caller.require(Permission::InvokeTools)
}

impl Call {
    fn trace(&self, found: Option<&fit::Candidate>) -> CallTrace {
        let is_agent = |kind: PrincipalKind| kind == PrincipalKind::Agent;
        let own = || self.agent == *self.caller.id() && is_agent(self.caller.principal().kind);
        let agent = found.and_then(|candidate| candidate.agent.as_ref());
        CallTrace {
            run: self.run.clone(),
            session: self.session,
            by_agent: agent.map_or_else(own, |agent| is_agent(agent.kind)),
            transport: found.map(|candidate| candidate.tool.backing.transport()).unwrap_or_default(),
        }
    }

    /// A call whose caller is gone before the admission is not made: nobody would learn of its result.
    fn require_present(&self) -> Result<(), Refusal> {
        if self.presence.is_gone() {
            let reason = "the caller disconnected before the call was admitted; nothing was run";
            return Err(Refusal::new(Code::CallCancelled, reason));
        }
        Ok(())
    }

    /// Tells whoever wants to know how far it has come.
    fn tell(&self, progress: impl FnOnce() -> Progress) {
        if let Some(observer) = &self.observer {
            // Whoever does not listen any more does not want to know.
            let _ = observer.send(progress());
        }
    }

    fn milliseconds_until(&self, now: Timestamp) -> u64 {
        u64::try_from(now.as_millis().saturating_sub(self.arrived.as_millis())).unwrap_or(0)
    }
}
