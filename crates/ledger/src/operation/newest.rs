//! The newest id of all that is listed in the order of ids.

use toolgate_model::id::{
    ApprovalId, CoordinatorId, CredentialId, GrantId, IdError, IntentId, InvocationId, KeyId, LeaseId, PlanId,
    StandingApprovalId, TaskId, VaultId,
};
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

pub struct ReadNewestId;

impl Operation for ReadNewestId {
    type Output = Option<Timestamp>;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Timestamp>, Failure> {
        let mut newest = None;
        for (table, time) in OF_ALL {
            newest = newest.max(read(transaction, &format!("SELECT MAX(id) FROM {table}"), &[], time).await?);
        }
        let tenants = transaction.query("SELECT id FROM tenants", &[]).await?;
        for tenant in &tenants {
            let tenant = tenant.parsed(0, TenantId::parse)?;
            for (table, time) in OF_TENANT {
                // Led to the newest by the primary key.
                let sql = format!("SELECT MAX(id) FROM {table} WHERE tenant = $1");
                newest = newest.max(read(transaction, &sql, values![&tenant], time).await?);
            }
        }
        Ok(newest)
    }
}

/// The time in an id.
type TimeOf = fn(&str) -> Result<Timestamp, IdError>;

const OF_ALL: [(&str, TimeOf); 9] = [
    ("coordinators", |text| CoordinatorId::parse(text).map(CoordinatorId::time)),
    ("credentials", |text| CredentialId::parse(text).map(CredentialId::time)),
    ("grants", |text| GrantId::parse(text).map(GrantId::time)),
    ("intents", |text| IntentId::parse(text).map(IntentId::time)),
    ("keys", |text| KeyId::parse(text).map(KeyId::time)),
    ("leases", |text| LeaseId::parse(text).map(LeaseId::time)),
    ("plans", |text| PlanId::parse(text).map(PlanId::time)),
    ("tasks", |text| TaskId::parse(text).map(TaskId::time)),
    ("vaults", |text| VaultId::parse(text).map(VaultId::time)),
];

const OF_TENANT: [(&str, TimeOf); 3] = [
    ("approvals", |text| ApprovalId::parse(text).map(ApprovalId::time)),
    ("invocations", |text| InvocationId::parse(text).map(InvocationId::time)),
    ("standing_approvals", |text| StandingApprovalId::parse(text).map(StandingApprovalId::time)),
];

async fn read<T: Transaction>(
    transaction: &mut T,
    sql: &str,
    parameters: &[crate::sql::Value<'_>],
    time: TimeOf,
) -> Result<Option<Timestamp>, Failure> {
    let Some(row) = transaction.query_optional(sql, parameters).await? else { return Ok(None) };
    // One that cannot be read is no newer than the others.
    Ok(row.optional_text(0)?.and_then(|id| time(id).ok()))
}
