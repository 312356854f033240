//! Reading grants: one with its lineage, its descendants, those that match a filter.

use std::collections::BTreeMap;

use toolgate_gate::ports::ledger::{GrantFilter, GrantSource, Page, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::grant::{Grant, GrantStatus, Lineage};
use toolgate_model::id::GrantId;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;

use super::Operation;
use super::grant_rows::{COLUMNS, assemble, lineage, not_found, read};
use super::listing::{Conditions, placeholders};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

/// Reads one grant with its lineage.
pub struct ReadLineage {
    pub tenant: TenantId,
    pub id: GrantId,
}

impl Operation for ReadLineage {
    type Output = Option<Lineage>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<Lineage>, Failure> {
        lineage(transaction, &self.tenant, self.id).await
    }
}

/// Reads the grants below one, nearest levels first.
pub struct ReadDescendants {
    pub tenant: TenantId,
    pub id: GrantId,
    pub limit: u32,
}

impl Operation for ReadDescendants {
    type Output = Vec<Grant>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Vec<Grant>, Failure> {
        let sql = format!(
            "WITH RECURSIVE below (id) AS ( \
                 SELECT id FROM grants WHERE source = $1 AND tenant = $2 \
                 UNION ALL \
                 SELECT grants.id FROM grants JOIN below ON grants.source = below.id \
             ) SELECT {COLUMNS} FROM grants WHERE id IN (SELECT id FROM below) ORDER BY level, id LIMIT $3"
        );
        let rows = transaction.query(&sql, values![self.id, &self.tenant, self.limit]).await?;
        Ok(rows.iter().map(read).collect::<Result<Vec<_>, _>>()?)
    }
}

/// Lists grants with their lineages.
pub struct ListGrants {
    pub tenant: TenantId,
    pub filter: GrantFilter,
    pub page: PageRequest,
}

impl Operation for ListGrants {
    type Output = Page<Lineage>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Page<Lineage>, Failure> {
        let from = (COLUMNS, "grants", "id");
        let page = self.conditions().page(transaction, from, &self.page, read, |grant| grant.id.to_string()).await?;
        Ok(Page { items: with_lineages(transaction, page.items).await?, next: page.next })
    }
}

impl ListGrants {
    fn conditions(&self) -> Conditions<'_> {
        let filter = &self.filter;
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("agent =", filter.agent.as_ref());
        conditions.and_if("service =", filter.service.as_ref());
        conditions.and_if("credential =", filter.credential);
        conditions.and_if("source =", filter.source_grant);
        if let Some(owner) = &filter.vault_owner {
            // Closed by the bracket below: the condition ends with its parameter.
            conditions.and(
                "credential IN (SELECT credentials.id FROM credentials JOIN vaults ON vaults.id = credentials.vault \
                 WHERE vaults.owner =",
                owner,
            );
            conditions.close();
        }
        match filter.source {
            Some(GrantSource::Direct) => conditions.and_that("source IS NULL"),
            Some(GrantSource::Delegated) => conditions.and_that("source IS NOT NULL"),
            None => {}
        }
        if let Some(status) = filter.status {
            status_condition(&mut conditions, status, filter.now);
        }
        conditions.and_if("id >", self.page.after.as_deref());
        conditions
    }
}

/// Each of these grants with its lineage.
pub async fn with_lineages<T: Transaction>(transaction: &mut T, grants: Vec<Grant>) -> Result<Vec<Lineage>, Failure> {
    let above = ancestors(transaction, &grants).await?;
    grants.into_iter().map(|grant| with_ancestors(grant, &above)).collect()
}

/// The same order of precedence as [`Grant::status`].
fn status_condition(conditions: &mut Conditions, status: GrantStatus, now: Timestamp) {
    if status == GrantStatus::Revoked {
        conditions.and_that("revoked_at IS NOT NULL");
        return;
    }
    conditions.and_that("revoked_at IS NULL");
    if status == GrantStatus::Expired {
        conditions.and("expires_at <=", now);
        return;
    }
    conditions.and("COALESCE(expires_at, 9223372036854775807) >", now);
    conditions.and_that(if status == GrantStatus::Suspended {
        "suspended_at IS NOT NULL"
    } else {
        "suspended_at IS NULL"
    });
}

async fn ancestors<T: Transaction>(transaction: &mut T, grants: &[Grant]) -> Result<BTreeMap<GrantId, Grant>, Failure> {
    let sources: Vec<Value<'_>> = grants.iter().filter_map(|grant| grant.source).map(Value::from).collect();
    if sources.is_empty() {
        return Ok(BTreeMap::new());
    }
    // UNION, not UNION ALL: siblings share their ancestors.
    let sql = format!(
        "WITH RECURSIVE above (id, source) AS ( \
             SELECT id, source FROM grants WHERE id IN ({}) \
             UNION \
             SELECT grants.id, grants.source FROM grants JOIN above ON grants.id = above.source \
         ) SELECT {COLUMNS} FROM grants WHERE id IN (SELECT id FROM above)",
        placeholders(sources.len())
    );
    let rows = transaction.query(&sql, &sources).await?;
    rows.iter().map(|row| read(row).map(|grant| (grant.id, grant)).map_err(Failure::from)).collect()
}

fn with_ancestors(grant: Grant, above: &BTreeMap<GrantId, Grant>) -> Result<Lineage, Failure> {
    let mut grants = vec![grant];
    while let Some(source) = grants.last().and_then(|grant| grant.source).and_then(|source| above.get(&source)) {
        grants.push(source.clone());
    }
    grants.reverse();
    let id = grants.last().map(|grant| grant.id);
    assemble(grants)?.ok_or_else(|| id.map_or_else(|| Refusal::new(Code::Internal, "no grant"), not_found).into())
}
