//! Vaults.

use std::collections::BTreeMap;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{CreateVault, DeleteVault, Deleted, Mandate, Page, PageRequest, Vaults};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::Vault;
use toolgate_model::event::{EventPayload, VaultCreated, VaultDeleted};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::text::Line;

use super::administration::{Administration, Entitled};
use super::listing::{Conditions, placeholders};
use super::record::{Entry, record};
use super::{Operation, credentials};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Vaults for SqlLedger<E> {
    async fn create_vault(&self, command: CreateVault) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn vault(&self, tenant: &TenantId, id: VaultId) -> Result<Option<(Vault, Vec<CredentialId>)>, Refusal> {
        self.engine.read(ReadVault { tenant: tenant.clone(), id }).await
    }

    async fn vaults(
        &self,
        tenant: &TenantId,
        owner: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<(Vault, Vec<CredentialId>)>, Refusal> {
        self.engine.read(ListVaults { tenant: tenant.clone(), owner: owner.cloned(), page }).await
    }

    async fn delete_vault(&self, command: DeleteVault) -> Result<Deleted, Refusal> {
        let (credentials, grants) = self.engine.write(command).await?;
        Ok(Deleted { credentials, grants, revision: self.revision_after_change().await? })
    }
}

const COLUMNS: &str = "id, tenant, owner, name, created_at";

fn read(row: &Row) -> Result<Vault, SqlError> {
    Ok(Vault {
        id: row.parsed(0, VaultId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        owner: row.parsed(2, PrincipalId::parse)?,
        name: row.parsed(3, Line::parse)?,
        created_at: row.time(4)?,
    })
}

/// Reads a vault and keeps it from being deleted until the transaction ends.
pub async fn share<T: Transaction>(transaction: &mut T, tenant: &TenantId, id: VaultId) -> Result<Vault, Failure> {
    locked(transaction, tenant, id, T::FOR_SHARE).await
}

async fn locked<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: VaultId,
    lock: &str,
) -> Result<Vault, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM vaults WHERE id = $1 AND tenant = $2 AND deleted_at IS NULL{lock}");
    let row = transaction.query_optional(&sql, values![id, tenant]).await?;
    Ok(read(&row.ok_or_else(|| not_found(id))?)?)
}

fn not_found(id: VaultId) -> Refusal {
    Refusal::new(Code::VaultNotFound, format!("there is no vault {id}")).with("vault_id", id)
}

impl Administration for CreateVault {
    type Output = ();

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let vault = &self.vault;
        let sql = "INSERT INTO vaults (id, tenant, owner, name, created_at) VALUES ($1, $2, $3, $4, $5)";
        let parameters = values![vault.id, &vault.tenant, &vault.owner, &vault.name, vault.created_at];
        transaction.execute(sql, parameters).await?;
        let payload = EventPayload::VaultCreated(VaultCreated { vault_id: vault.id, owner_id: vault.owner.clone() });
        record(transaction, by, Entry::new(payload)).await
    }
}

impl Administration for DeleteVault {
    /// The numbers of credentials and grants.
    type Output = (u64, u64);

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(u64, u64), Failure> {
        locked(transaction, &by.tenant, self.id, T::FOR_UPDATE).await?;
        let mark = "UPDATE vaults SET deleted_at = $1 WHERE id = $2";
        transaction.execute(mark, values![by.time, self.id]).await?;
        let held =
            format!("SELECT id FROM credentials WHERE vault = $1 AND revoked_at IS NULL ORDER BY id{}", T::FOR_UPDATE);
        let rows = transaction.query(&held, values![self.id]).await?;
        let reason = format!("vault {} was deleted", self.id);
        let mut grants = 0;
        let mut revoked = 0;
        for row in &rows {
            let credential = row.parsed(0, CredentialId::parse)?;
            grants += credentials::revoke_held(transaction, by, credential, &reason).await?;
            revoked += 1;
        }
        let payload = EventPayload::VaultDeleted(VaultDeleted {
            vault_id: self.id,
            revoked_credentials: revoked,
            revoked_grants: grants,
        });
        record(transaction, by, Entry::new(payload)).await?;
        Ok((revoked, grants))
    }
}

/// Reads one vault with the ids of its credentials.
pub struct ReadVault {
    pub tenant: TenantId,
    pub id: VaultId,
}

impl Operation for ReadVault {
    type Output = Option<(Vault, Vec<CredentialId>)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM vaults WHERE id = $1 AND tenant = $2 AND deleted_at IS NULL");
        let Some(row) = transaction.query_optional(&sql, values![self.id, &self.tenant]).await? else {
            return Ok(None);
        };
        let vault = read(&row)?;
        let mut held = credentials_in(transaction, &[vault.id]).await?;
        let ids = held.remove(&vault.id).unwrap_or_default();
        Ok(Some((vault, ids)))
    }
}

/// Lists vaults with the ids of their credentials.
pub struct ListVaults {
    pub tenant: TenantId,
    /// Of one owner only.
    pub owner: Option<PrincipalId>,
    pub page: PageRequest,
}

impl Operation for ListVaults {
    type Output = Page<(Vault, Vec<CredentialId>)>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_that("deleted_at IS NULL");
        conditions.and_if("owner =", self.owner.as_ref());
        conditions.and_if("id >", self.page.after.as_deref());
        let from = (COLUMNS, "vaults", "id");
        let page = conditions.page(transaction, from, &self.page, read, |vault| vault.id.to_string()).await?;
        let ids: Vec<_> = page.items.iter().map(|vault| vault.id).collect();
        let mut held = credentials_in(transaction, &ids).await?;
        Ok(page.map(|vault| {
            let ids = held.remove(&vault.id).unwrap_or_default();
            (vault, ids)
        }))
    }
}

async fn credentials_in<T: Transaction>(
    transaction: &mut T,
    vaults: &[VaultId],
) -> Result<BTreeMap<VaultId, Vec<CredentialId>>, Failure> {
    let mut held: BTreeMap<VaultId, Vec<CredentialId>> = BTreeMap::new();
    if vaults.is_empty() {
        return Ok(held);
    }
    let places = placeholders(vaults.len());
    let sql = format!("SELECT id, vault FROM credentials WHERE vault IN ({places}) ORDER BY id");
    let parameters: Vec<Value<'_>> = vaults.iter().map(Value::from).collect();
    for row in transaction.query(&sql, &parameters).await? {
        let vault = row.parsed(1, VaultId::parse)?;
        held.entry(vault).or_default().push(row.parsed(0, CredentialId::parse)?);
    }
    Ok(held)
}
