//! Admission: one atomic, durable step in which the ledger checks the whole authority again, reserves rates, claims the
//! idempotency key and records the call as running. Only this module creates an [`Admitted`], and nothing is executed
//! without one:
//!
//! ```compile_fail
//! // Compiles only where the fields are visible, which is nowhere outside this module.
//! fn make(other: toolgate_gate::call::Admitted) -> toolgate_gate::call::Admitted {
//!     toolgate_gate::call::Admitted { ..other }
//! }
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolgate_model::approval::BoundAction;
use toolgate_model::arguments::Arguments;
use toolgate_model::canonical::to_canonical;
use toolgate_model::client_input::ClientInput;
use toolgate_model::connection::{AdapterName, AuthPlacement, Connection};
use toolgate_model::constraint::{Cost, HostSet};
use toolgate_model::credential::{Credential, is_public_field};
use toolgate_model::id::GrantId;
use toolgate_model::invocation::{Invocation, InvocationStatus};
use toolgate_model::merkle::sha256;
use toolgate_model::mirrored::Mirrored;
use toolgate_model::schema::SchemaViolation;
use toolgate_model::service::{RenderedRequest, ToolDefinition, ToolName};
use toolgate_model::spending::Account;
use toolgate_model::step::Step;
use toolgate_model::store::UNTRUSTED;
use toolgate_model::text::Label;
use toolgate_model::time::Timestamp;

use super::approve::Approved;
use super::eligible::{Candidate, EligibleGrant};
use super::execute::Opened;
use super::guard::Judged;
use super::progress::{Progress, UpstreamProgress};
use super::settle::CallResult;
use super::{Call, Pipeline, StageTimes, Wait};
use crate::action::Action;
use crate::ports::ledger::{Admission, Admit, Consent, CountedRun, HeldGrant, Marks, beginning_of_day};
use crate::ports::source::{Reservation, Source};
use crate::ports::telemetry::TracedCall;
use crate::refusal::{Code, Refusal};

#[cfg(test)]
mod tests;

/// How long after its deadline a call counts as cut off.
const GRACE: Duration = Duration::from_secs(30);
/// The timeout of a call if neither its tool nor its credential sets one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A call that may be executed: the ledger has recorded it as running.
///
/// INVARIANT: created only by `Pipeline::admit`, here.
pub struct Admitted {
    call: Arc<Call>,
    eligible: EligibleGrant,
    modified: Option<Value>,
    command: Arc<Admit>,
    source: Arc<dyn Source>,
    /// Held until the call is settled.
    _reserved: Reservation,
}

/// The outcome of an admission.
pub(super) enum Outcome {
    /// It may be executed, with its unsealed credential.
    Admitted(Box<Admitted>, Opened),
    /// It was executed before; this was the result.
    Replayed(Box<CallResult>),
    /// The state that it was decided on has changed: it must be decided again.
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
    /// Admits the call through the first grant to its action that has capacity.
    pub(super) async fn admit(
        &self,
        call: &Arc<Call>,
        approved: Approved,
        times: &mut StageTimes,
    ) -> Result<Outcome, Refusal> {
        let Approved { alternative, modified, consent, covered, judged } = approved;
        let decided = Decided { modified, consent, covered, judged };
        let mut refused = None;
        for eligible in alternative.into_eligible_grants() {
            match self.admit_through(call, eligible, &decided, times).await {
                Ok(outcome) => return Ok(outcome),
                // Another grant may have capacity, or may still be valid.
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
        times: &mut StageTimes,
    ) -> Result<Outcome, Refusal> {
        let client_executed = eligible.candidate.is_client_executed();
        if call.asked.is_some() && !client_executed {
            // INVARIANT: a hook request is resolved to a tool that the other runtime executes.
            return Err(Refusal::new(
                Code::Internal,
                "a hook request was resolved to a tool that the gate would \
                execute",
            ));
        }
        // Before anything is recorded: a call that cannot be executed now is not admitted.
        let source = self.sources.of(eligible.action()).ok_or_else(|| no_source(&eligible))?;
        let reserved = source.reserve()?;
        // Unsealed before the record is written: the hash of the arguments must not include the secret.
        let opened = self.open(&eligible).await;
        if let (true, Some(Err(refusal))) = (client_executed, &opened) {
            // Here the call would end in an error: no other runtime gets an allow for it.
            return Err(refusal.clone());
        }
        require_shown(&call.decided_arguments(decided.modified.as_ref().unwrap_or(&call.parameters)), &opened)?;
        let command = Arc::new(self.command(call, &eligible, decided, &opened));
        let committing = self.calls.admit(Arc::clone(&command));
        match times.wait(Wait::AdmissionCommit, &*self.clock, committing).await? {
            Admission::Admitted => {
                let admitted = Admitted {
                    call: Arc::clone(call),
                    eligible,
                    modified: decided.modified.clone(),
                    command,
                    source: Arc::clone(source),
                    _reserved: reserved,
                };
                Ok(Outcome::Admitted(Box::new(admitted), opened))
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
        let Candidate { agent, limits, generation, tool, registry, work_revision, .. } = &eligible.candidate;
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
            tool: (&tool.name).into(),
            version: tool.version.clone(),
            status: InvocationStatus::Running,
            error: None,
            parameters: Arc::new(tool.definition.summary(arguments.shown().as_object().unwrap_or(&nothing))),
            arguments_hash: arguments.hash().into(),
            fingerprint: eligible.sent().map(|request| request.fingerprint(&arguments).into()),
            http_status: None,
            cost: reserved_cost(&tool.definition, held_grant, modified.as_ref().unwrap_or(&call.parameters)),
            cost_basis: None,
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
            usable_until: earlier(
                held_grant
                    .and_then(|held_grant| earlier(held_grant.effective.expires_at, held_grant.credential.expires_at)),
                call.task.and_then(|task| task.until),
            ),
            key: caller.key(),
            // The caller, its grants and the policies were read one after the other: the oldest state counts.
            generation: (*generation).min(caller.generation()).min(judged.basis.generation),
            lineage: held_grant.map(|held_grant| held_grant.rates().lineage).unwrap_or_default(),
            credential: held_grant.map(|held_grant| (held_grant.credential.id, held_grant.credential.version)),
            actor_revision: caller.principal().revision,
            agent: agent.clone(),
            bucket: match agent {
                Some(agent) => agent.rate_limit_for(tool.qualified_name(), own_limit),
                None => own_limit,
            },
            inputs,
            policies: judged.basis.revision,
            counts: judged.basis.counts,
            limits: limits.revision,
            reservations: eligible.candidate.reservations(),
            run: CountedRun::of(caller.id(), &call.agent, call.run.as_ref()),
            decision: judged.decision.clone(),
            marks: call.marks(&eligible.candidate),
            consent: consent.clone(),
            action: covered.as_ref().and_then(|(action, _)| action.clone()),
            approval_digest: covered.as_ref().map(|(_, digest)| digest.clone()),
            registry: *registry,
            work_revision: *work_revision,
            task: call.task.map(|task| task.id),
            request_digest: call.idempotency_key.as_ref().map(|_| request_digest(call, eligible)),
            deadline: audit.time.plus(deadline(eligible)).plus(GRACE),
            detached: call.detached.then_some(self.process),
            audit,
            invocation,
        }
    }
}

/// The most that a call can cost: by the prices of its model, its estimate, or what its service may state at most.
fn reserved_cost(definition: &ToolDefinition, held_grant: Option<&Arc<HeldGrant>>, parameters: &Value) -> Option<Cost> {
    let limit = held_grant.and_then(|held_grant| held_grant.effective.constraints.max_cost_per_invocation);
    definition.reserved_cost(parameters, limit)
}

fn no_source(eligible: &EligibleGrant) -> Refusal {
    let (tool, action) = (eligible.candidate.tool.qualified_name(), eligible.action().as_str());
    let reason = format!("tool {tool} cannot be called: this gate has no source for the action {action}");
    Refusal::new(Code::ToolNotExecutable, reason)
}

/// The arguments as they may appear in a record: nothing of them if the secrets to redact are unknown.
pub(super) fn shown<'a>(parameters: &'a Value, opened: &Opened) -> Cow<'a, Value> {
    match opened {
        Some(Err(_)) => Cow::Owned(Value::Object(Map::new())),
        Some(Ok(unsealed)) => unsealed.redactor.arguments(parameters),
        None => Cow::Borrowed(parameters),
    }
}

/// Refuses arguments that could not be shown at all: an approver and the record must see what is sent.
pub(super) fn require_shown(parameters: &Value, opened: &Opened) -> Result<(), Refusal> {
    match opened {
        Some(Ok(unsealed)) if unsealed.redactor.withholds(parameters) => {
            let reason = "a parameter has too many nested escapes to search it for the credential's secret; send it \
                with fewer";
            Err(Refusal::new(Code::ParametersInvalid, reason))
        }
        _ => Ok(()),
    }
}

/// The secrets that must not be visible in the arguments.
pub(super) fn secrets(opened: &Opened) -> Vec<&[u8]> {
    let unsealed = opened.iter().filter_map(|opened| opened.as_ref().ok());
    let fields = unsealed.flat_map(|unsealed| unsealed.material.iter());
    // A user name or a client id is not a secret: redacting it would let a caller hide the text around it.
    let secrets = fields.filter(|(name, secret)| !is_public_field(name, secret));
    secrets.map(|(_, secret)| secret.expose().as_bytes()).collect()
}

/// The credential of an admitted call, without its material, and how a request uses it.
pub struct CallCredential<'a> {
    pub credential: &'a Credential,
    pub connection: &'a Connection,
    pub adapter: AdapterName,
    pub placement: &'a AuthPlacement,
}

impl Admitted {
    pub fn tool(&self) -> &ToolName {
        &self.eligible.candidate.tool.name
    }

    pub fn definition(&self) -> &ToolDefinition {
        &self.eligible.candidate.tool.definition
    }

    /// The parameters that are repeated in headers of the request to a mounted server.
    pub fn mirrored(&self) -> &[Mirrored] {
        self.eligible.candidate.tool.mirrored()
    }

    pub fn action(&self) -> Action {
        self.eligible.action()
    }

    /// The request to send, without the credential.
    pub fn request(&self) -> Option<&RenderedRequest> {
        self.eligible.sent()
    }

    pub fn credential(&self) -> Option<CallCredential<'_>> {
        let used = self.eligible.credential.as_deref()?;
        let connection = used.held_grant.connection.as_ref().ok()?;
        let (credential, adapter, placement) = (&used.held_grant.credential, used.adapter, &used.placement);
        Some(CallCredential { credential, connection, adapter, placement })
    }

    /// What the client of the call can be asked for, and what it has sent.
    pub fn input(&self) -> Option<&ClientInput> {
        self.call.input.as_deref()
    }

    /// The answer of the approver, if the tool is a question.
    pub fn answer(&self) -> Option<&str> {
        self.command.consent.answer.as_deref()
    }

    /// Whether the tool counts this status of the service as success.
    pub fn is_success(&self, status: u16) -> bool {
        match (&self.definition().http, self.eligible.connection()) {
            (Some(http), _) => http.is_success(status),
            (None, Some(connection)) => connection.endpoint(self.tool()).is_success(status),
            (None, None) => (200..300).contains(&status),
        }
    }

    /// INVARIANT: an object.
    pub fn parameters(&self) -> &Value {
        self.modified.as_ref().unwrap_or(&self.call.parameters)
    }

    /// Checks a result against the schema of results that the tool declares.
    pub fn check_result(&self, result: &Value) -> Result<(), SchemaViolation> {
        self.eligible.candidate.tool.check_result(result)
    }

    /// The record of the call, as running.
    pub fn invocation(&self) -> &Invocation {
        &self.command.invocation
    }

    /// Host sets that must all contain the called host.
    pub fn allowed_hosts(&self) -> Vec<&HostSet> {
        let own = self.eligible.connection().and_then(|connection| connection.allowed_hosts.as_ref());
        let held_grant = self.eligible.candidate.held_grant();
        let granted = held_grant.and_then(|held_grant| held_grant.effective.constraints.allowed_hosts.as_ref());
        own.into_iter().chain(granted).collect()
    }

    /// Whether anybody wants to know how far the call has come.
    pub fn is_observed(&self) -> bool {
        self.call.observer.is_some()
    }

    /// Passes on how far a server has come.
    pub fn report(&self, progress: UpstreamProgress) {
        self.call.notify(|| Progress::Upstream(Box::new(progress)));
    }

    pub fn traced(&self) -> Option<&TracedCall> {
        self.call.traced.as_deref()
    }

    pub fn deadline(&self) -> Duration {
        deadline(&self.eligible)
    }

    /// Whether policies were active when it was admitted.
    pub(super) fn is_judged_by_policies(&self) -> bool {
        self.command.policies > 0
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    pub(super) fn eligible(&self) -> &EligibleGrant {
        &self.eligible
    }

    pub(super) fn candidate(&self) -> &Candidate {
        &self.eligible.candidate
    }

    pub(super) fn grant(&self) -> Option<GrantId> {
        self.eligible.candidate.grant()
    }

    /// The accounts of its reservations, each with the day that it was admitted in.
    pub(super) fn accounts(&self) -> Vec<(Account, i64)> {
        let today = beginning_of_day(self.command.audit.time).as_millis();
        let day = |account: &Account| if account.is_daily() { today } else { 0 };
        let reserved = self.command.reservations.iter().map(|reservation| &reservation.account);
        reserved.map(|account| (account.clone(), day(account))).collect()
    }

    pub(super) fn into_invocation(self) -> Invocation {
        // No other reference is left by now.
        Arc::try_unwrap(self.command).map_or_else(|shared| shared.invocation.clone(), |command| command.invocation)
    }
}

impl Call {
    /// The marks that the call leaves on its conversation: the labels of its tool, and that what it returns is untrusted.
    fn marks(&self, candidate: &Candidate) -> Option<Marks> {
        let definition = &candidate.tool.definition;
        let labels = definition.labels.iter().map(Label::as_str);
        let labels = labels.chain(definition.taints().then_some(UNTRUSTED)).map(str::to_owned);
        let labels: BTreeSet<String> = labels.collect();
        (!labels.is_empty()).then(|| Marks { scope: self.mark_scope(), labels })
    }
}

fn deadline(eligible: &EligibleGrant) -> Duration {
    let definition = &eligible.candidate.tool.definition;
    let of_step = definition.step.as_ref().and_then(Step::longest);
    let timeout = definition.timeout.or(of_step).or_else(|| eligible.connection().map(|connection| connection.timeout));
    let longest = of_step.unwrap_or(eligible.action().longest());
    timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(Duration::from_secs(1), longest)
}

fn earlier(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (one, other) => one.or(other),
    }
}

/// The digest by which two requests are the same. A grant that the gate selected is not part of it.
fn request_digest(call: &Call, eligible: &EligibleGrant) -> String {
    let tool = &eligible.candidate.tool;
    let mut request = json!({
        "service": tool.service, "tool": tool.name, "version": call.version, "grant_id": call.grant,
        "parameters": call.parameters, "context": call.context,
    });
    call.digest_input(&mut request);
    sha256(&to_canonical(&request)).to_hex()
}

/// Refusals that may not apply to another grant.
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
