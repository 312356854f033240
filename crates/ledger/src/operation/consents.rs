//! Consent: the approvals that calls are based on, consumed in the transaction that admits the calls. A decision admits
//! one call and no second one; a standing approval counts every call that it covers, and never one too many.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::ports::ledger::Admit;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Approval, ApprovalStatus, StandingApproval, StandingState};
use toolgate_model::event::{EventPayload, StandingApprovalUsed};
use toolgate_model::id::{ApprovalId, InvocationId, StandingApprovalId};
use toolgate_model::principal::TenantId;

use super::record::{Entry, Recorded, record_each};
use super::standing_approvals;
use crate::sql::{Failure, Row, Value};
use crate::transaction::{Transaction, values};

/// The approvals of some calls, held by the transaction.
#[derive(Default)]
pub struct Consents {
    held_approvals: BTreeMap<(TenantId, ApprovalId), HeldApproval>,
    standing: BTreeMap<(TenantId, StandingApprovalId), StandingApproval>,
    /// The standing approvals that were used.
    used: BTreeSet<(TenantId, StandingApprovalId)>,
    /// The consumed decisions, each with its call.
    taken: Vec<(InvocationId, TenantId, ApprovalId)>,
    events: Vec<Recorded>,
}

struct HeldApproval {
    approval: Approval,
    used_by: Option<InvocationId>,
}

impl Consents {
    /// Locks the approvals of these calls. Without any, no statement is run.
    pub async fn hold<'a, T: Transaction>(
        transaction: &mut T,
        calls: impl Iterator<Item = &'a Admit> + Clone,
    ) -> Result<Self, Failure> {
        let tenant = |admit: &Admit| admit.audit.tenant.clone();
        let held_approvals: BTreeSet<_> =
            calls.clone().filter_map(|admit| Some((tenant(admit), admit.consent.approval?))).collect();
        let standing: BTreeSet<_> = calls
            .flat_map(|admit| admit.consent.standing.iter().map(move |standing| (tenant(admit), *standing)))
            .collect();
        let mut held = Self::default();
        for row in held_rows(transaction, "approvals", "id, body, used_by", &held_approvals).await? {
            let approval: Approval = row.json(1)?;
            let used_by = row.optional_parsed(2, InvocationId::parse)?;
            held.held_approvals.insert((approval.tenant.clone(), approval.id), HeldApproval { approval, used_by });
        }
        for row in held_rows(transaction, "standing_approvals", standing_approvals::COLUMNS, &standing).await? {
            let standing = standing_approvals::read(&row)?;
            held.standing.insert((standing.tenant.clone(), standing.id), standing);
        }
        Ok(held)
    }

    /// Whether everything that the call is based on still allows it.
    pub fn check(&self, admit: &Admit) -> Result<(), Refusal> {
        if let Some(id) = admit.consent.approval {
            self.check_approval(admit, id)?;
        }
        admit.consent.standing.iter().try_for_each(|id| self.check_standing(admit, *id))
    }

    /// Consumes what [`Consents::check`] found.
    pub fn take(&mut self, admit: &Admit) -> Result<(), Failure> {
        let (tenant, call) = (&admit.audit.tenant, admit.invocation.id);
        if let Some(id) = admit.consent.approval
            && let Some(held_approval) = self.held_approvals.get_mut(&(tenant.clone(), id))
        {
            held_approval.used_by = Some(call);
            self.taken.push((call, tenant.clone(), id));
        }
        // However often one is named, it is one call.
        let named: BTreeSet<_> = admit.consent.standing.iter().copied().collect();
        for id in named {
            let name = (tenant.clone(), id);
            let Some(standing) = self.standing.get_mut(&name) else { continue };
            *standing = standing.used_at(admit.audit.time);
            let used = standing.used;
            let payload = EventPayload::StandingApprovalUsed(StandingApprovalUsed {
                invocation_id: call,
                standing_approval_id: id,
                tool: standing.tool.clone(),
                used,
            });
            self.events.push(Recorded::new(&admit.audit, [Entry::of_call(payload, &admit.invocation)])?);
            self.used.insert(name);
        }
        Ok(())
    }

    /// Stores what was consumed.
    pub async fn keep<T: Transaction>(self, transaction: &mut T) -> Result<(), Failure> {
        if !self.taken.is_empty() {
            let sql = "UPDATE approvals SET used_by = $1 WHERE tenant = $2 AND id = $3";
            let taken = self.taken.iter().map(|(call, tenant, id)| values![*call, tenant, *id].to_vec());
            transaction.execute_many(sql, &taken.collect::<Vec<_>>()).await?;
        }
        if !self.used.is_empty() {
            let used = self.standing.iter().filter(|(name, _)| self.used.contains(*name));
            let rows = used.map(|(_, standing)| standing_approvals::row(standing)).collect::<Result<Vec<_>, _>>()?;
            transaction.execute_many(standing_approvals::UPDATE, &rows).await?;
        }
        record_each(transaction, &self.events).await
    }

    fn check_approval(&self, admit: &Admit, id: ApprovalId) -> Result<(), Refusal> {
        let refuse = |why: &str| {
            let reason = format!("the approval {id} cannot be used: {why}; call again");
            Err(Refusal::new(Code::ApprovalRequired, reason).with("approval_id", id))
        };
        let Some(HeldApproval { approval, used_by }) = self.held_approvals.get(&(admit.audit.tenant.clone(), id))
        else {
            return refuse("there is none");
        };
        if approval.status != ApprovalStatus::Approved {
            return refuse(&format!("it is {}", approval.status.as_str()));
        }
        if used_by.is_some() {
            return refuse("another call has used it");
        }
        if admit.approval_digest.as_deref() != Some(approval.digest.as_str()) {
            return refuse("it was given for another call");
        }
        Ok(())
    }

    fn check_standing(&self, admit: &Admit, id: StandingApprovalId) -> Result<(), Refusal> {
        let refuse = |why: &str| {
            let reason = format!("the standing approval {id} cannot be used: {why}; call again");
            Err(Refusal::new(Code::ApprovalRequired, reason).with("standing_approval_id", id))
        };
        let Some(standing) = self.standing.get(&(admit.audit.tenant.clone(), id)) else {
            return refuse("there is none");
        };
        if standing.agent != admit.invocation.agent || *standing.tool != *admit.invocation.tool_name() {
            return refuse("it covers calls of another agent or tool");
        }
        if !standing.is_for_action(admit.action.as_ref()) {
            return refuse("it covers calls with another credential or another definition of the tool");
        }
        match standing.state(admit.audit.time) {
            StandingState::Active => Ok(()),
            StandingState::Expired => refuse("it has expired"),
            StandingState::Revoked => refuse("it was revoked"),
            StandingState::UsedUp => refuse("it has no uses left"),
        }
    }
}

/// The rows of these, in the global lock order.
async fn held_rows<T: Transaction, Id>(
    transaction: &mut T,
    table: &str,
    columns: &str,
    names: &BTreeSet<(TenantId, Id)>,
) -> Result<Vec<Row>, Failure>
where
    Id: Copy + Into<Value<'static>> + Sync,
{
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<_> = (0..names.len()).map(|row| format!("(${}, ${})", row * 2 + 1, row * 2 + 2)).collect();
    let sql = format!(
        "SELECT {columns} FROM {table} WHERE (tenant, id) IN (VALUES {}) ORDER BY tenant, id{}",
        places.join(", "),
        T::FOR_UPDATE
    );
    let parameters: Vec<Value<'_>> =
        names.iter().flat_map(|(tenant, id)| [Value::from(tenant), (*id).into()]).collect();
    Ok(transaction.query(&sql, &parameters).await?)
}
