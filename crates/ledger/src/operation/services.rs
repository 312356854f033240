//! The registry of services.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{
    ApplyService, AuditContext, Freshness, Mandate, RegisteredService, Registry, RemoveService, Services,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::canonical::to_canonical;
use toolgate_model::event::{EventPayload, ServiceApplied, ServiceRemoved};
use toolgate_model::merkle::sha256;
use toolgate_model::principal::TenantId;
use toolgate_model::service::{ServiceDefinition, ServiceVersion, ToolName};
use toolgate_model::time::Timestamp;

use super::administration::{Administration, Entitled};
use super::record::{Entry, record};
use super::{Operation, agent_tasks, mount_rows, stores, tool_names};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Services for SqlLedger<E> {
    async fn apply_service(&self, command: ApplyService) -> Result<bool, Refusal> {
        self.engine.write(command).await
    }

    async fn remove_service(&self, command: RemoveService) -> Result<u64, Refusal> {
        self.engine.write(command).await
    }

    async fn registry(
        &self,
        tenant: &TenantId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<Registry>, Refusal> {
        let generation = self.engine.generation();
        if let Some(known) = self.registries.get(tenant, generation, now, freshness) {
            return Ok(known);
        }
        let last = self.registries.last_known(tenant);
        let known = last.as_ref().map(|registry| registry.revision);
        let registry = match (self.engine.read(ReadRegistry { tenant: tenant.clone(), known }).await?, last) {
            (Some(registry), _) => Arc::new(registry),
            (None, Some(last)) => last,
            (None, None) => Arc::new(Registry { revision: 0, services: Vec::new() }),
        };
        self.registries.put(tenant.clone(), Arc::clone(&registry), generation, now);
        Ok(registry)
    }
}

const COLUMNS: &str = "tenant, definition, created_at, updated_at";

fn read(row: &Row) -> Result<RegisteredService, SqlError> {
    Ok(RegisteredService {
        tenant: row.parsed(0, TenantId::parse)?,
        // A stored definition that cannot be parsed makes the registry unreadable, which disables it.
        definition: ServiceDefinition::from_stored_json(&row.json(1)?)
            .map_err(|error| SqlError::Corrupt(format!("definition of a service: {error}")))?,
        created_at: row.time(2)?,
        updated_at: row.time(3)?,
    })
}

/// Counts a change, and locks out every other change of this registry until the transaction ends.
pub async fn next_revision<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<i64, Failure> {
    let sql = "INSERT INTO registries (tenant, revision) VALUES ($1, 1) \
         ON CONFLICT (tenant) DO UPDATE SET revision = registries.revision + 1 RETURNING revision";
    let row = transaction.query_optional(sql, values![tenant]).await?;
    Ok(row.ok_or_else(|| SqlError::Corrupt("no revision of the registry".to_owned()))?.integer(0)?)
}

impl Administration for ApplyService {
    /// Whether it is new.
    type Output = bool;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<bool, Failure> {
        let place = next_revision(transaction, &by.tenant).await?;
        mount_rows::refuse_mounted(transaction, &by.tenant, &self.definition.service).await?;
        stores::refuse_store(transaction, &by.tenant, &self.definition.service).await?;
        store(transaction, by, &self.definition, place, self.replace).await
    }
}

/// Stores a definition in a registry that the transaction holds, and records it; true where it is new.
pub async fn store<T: Transaction>(
    transaction: &mut T,
    by: &AuditContext,
    definition: &ServiceDefinition,
    place: i64,
    replace: bool,
) -> Result<bool, Failure> {
    let tenant = &by.tenant;
    let canonical = to_canonical(&definition.to_json());
    // INVARIANT: canonical JSON is UTF-8.
    let text = String::from_utf8_lossy(&canonical);
    let (service, version) = (&definition.service, definition.version.as_str());
    let tools = definition.tools.keys().map(ToolName::as_str);
    tool_names::require_unique(transaction, tenant, service, tools).await?;
    let update = "UPDATE services SET definition = $1, updated_at = $2 \
         WHERE tenant = $3 AND service = $4 AND version = $5";
    let parameters = values![text.as_ref(), by.time, tenant, service, version];
    let known = match replace {
        true => transaction.execute(update, parameters).await? > 0,
        false => false,
    };
    if !known {
        let insert = "INSERT INTO services (tenant, service, version, definition, place, created_at, updated_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, service, version) DO NOTHING";
        let time = by.time;
        let parameters =
            values![tenant, service, version, text.as_ref(), crate::sql::Value::Integer(place), time, time];
        if transaction.execute(insert, parameters).await? == 0 {
            let reason = format!("service `{service}` already has a version `{version}`; replace it with PUT");
            return Err(Refusal::new(Code::AlreadyExists, reason).into());
        }
    }
    let payload = EventPayload::ServiceApplied(ServiceApplied {
        service: service.clone(),
        version: definition.version.clone(),
        tools: u64::try_from(definition.tools.len()).unwrap_or(u64::MAX),
        digest: sha256(&canonical).to_hex(),
    });
    record(transaction, by, Entry::new(payload)).await?;
    Ok(!known)
}

impl Administration for RemoveService {
    /// The number of versions.
    type Output = u64;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<u64, Failure> {
        let tenant = &by.tenant;
        next_revision(transaction, tenant).await?;
        mount_rows::refuse_mounted(transaction, tenant, &self.service).await?;
        stores::refuse_store(transaction, tenant, &self.service).await?;
        let version = self.version.as_ref().map(ServiceVersion::as_str);
        let sql = "DELETE FROM services WHERE tenant = $1 AND service = $2 \
             AND (CAST($3 AS TEXT) IS NULL OR version = $3) RETURNING version";
        let rows = transaction.query(sql, values![tenant, &self.service, version]).await?;
        if rows.is_empty() {
            let reason = match version {
                None => format!("there is no service `{}`", self.service),
                Some(version) => format!("there is no version `{version}` of service `{}`", self.service),
            };
            return Err(Refusal::new(Code::ServiceNotFound, reason).into());
        }
        agent_tasks::forget_peer(transaction, tenant, &self.service).await?;
        for row in &rows {
            let version = row.parsed(0, ServiceVersion::parse)?;
            let payload = EventPayload::ServiceRemoved(ServiceRemoved { service: self.service.clone(), version });
            record(transaction, by, Entry::new(payload)).await?;
        }
        Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
    }
}

/// Reads the registry of a tenant, unless the known revision is current.
pub struct ReadRegistry {
    pub tenant: TenantId,
    pub known: Option<u64>,
}

impl Operation for ReadRegistry {
    /// `None` if the known revision is current.
    type Output = Option<Registry>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Registry>, Failure> {
        let sql = "SELECT tenant, revision FROM registries WHERE tenant = $1";
        let revision = match transaction.query_optional(sql, values![&self.tenant]).await? {
            Some(row) => row.count(1)?,
            None => 0,
        };
        if self.known == Some(revision) {
            return Ok(None);
        }
        let sql = format!("SELECT {COLUMNS} FROM services WHERE tenant = $1 ORDER BY service, place DESC");
        let rows = transaction.query(&sql, values![&self.tenant]).await?;
        let services = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Registry { revision, services }))
    }
}
