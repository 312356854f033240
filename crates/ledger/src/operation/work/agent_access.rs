//! What an agent can use: its grants in effect, for the requirements of tasks.

use toolgate_model::credential::{CredentialStatus, ServiceName};
use toolgate_model::grant::{GrantStatus, Lineage};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{HeldAccess, Task, ToolRequirement};

use crate::operation::grant_lists::with_lineages;
use crate::operation::grant_rows;
use crate::operation::held_grants::read_credentials;
use crate::sql::{Failure, Value};
use crate::transaction::Transaction;

/// The grants of an agent on these services that can be used now, each with its lineage, oldest first.
pub async fn usable<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agent: &PrincipalId,
    services: impl IntoIterator<Item = &ServiceName>,
    now: Timestamp,
) -> Result<Vec<Lineage>, Failure> {
    let services: std::collections::BTreeSet<&ServiceName> = services.into_iter().collect();
    if services.is_empty() {
        return Ok(Vec::new());
    }
    let mut parameters = vec![Value::from(tenant), Value::from(agent), Value::from(now)];
    let places: Vec<_> = (1..=services.len()).map(|number| format!("${}", number + 3)).collect();
    parameters.extend(services.into_iter().map(Value::from));
    let sql = format!(
        "SELECT {} FROM grants WHERE tenant = $1 AND agent = $2 AND revoked_at IS NULL \
         AND (expires_at IS NULL OR expires_at > $3) AND service IN ({}) ORDER BY id LIMIT 2000",
        grant_rows::COLUMNS,
        places.join(", ")
    );
    let rows = transaction.query(&sql, &parameters).await?;
    let grants = rows.iter().map(grant_rows::read).collect::<Result<Vec<_>, _>>()?;
    let lineages = with_lineages(transaction, grants).await?;
    let credentials = lineages.iter().map(|lineage| lineage.grant().credential);
    let credentials = read_credentials(transaction, credentials).await?;
    let is_usable = |lineage: &Lineage| {
        let credential = credentials.get(&lineage.grant().credential);
        lineage.standing(now).status == GrantStatus::Active
            && credential.is_some_and(|credential| credential.status(now) == CredentialStatus::Active)
    };
    Ok(lineages.into_iter().filter(is_usable).collect())
}

/// What the grants of an agent allow, for the requirements of a task.
pub async fn for_task<T: Transaction>(
    transaction: &mut T,
    agent: &PrincipalId,
    task: &Task,
    now: Timestamp,
) -> Result<Vec<HeldAccess>, Failure> {
    let services = task.details.requires_tools.iter().map(|requirement: &ToolRequirement| &requirement.service);
    let lineages = usable(transaction, &task.tenant, agent, services, now).await?;
    Ok(lineages.iter().map(access).collect())
}

fn access(lineage: &Lineage) -> HeldAccess {
    let effective = lineage.effective();
    HeldAccess {
        grant: lineage.grant().id,
        service: lineage.grant().service.clone(),
        scopes: effective.scopes,
        context: effective.context,
    }
}
