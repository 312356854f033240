//! Who sees an intent, who takes part in it and who directs it.

use std::sync::Arc;

use toolgate_gate::ports::ledger::Viewer;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::IntentId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::{Coordinator, Intent};

use super::super::administration::Entitled;
use super::super::listing::Conditions;
use super::{coordinator_rows, intents};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// The intents that the principal at this place takes part in.
pub fn taken_part_in(place: usize) -> String {
    format!(
        "SELECT id FROM intents WHERE created_by = ${place} \
         UNION SELECT intent FROM participants WHERE agent = ${place} \
         UNION SELECT intent FROM coordinators WHERE agent = ${place} OR supervisor = ${place} \
         UNION SELECT intent FROM tasks WHERE assigned_agent = ${place}"
    )
}

/// Adds that the viewer sees the intent in this column. The conditions name the tenant besides.
pub fn seen_by<'a>(conditions: &mut Conditions<'a>, column: &str, viewer: &'a Viewer) {
    if let Viewer::Participant(principal) = viewer {
        conditions.and_at(&**principal, |place| format!("{column} IN ({})", taken_part_in(place)));
    }
}

/// Whether a viewer sees an intent.
pub async fn sees<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    intent: IntentId,
    viewer: &Viewer,
) -> Result<bool, Failure> {
    let mut conditions = Conditions::default();
    conditions.and("id =", intent);
    conditions.and("tenant =", tenant);
    seen_by(&mut conditions, "id", viewer);
    let (condition, parameters) = conditions.finish();
    let sql = format!("SELECT id FROM intents WHERE {condition}");
    Ok(transaction.query_optional(&sql, &parameters).await?.is_some())
}

/// An intent that is locked until the transaction ends, and the relation of the actor to it.
pub struct HeldIntent {
    pub intent: Intent,
    /// Those that have not ended.
    pub coordinators: Vec<Coordinator>,
    manages: bool,
    actor: PrincipalId,
}

/// Locks an intent that the actor takes part in. Any other does not exist for it.
pub async fn hold<T: Transaction>(transaction: &mut T, by: &Entitled<'_>, id: IntentId) -> Result<HeldIntent, Failure> {
    let held = hold_unseen(transaction, by, id).await?.ok_or_else(|| Refusal::no_intent(id))?;
    if !held.directs() && !by.may(Permission::ReadAudit) && !participates(transaction, by, id, &by.actor).await? {
        return Err(Refusal::no_intent(id).into());
    }
    Ok(held)
}

/// The same, whether or not the actor takes part in it.
pub async fn hold_unseen<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    id: IntentId,
) -> Result<Option<HeldIntent>, Failure> {
    let sql = format!("SELECT {} FROM intents WHERE id = $1 AND tenant = $2{}", intents::COLUMNS, T::FOR_UPDATE);
    let Some(row) = transaction.query_optional(&sql, values![id, &by.tenant]).await? else { return Ok(None) };
    let coordinators = coordinator_rows::live_of_intent(transaction, id).await?;
    Ok(Some(HeldIntent {
        intent: intents::read(&row)?,
        coordinators,
        manages: by.may(Permission::ManageTools),
        actor: by.actor.clone(),
    }))
}

/// Whether this agent takes part in the intent.
pub async fn participates<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    id: IntentId,
    agent: &PrincipalId,
) -> Result<bool, Failure> {
    sees(transaction, &by.tenant, id, &Viewer::Participant(Arc::new(agent.clone()))).await
}

impl HeldIntent {
    /// Whether the actor may change plans, tasks, agents and the state.
    pub fn directs(&self) -> bool {
        self.manages || self.intent.created_by == self.actor || self.acting().next().is_some()
    }

    /// The coordinators that the actor is and that may act.
    pub fn acting(&self) -> impl Iterator<Item = &Coordinator> {
        self.coordinators.iter().filter(|one| one.agent == self.actor && one.status.may_act())
    }

    /// The agent whose grants are delegated with a task: the actor, if it is a coordinator that does so; for principals with
    /// `tools.manage`, the first coordinator that does.
    pub fn delegating(&self) -> Option<&PrincipalId> {
        let delegates = |one: &&Coordinator| one.guardrails.auto_delegate;
        let others = || self.coordinators.iter().filter(|one| self.manages && one.status.may_act());
        self.acting().find(delegates).or_else(|| others().find(delegates)).map(|one| &one.agent)
    }

    pub fn require_directed(&self) -> Result<(), Refusal> {
        if self.directs() {
            return Ok(());
        }
        let reason = format!(
            "only its creator, its coordinators and those with the permission {} direct intent {}",
            Permission::ManageTools,
            self.intent.id
        );
        Err(Refusal::new(Code::PermissionDenied, reason).with("intent_id", self.intent.id))
    }

    pub fn require_open(&self) -> Result<(), Refusal> {
        let Intent { id, status, .. } = &self.intent;
        if !status.has_ended() {
            return Ok(());
        }
        let reason = format!("intent {id} is {status}; nothing below it changes any more");
        Err(Refusal::new(Code::IntentStateInvalid, reason).with("intent_id", id).with("status", status))
    }

    /// The smallest of these limits of all coordinators, with the coordinator that has it.
    pub fn smallest(&self, limit: impl Fn(&Coordinator) -> Option<u32>) -> Option<(u32, &Coordinator)> {
        let limits = self.coordinators.iter().filter_map(|one| Some((limit(one)?, one)));
        limits.min_by_key(|(limit, _)| *limit)
    }
}
