//! Workflows as rows: reading the state that a file is compared with, and locking what that state consists of.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_gate::ports::ledger::{OwnedKind, OwnedObject, Ownership, WorkflowQuery, WorkflowRecord, WorkflowState};
use toolgate_model::grant::Grant;
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::{Principal, PrincipalId, TenantId};
use toolgate_model::workflow::{WorkflowName, WorkflowVersion};

use super::{Operation, grant_rows, principals, tenants, work};
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

const COLUMNS: &str = "name, version, revision, details, created_by, applied_by, applied_at";

fn read(row: &Row) -> Result<WorkflowRecord, SqlError> {
    Ok(WorkflowRecord {
        name: row.parsed(0, WorkflowName::parse)?,
        version: row.parsed(1, WorkflowVersion::parse)?,
        revision: row.count(2)?,
        details: row.json(3)?,
        created_by: row.parsed(4, PrincipalId::parse)?,
        applied_by: row.parsed(5, PrincipalId::parse)?,
        applied_at: row.time(6)?,
    })
}

/// Reads a workflow and locks it as `lock` says.
pub async fn locked<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    name: &WorkflowName,
    lock: &str,
) -> Result<Option<WorkflowRecord>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM workflows WHERE tenant = $1 AND name = $2{lock}");
    let row = transaction.query_optional(&sql, values![tenant, name.as_str()]).await?;
    Ok(row.as_ref().map(read).transpose()?)
}

/// Reads the state that a file is compared with.
pub struct ReadWorkflowState {
    pub query: WorkflowQuery,
}

impl Operation for ReadWorkflowState {
    type Output = WorkflowState;

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<WorkflowState, Failure> {
        state(transaction, &self.query).await
    }
}

pub async fn state<T: Transaction>(transaction: &mut T, query: &WorkflowQuery) -> Result<WorkflowState, Failure> {
    let tenant = &query.tenant;
    let record = locked(transaction, tenant, &query.name, "").await?;
    let owned = owned(transaction, tenant, &query.name).await?;
    let principals = principals_of(transaction, query, &owned).await?;
    let grants = grants_of(transaction, query, principals.keys().chain(&query.agents), &owned).await?;
    let of_others = owned_by_others(transaction, query).await?;
    let sql = "SELECT revision, policies FROM registries WHERE tenant = $1";
    let (registry, policies) = match transaction.query_optional(sql, values![tenant]).await? {
        Some(row) => (row.count(0)?, row.count(1)?),
        None => (0, 0),
    };
    let work = record.as_ref().and_then(|record| record.details.work.as_ref());
    let coordination = match work {
        Some(work) => work::coordination(transaction, tenant, work).await?,
        None => None,
    };
    let row = transaction.query_optional(tenants::SELECT, values![tenant]).await?;
    let budget = row.as_ref().map(tenants::read).transpose()?.and_then(|tenant| tenant.budget);
    Ok(WorkflowState { record, owned, of_others, principals, grants, coordination, budget, registry, policies })
}

fn object(row: &Row) -> Result<OwnedObject, SqlError> {
    let kind = row.parsed(0, |text| OwnedKind::parse(text).ok_or(()))?;
    Ok(OwnedObject { kind, id: row.text(1)?.to_owned() })
}

async fn owned<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    name: &WorkflowName,
) -> Result<BTreeMap<OwnedObject, Ownership>, Failure> {
    let sql = "SELECT kind, object, ownership FROM workflow_objects WHERE tenant = $1 AND workflow = $2";
    let rows = transaction.query(sql, values![tenant, name.as_str()]).await?;
    let read = rows.iter().map(|row| Ok((object(row)?, row.json(2)?)));
    Ok(read.collect::<Result<_, SqlError>>()?)
}

async fn owned_by_others<T: Transaction>(
    transaction: &mut T,
    query: &WorkflowQuery,
) -> Result<BTreeMap<OwnedObject, WorkflowName>, Failure> {
    let sql = "SELECT kind, object, workflow FROM workflow_objects WHERE tenant = $1 AND workflow <> $2";
    let rows = transaction.query(sql, values![&query.tenant, query.name.as_str()]).await?;
    let read = rows.iter().map(|row| Ok((object(row)?, row.parsed(2, WorkflowName::parse)?)));
    Ok(read.collect::<Result<_, SqlError>>()?)
}

async fn principals_of<T: Transaction>(
    transaction: &mut T,
    query: &WorkflowQuery,
    owned: &BTreeMap<OwnedObject, Ownership>,
) -> Result<BTreeMap<PrincipalId, Principal>, Failure> {
    let mut found = BTreeMap::new();
    for id in agents(query, owned) {
        if let Some(principal) = principals::locked(transaction, &query.tenant, &id, "").await? {
            found.insert(id, principal);
        }
    }
    Ok(found)
}

/// The agents of the query and those that the workflow owns, in order.
fn agents(query: &WorkflowQuery, owned: &BTreeMap<OwnedObject, Ownership>) -> BTreeSet<PrincipalId> {
    let of_workflow = owned.keys().filter(|object| object.kind == OwnedKind::Agent);
    let of_workflow = of_workflow.filter_map(|object| PrincipalId::parse(&object.id).ok());
    query.agents.iter().cloned().chain(of_workflow).collect()
}

async fn grants_of<'a, T: Transaction>(
    transaction: &mut T,
    query: &WorkflowQuery,
    agents: impl Iterator<Item = &'a PrincipalId>,
    owned: &BTreeMap<OwnedObject, Ownership>,
) -> Result<BTreeMap<GrantId, Grant>, Failure> {
    let is_live = "source IS NULL AND revoked_at IS NULL";
    let mut grants = BTreeMap::new();
    let agents: BTreeSet<&PrincipalId> = agents.collect();
    for agent in agents {
        let sql = format!("SELECT {} FROM grants WHERE tenant = $1 AND agent = $2 AND {is_live}", grant_rows::COLUMNS);
        for row in transaction.query(&sql, values![&query.tenant, agent]).await? {
            let grant = grant_rows::read(&row)?;
            grants.insert(grant.id, grant);
        }
    }
    for id in owned.keys().filter(|object| object.kind == OwnedKind::Grant) {
        let Ok(id) = GrantId::parse(&id.id) else { continue };
        if grants.contains_key(&id) {
            continue;
        }
        let sql = format!("SELECT {} FROM grants WHERE tenant = $1 AND id = $2 AND {is_live}", grant_rows::COLUMNS);
        if let Some(row) = transaction.query_optional(&sql, values![&query.tenant, id]).await? {
            grants.insert(id, grant_rows::read(&row)?);
        }
    }
    grants.retain(|_, grant: &mut Grant| grant.authority.expires_at.is_none_or(|end| end > query.now));
    Ok(grants)
}

/// Locks what a state consists of against changes until the transaction ends: in the global order principals, intents,
/// credentials, grants, registry, and then the workflow itself.
pub async fn hold<T: Transaction>(
    transaction: &mut T,
    query: &WorkflowQuery,
    expected: &WorkflowState,
    credentials: &BTreeSet<CredentialId>,
) -> Result<(), Failure> {
    let tenant = &query.tenant;
    let agents: BTreeSet<&PrincipalId> = query.agents.iter().chain(expected.principals.keys()).collect();
    for agent in agents {
        principals::locked(transaction, tenant, agent, T::FOR_UPDATE).await?;
    }
    if let Some(former) = &expected.coordination {
        work::hold_coordination(transaction, tenant, former.intent).await?;
    }
    let of_grants = expected.grants.values().map(|grant| grant.credential);
    let credentials: BTreeSet<CredentialId> = of_grants.chain(credentials.iter().copied()).collect();
    for credential in credentials {
        let sql = format!("SELECT id FROM credentials WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
        transaction.query(&sql, values![tenant, credential]).await?;
    }
    for grant in expected.grants.keys() {
        let sql = format!("SELECT id FROM grants WHERE tenant = $1 AND id = $2{}", T::FOR_UPDATE);
        transaction.query(&sql, values![tenant, *grant]).await?;
    }
    let sql = "INSERT INTO registries (tenant, revision) VALUES ($1, 0) ON CONFLICT (tenant) DO NOTHING";
    transaction.execute(sql, values![tenant]).await?;
    let sql = format!("SELECT revision FROM registries WHERE tenant = $1{}", T::FOR_UPDATE);
    transaction.query(&sql, values![tenant]).await?;
    locked(transaction, tenant, &query.name, T::FOR_UPDATE).await.map(drop)
}

/// Stores a workflow as it was applied; false if it was created by another principal meanwhile.
pub async fn store<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    record: &WorkflowRecord,
) -> Result<bool, Failure> {
    let details = crate::sql::json_text(&record.details)?;
    let (sql, parameters) = if record.revision == 1 {
        let sql = "INSERT INTO workflows (tenant, name, version, revision, details, created_by, applied_by, applied_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, name) DO NOTHING";
        let parameters = vec![
            Value::from(tenant),
            record.name.as_str().into(),
            record.version.as_str().into(),
            record.revision.into(),
            details,
            (&record.created_by).into(),
            (&record.applied_by).into(),
            record.applied_at.into(),
        ];
        (sql, parameters)
    } else {
        let sql = "UPDATE workflows SET version = $1, revision = $2, details = $3, applied_by = $4, applied_at = $5 \
             WHERE tenant = $6 AND name = $7 AND revision = $8";
        let parameters = vec![
            record.version.as_str().into(),
            record.revision.into(),
            details,
            (&record.applied_by).into(),
            record.applied_at.into(),
            Value::from(tenant),
            record.name.as_str().into(),
            (record.revision - 1).into(),
        ];
        (sql, parameters)
    };
    Ok(transaction.execute(sql, &parameters).await? > 0)
}
