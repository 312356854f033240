//! Admission: one atomic, durable step in which the ledger checks the whole authority again, reserves the rate, claims the
//! idempotency key and writes the call down as running. Only here an [`Admitted`] is made, and nothing is carried out
//! without one:
//!
//! ```compile_fail
//! // Compiles only where the fields can be seen, which is nowhere outside of this module.
//! fn make(other: toolgate_gate::call::Admitted) -> toolgate_gate::call::Admitted {
//!     toolgate_gate::call::Admitted { ..other }
//! }
//! ```

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_model::approval::BoundAction;
use toolgate_model::arguments::Arguments;
use toolgate_model::canonical::to_canonical;
use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::constraint::HostSet;
use toolgate_model::credential::{Credential, is_public_field};
use toolgate_model::id::GrantId;
use toolgate_model::invocation::{Invocation, InvocationStatus};
use toolgate_model::merkle::sha256;
use toolgate_model::service::{RenderedRequest, ToolDefinition, ToolName};
use toolgate_model::time::Timestamp;

use super::approve::Approved;
use super::eligible::{Action, Candidate, EligibleGrant};
use super::execute::Opened;
use super::guard::Judged;
use super::settle::CallResult;
use super::{Call, Pipeline};
use crate::ports::ledger::{Admission, Admit, Consent, CountedRun, Marks};
use crate::ports::source::Reservation;
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// How long after its time a call is taken for cut off.
const GRACE: Duration = Duration::from_secs(30);
/// The longest that a call of a service may take.
const LONGEST: Duration = Duration::from_secs(120);

/// A call that may be carried out: the ledger has it as running.
///
/// INVARIANT: made only by `Pipeline::admit`, here.
pub struct Admitted {
    call: Arc<Call>,
    eligible: EligibleGrant,
    modified: Option<Value>,
    command: Arc<Admit>,
    /// Held until the call is settled.
    _reserved: Reservation,
}

/// What became of an admission.
pub(super) enum Outcome {
    /// It may be carried out, with what its credential is opened by.
    Admitted(Box<Admitted>, Opened),
    /// It was, before; this is what it answered.
    Replayed(Box<CallResult>),
    /// What it rests on has changed: it must be decided on again.
    Stale,
}

/// What was decided about the action of a call.
struct Decided {
    modified: Option<Value>,
    consent: Consent,
    covered: Option<(Option<BoundAction>, String)>,
    judged: Judged,
}

impl Pipeline {
    /// Admits the call through the first of the grants to its action that has room for it.
    pub(super) async fn admit(&self, call: &Arc<Call>, approved: Approved) -> Result<Outcome, Refusal> {
        let Approved { alternative, modified, consent, covered, judged } = approved;
        let decided = Decided { modified, consent, covered, judged };
        let mut refused = None;
        for eligible in alternative.into_eligible_grants() {
            match self.admit_through(call, eligible, &decided).await {
                Ok(outcome) => return Ok(outcome),
                // Another grant may have room, or may still stand.
                Err(refusal) if is_about_the_grant(refusal.code()) => refused = refused.or(Some(refusal)),
                Err(refusal) => return Err(refusal),
            }
        }
        Err(refused.unwrap_or_else(|| Refusal::new(Code::GrantNotFound, "there is no grant for this call")))
    }

    async fn admit_through(
        &self,
        call: &Arc<Call>,
        eligible: EligibleGrant,
        decided: &Decided,
    ) -> Result<Outcome, Refusal> {
        if call.asked.is_some() && !matches!(eligible.action, Action::External(_)) {
            // INVARIANT: what another runtime asks about is resolved to a tool that it executes itself.
            return Err(Refusal::new(Code::Internal, "a question came to be carried out here"));
        }
        // Before anything is written down: a call that cannot be carried out now is not admitted.
        let reserved = match &eligible.action {
            Action::Connector(_) | Action::Fetch(_) => self.source.reserve()?,
            _ => Reservation::default(),
        };
        // Opened before it is written down: what is hashed of the arguments must not have the secret in it.
        let opened = self.open(&eligible).await;
        if let (Action::External(_), Some(Err(refusal))) = (&eligible.action, &opened) {
            // Here the call would end in an error: no other runtime is told that it may make it.
            return Err(refusal.clone());
        }
        require_shown(decided.modified.as_ref().unwrap_or(&call.parameters), &opened)?;
        let command = Arc::new(self.command(call, &eligible, decided, &opened));
        match self.calls.admit(Arc::clone(&command)).await? {
            Admission::Admitted => {
                let (call, modified) = (Arc::clone(call), decided.modified.clone());
                Ok(Outcome::Admitted(
                    Box::new(Admitted { call, eligible, modified, command, _reserved: reserved }),
                    opened,
                ))
            }
            Admission::Replayed(stored) => {
                let parameters = decided.modified.as_ref().unwrap_or(&call.parameters);
                let answer = self.replay(call, &eligible.candidate, parameters, &stored).await?;
                Ok(Outcome::Replayed(Box::new(answer)))
            }
            Admission::Refused(refusal) => Err(refusal),
            Admission::Stale => Ok(Outcome::Stale),
        }
    }

    fn command(&self, call: &Call, eligible: &EligibleGrant, decided: &Decided, opened: &Opened) -> Admit {
        let Decided { modified, consent, covered, judged } = decided;
        let caller = &call.caller;
        let Candidate { agent, generation, tool, registry, .. } = &eligible.candidate;
        let held_grant = eligible.candidate.held_grant();
        let audit = self.audit(caller);
        let nothing = Map::new();
        let arguments = Arguments::new(shown(modified.as_ref().unwrap_or(&call.parameters), opened));
        let logging = &tool.definition.logging;
        let invocation = Invocation {
            id: call.id,
            tenant: audit.tenant.clone(),
            grant: eligible.candidate.grant(),
            agent: call.agent.clone(),
            actor: audit.actor.clone(),
            service: Some(tool.service.clone()),
            tool: tool.name.as_str().to_owned(),
            version: tool.version.clone(),
            status: InvocationStatus::Running,
            error: None,
            parameters: tool.definition.summary(arguments.shown().as_object().unwrap_or(&nothing)),
            arguments_hash: arguments.hash(),
            fingerprint: eligible.request().map(|request| request.fingerprint(&arguments)),
            http_status: None,
            cost: tool.definition.estimated_cost,
            duration_ms: None,
            idempotency_key: call.idempotency_key.clone(),
            context: call.context.clone(),
            trace: call.trace(Some(&eligible.candidate)),
            reported: false,
            created_at: call.arrived,
        };
        let inputs = logging.inputs(arguments.redacted().as_object().unwrap_or(&nothing));
        let own_limit = tool.definition.rate_limit;
        Admit {
            usable_until: held_grant
                .and_then(|held_grant| earlier(held_grant.effective.expires_at, held_grant.credential.expires_at)),
            key: caller.key(),
            // The caller, its grants and the policies were read one after the other: the oldest of the states counts.
            generation: (*generation).min(caller.generation()).min(judged.basis.generation),
            lineage: held_grant.map(|held_grant| held_grant.rates().lineage).unwrap_or_default(),
            credential: held_grant.map(|held_grant| (held_grant.credential.id, held_grant.credential.version)),
            actor_revision: caller.principal().revision,
            agent_revision: agent.as_ref().map(|agent| agent.revision),
            bucket: match agent {
                Some(agent) => agent.rate_limit_for(&eligible.candidate.tool_name(), own_limit),
                None => own_limit,
            },
            inputs,
            policies: judged.basis.revision,
            counts: judged.basis.counts,
            run: CountedRun::of(caller.id(), &call.agent, call.run.as_ref()),
            decision: judged.decision.clone(),
            marks: call.marks(&eligible.candidate),
            consent: consent.clone(),
            action: covered.as_ref().and_then(|(action, _)| action.clone()),
            approval_digest: covered.as_ref().map(|(_, digest)| digest.clone()),
            registry: *registry,
            request_digest: call.idempotency_key.as_ref().map(|_| request_digest(call, eligible)),
            deadline: audit.time.plus(deadline(eligible)).plus(GRACE),
            detached: call.detached.then_some(self.process),
            audit,
            invocation,
        }
    }
}

/// The arguments as they may stand in a record: nothing of them where it is not known what must not.
pub(super) fn shown<'a>(parameters: &'a Value, opened: &Opened) -> Cow<'a, Value> {
    match opened {
        Some(Err(_)) => Cow::Owned(Value::Object(Map::new())),
        Some(Ok(unsealed)) => unsealed.redactor.arguments(parameters),
        None => Cow::Borrowed(parameters),
    }
}

/// Refuses arguments of which nothing could be shown: an approver and the record must see what is sent.
pub(super) fn require_shown(parameters: &Value, opened: &Opened) -> Result<(), Refusal> {
    match opened {
        Some(Ok(unsealed)) if unsealed.redactor.withholds(parameters) => {
            let reason = "a parameter has more nested escapes than can be searched for the secret of the credential; send it \
                          with fewer";
            Err(Refusal::new(Code::ParametersInvalid, reason))
        }
        _ => Ok(()),
    }
}

/// What must not be seen in the arguments.
pub(super) fn secrets(opened: &Opened) -> Vec<&[u8]> {
    let unsealed = opened.iter().filter_map(|opened| opened.as_ref().ok());
    let fields = unsealed.flat_map(|unsealed| unsealed.material.iter());
    // A user name or a client id is no secret: hiding it would let a caller hide what stands around it.
    let secrets = fields.filter(|(name, secret)| !is_public_field(name, secret));
    secrets.map(|(_, secret)| secret.expose().as_bytes()).collect()
}

/// What is to be done for an admitted call.
pub enum AdmittedAction<'a> {
    /// A request to a service, with its credential.
    Connector {
        /// The credential to call with, without its material.
        credential: &'a Credential,
        /// How the service is reached.
        connection: &'a Connection,
        /// What turns the call into an exchange.
        adapter: AdapterName,
        /// Where the credential is put.
        placement: &'a AuthPlacement,
        /// What is to be sent, before the credential is put in.
        request: &'a RenderedRequest,
    },
    /// A request as the caller wrote it, without any credential.
    Fetch(&'a RenderedRequest),
    /// A tool of this machine is used.
    Workspace,
    /// A person was asked.
    Question {
        /// What they answered.
        answer: Option<&'a str>,
    },
    /// Whoever asked carries it out.
    External,
    /// Nothing leaves Toolgate.
    Conformance {
        /// Whether it is answered with a failure.
        fails: bool,
    },
}

impl Admitted {
    /// The tool.
    pub fn tool(&self) -> &ToolName {
        &self.eligible.candidate.tool.name
    }

    /// What is known of the tool.
    pub fn definition(&self) -> &ToolDefinition {
        &self.eligible.candidate.tool.definition
    }

    /// What is to be done; `None` where the credential's metadata is not understood.
    pub fn action(&self) -> Option<AdmittedAction<'_>> {
        Some(match &self.eligible.action {
            Action::Connector(connector) => AdmittedAction::Connector {
                credential: &connector.held_grant.credential,
                connection: connector.held_grant.connection.as_ref().ok()?,
                adapter: connector.adapter,
                placement: &connector.placement,
                request: &connector.request,
            },
            Action::Fetch(request) => AdmittedAction::Fetch(request),
            Action::Workspace => AdmittedAction::Workspace,
            // INVARIANT: an answer is the output of a question, and of nothing else.
            Action::Question => AdmittedAction::Question { answer: self.command.consent.answer.as_deref() },
            Action::External(_) => AdmittedAction::External,
            Action::Conformance { fails } => AdmittedAction::Conformance { fails: *fails },
        })
    }

    /// Whether this status of the service is a success of the tool.
    pub fn is_success(&self, status: u16) -> bool {
        match (&self.definition().http, self.eligible.connection()) {
            // Whoever fetches wants to know what was answered, whatever it is.
            _ if matches!(self.eligible.action, Action::Fetch(_)) => true,
            (Some(http), _) => http.is_success(status),
            (None, Some(connection)) => connection.endpoint(self.tool()).is_success(status),
            (None, None) => (200..300).contains(&status),
        }
    }

    /// The parameters.
    ///
    /// INVARIANT: an object.
    pub fn parameters(&self) -> &Value {
        self.modified.as_ref().unwrap_or(&self.call.parameters)
    }

    /// The record of the call, as running.
    pub fn invocation(&self) -> &Invocation {
        &self.command.invocation
    }

    /// The sets that must all contain the host that is called.
    pub fn allowed_hosts(&self) -> Vec<&HostSet> {
        let own = self.eligible.connection().and_then(|connection| connection.allowed_hosts.as_ref());
        let held_grant = self.eligible.candidate.held_grant();
        let granted = held_grant.and_then(|held_grant| held_grant.effective.constraints.allowed_hosts.as_ref());
        own.into_iter().chain(granted).collect()
    }

    /// How long the call may take in all.
    pub fn deadline(&self) -> Duration {
        deadline(&self.eligible)
    }

    /// Whether there were policies when it was admitted.
    pub(super) fn is_judged_by_policies(&self) -> bool {
        self.command.policies > 0
    }

    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    pub(super) fn candidate(&self) -> &Candidate {
        &self.eligible.candidate
    }

    pub(super) fn grant(&self) -> Option<GrantId> {
        self.eligible.candidate.grant()
    }

    pub(super) fn into_invocation(self) -> Invocation {
        // By now nobody else holds it.
        Arc::try_unwrap(self.command).map_or_else(|shared| shared.invocation.clone(), |command| command.invocation)
    }
}

impl Call {
    /// What it leaves on its conversation: the labels of its tool.
    fn marks(&self, candidate: &Candidate) -> Option<Marks> {
        let labels = &candidate.tool.definition.labels;
        let named = || labels.iter().map(|label| label.as_str().to_owned()).collect();
        (!labels.is_empty()).then(|| Marks { scope: self.mark_scope(), labels: named() })
    }
}

fn deadline(eligible: &EligibleGrant) -> Duration {
    let stated = eligible.candidate.tool.definition.timeout;
    let timeout = stated.or_else(|| eligible.connection().map(|connection| connection.timeout));
    if matches!(eligible.action, Action::Workspace) {
        return stated.unwrap_or(LONGEST);
    }
    timeout.unwrap_or(Duration::from_secs(30)).clamp(Duration::from_secs(1), LONGEST)
}

fn earlier(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (one, other) => one.or(other),
    }
}

/// What makes two requests the same. A grant that the gate picked is no part of it.
fn request_digest(call: &Call, eligible: &EligibleGrant) -> String {
    let tool = &eligible.candidate.tool;
    let request = json!({
        "service": tool.service, "tool": tool.name, "version": call.version, "grant_id": call.grant,
        "parameters": call.parameters, "context": call.context,
    });
    sha256(&to_canonical(&request)).to_hex()
}

/// Refusals that another grant may not share.
pub(super) fn is_about_the_grant(code: Code) -> bool {
    matches!(
        code,
        Code::GrantRateLimited
            | Code::GrantExpired
            | Code::GrantRevoked
            | Code::GrantSuspended
            | Code::GrantNotFound
            | Code::CredentialExpired
            | Code::CredentialRevoked
    )
}
