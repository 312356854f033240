//! Tasks of peer agents belong to the agent that began them. Peers take all callers for one, because all share a credential:
//! who may name which task, and whom a task belongs to from its first mention on, is decided here, for every transport.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use toolgate_model::a2a::{Named, Operation};
use toolgate_model::credential::CredentialStatus;
use toolgate_model::grant::GrantStatus;
use toolgate_model::step::{A2aStep, Step, StepError, StreamEvent};

use super::constrain::outside_step;
use super::eligible::Candidate;
use super::stream::Streamed;
use super::{Admitted, Call, Pipeline};
use crate::ports::clock::pause;
use crate::ports::ledger::{Freshness, OwnTasks, OwnedTasks};
use crate::refusal::{Code, Refusal};

/// How often a stream looks whether it is still authorized.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Candidate {
    /// The message to another agent that the call is.
    fn a2a(&self) -> Option<&A2aStep> {
        match self.step()? {
            Step::A2a(step) => Some(step),
            _ => None,
        }
    }
}

impl Pipeline {
    /// Refuses a call that names a task or context that is not its agent's, as if there were none.
    pub(super) async fn require_tasks(
        &self,
        call: &Call,
        candidate: &Candidate,
        parameters: &Value,
    ) -> Result<(), Refusal> {
        let Some(step) = candidate.a2a() else { return Ok(()) };
        let named = step.named(parameters).map_err(|error| outside_step(&error))?;
        if named.is_empty() {
            return Ok(());
        }
        let owned = self.agent_tasks.owned_tasks(owned(call, candidate, named.clone())).await?;
        if named.tasks.iter().any(|id| !owned.tasks.contains(id)) {
            return Err(Refusal::new(Code::PeerTaskNotFound, "there is no such task"));
        }
        if named.contexts.iter().any(|id| !owned.contexts.contains(id)) {
            return Err(Refusal::new(Code::PeerTaskNotFound, "there is no such context"));
        }
        Ok(())
    }

    /// Makes the tasks of a result the agent's, before anybody gets it. Of a list of tasks only the agent's own are kept.
    pub(super) async fn take_tasks(&self, admitted: &Admitted, result: &mut Value) -> Result<(), Refusal> {
        let Some(step) = admitted.candidate().a2a() else { return Ok(()) };
        let named = step.named_by(result).map_err(|error| invalid(&error))?;
        match step.operation {
            Operation::Card => Ok(()),
            Operation::List => {
                let owned = self.agent_tasks.owned_tasks(owned(admitted.call(), admitted.candidate(), named)).await?;
                let owned: BTreeSet<String> = owned.tasks.into_iter().collect();
                step.keep_tasks(result, |id| owned.contains(id));
                Ok(())
            }
            _ => self.own(admitted, named).await,
        }
    }

    /// The same for an event of a stream. `known` are those that it was done for already.
    pub(super) async fn take_event(
        &self,
        admitted: &Admitted,
        event: &StreamEvent,
        known: &mut Named,
    ) -> Result<(), Refusal> {
        let Some(step) = admitted.candidate().a2a() else { return Ok(()) };
        let mut named = step.named_by_event(event).map_err(|error| invalid(&error))?;
        named.tasks.retain(|id| !known.tasks.contains(id));
        named.contexts.retain(|id| !known.contexts.contains(id));
        self.own(admitted, named.clone()).await?;
        known.tasks.extend(named.tasks);
        known.contexts.extend(named.contexts);
        Ok(())
    }

    async fn own(&self, admitted: &Admitted, named: Named) -> Result<(), Refusal> {
        // INVARIANT: a peer is called under a grant.
        let Some(grant) = admitted.grant().filter(|_| !named.is_empty()) else { return Ok(()) };
        let OwnedTasks { tenant, peer, agent, named } = owned(admitted.call(), admitted.candidate(), named);
        let time = self.clock.now();
        self.agent_tasks.own_tasks(OwnTasks { tenant, peer, agent, grant, named, time, limit: None }).await
    }

    /// Cancels the task of a stream that was cut for what it contains: cutting a stream does not stop the work. Whether that
    /// succeeded is recorded with the reason of the cut.
    pub(super) async fn cancel_task(&self, admitted: &Admitted, streamed: &mut Streamed) {
        let Some(step) = admitted.candidate().a2a() else { return };
        let task = streamed.result.get("task_id").and_then(Value::as_str);
        let cancelling = task.zip(admitted.request()).and_then(|(task, opened)| step.cancelling(opened, task));
        let (Some(request), Some(cut)) = (cancelling, streamed.cut.take()) else { return };
        let cancelled = self.follow_up(admitted, &request).await;
        let is_cancelled = cancelled.as_ref().is_ok_and(|response| response.result.get("error").is_none());
        let told = match is_cancelled {
            true => "; its task was cancelled",
            false => "; its task could not be cancelled and may go on",
        };
        streamed.cut = Some(cut.adding(told).with("task_cancelled", is_cancelled));
    }

    /// Returns as soon as a call is no longer authorized: its key or its grant has ended. A stream lasts up to an
    /// hour, and what was revoked must not be used for that long.
    pub(super) async fn until_unauthorized(&self, admitted: &Admitted) -> Refusal {
        loop {
            pause(LOOK_INTERVAL).await;
            if let Err(refusal) = self.still_authorized(admitted).await {
                return refusal;
            }
        }
    }

    async fn still_authorized(&self, admitted: &Admitted) -> Result<(), Refusal> {
        let call = admitted.call();
        self.authenticator.identify_again(&call.caller).await?;
        let Some(grant) = admitted.grant() else { return Ok(()) };
        let now = self.clock.now();
        let held = self.held_grants.held_grants(call.caller.tenant(), &call.agent, now, Freshness::Newest).await?;
        let Some(found) = held.held.iter().find(|held| held.grant() == grant) else {
            // A list that was cut says nothing about a grant that is not in it.
            let gone = || Refusal::new(Code::GrantRevoked, "the grant of this call was revoked");
            return if held.truncated { Ok(()) } else { Err(gone()) };
        };
        let standing = found.lineage.standing(now);
        if standing.status != GrantStatus::Active {
            return Err(Refusal::of_standing(standing, grant));
        }
        match found.credential.status(now) {
            CredentialStatus::Active => Ok(()),
            _ => Err(Refusal::new(Code::CredentialRevoked, "the credential of this call is no longer valid")),
        }
    }
}

fn owned(call: &Call, candidate: &Candidate, named: Named) -> OwnedTasks {
    OwnedTasks {
        tenant: call.caller.tenant().clone(),
        peer: candidate.tool.service.clone(),
        agent: call.agent.clone(),
        named,
    }
}

fn invalid(error: &StepError) -> Refusal {
    Refusal::new(Code::PeerResponseInvalid, format!("{error}; it is withheld"))
}
