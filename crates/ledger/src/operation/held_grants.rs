//! Holdings: the grants of an agent with everything that a call through them needs, read in one go.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{Freshness, Generation, GrantLookup, HeldGrant, HeldGrants};
use toolgate_gate::refusal::Refusal;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::Credential;
use toolgate_model::grant::{Grant, Lineage};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::{AgentWork, Coordinator};

use super::grant_lists::with_lineages;
use super::grant_rows::{self, COLUMNS, lineage};
use super::listing::padded;
use super::principals::ReadPrincipal;
use super::work::{agent_work, governing};
use super::{Operation, credentials, tenants};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> GrantLookup for SqlLedger<E> {
    async fn held_grants(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<HeldGrants>, Refusal> {
        let generation = self.engine.generation();
        let key = (tenant.clone(), agent.clone());
        let known = self.held_grants.get(&key, generation, now, freshness);
        // Grants expire by the clock without a change.
        let ended = |one: &Arc<HeldGrant>| one.lineage.grant().authority.expires_at.is_some_and(|end| end <= now);
        let renewed = |known: &Arc<HeldGrants>| {
            self.renewed.any_before(known.held.iter().map(|one| (one.credential.id, one.credential.version)))
        };
        if let Some(known) = known.filter(|known| !known.held.iter().any(ended) && !renewed(known)) {
            return Ok(known);
        }
        let read = ReadHeldGrants { tenant: tenant.clone(), agent: agent.clone(), now, generation };
        let found = Arc::new(self.engine.read(read).await?);
        self.held_grants.put(key, Arc::clone(&found), generation, now);
        Ok(found)
    }

    async fn named_work(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        context: &GrantContext,
    ) -> Result<AgentWork, Refusal> {
        let (tenant, agent, context) = (tenant.clone(), agent.clone(), context.clone());
        self.engine.read(agent_work::ReadNamedWork { tenant, agent, context }).await
    }

    async fn held_grant(&self, tenant: &TenantId, grant: GrantId) -> Result<Option<Arc<HeldGrant>>, Refusal> {
        let generation = self.engine.generation();
        self.engine.read(ReadHeldGrant { tenant: tenant.clone(), id: grant, generation }).await
    }

    async fn ended_grants(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
    ) -> Result<Vec<Arc<HeldGrant>>, Refusal> {
        self.engine.read(ReadEnded { tenant: tenant.clone(), agent: agent.clone(), now }).await
    }
}

/// The maximum number of ended grants read to explain a refusal.
const ENDED_LIMIT: u32 = 100;

/// Reads the grants of an agent that have not ended.
pub struct ReadHeldGrants {
    pub tenant: TenantId,
    pub agent: PrincipalId,
    pub now: Timestamp,
    /// The point in the history of authority that the read has reached.
    pub generation: Generation,
}

impl Operation for ReadHeldGrants {
    type Output = HeldGrants;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<HeldGrants, Failure> {
        let sql = format!(
            "SELECT {COLUMNS} FROM grants WHERE tenant = $1 AND agent = $2 AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $3) ORDER BY id LIMIT $4"
        );
        let limit = HeldGrants::LIMIT;
        let parameters = values![&self.tenant, &self.agent, self.now, limit + 1];
        let rows = transaction.query(&sql, parameters).await?;
        let mut grants = rows.iter().map(grant_rows::read).collect::<Result<Vec<_>, _>>()?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let truncated = grants.len() > limit;
        grants.truncate(limit);
        // A tenant without coordinated work has neither coordinators nor tasks.
        let work_revision = agent_work::revision(transaction, &self.tenant).await?;
        let (held, coordinators) =
            assemble_governed(transaction, &self.tenant, &self.agent, grants, (self.generation, work_revision)).await?;
        let work = match work_revision {
            0 => None,
            _ => agent_work::read(transaction, &self.tenant, &self.agent, &coordinators).await?,
        };
        let agent = ReadPrincipal { tenant: self.tenant.clone(), id: self.agent.clone() }.run(transaction).await?;
        let agent = agent.filter(|agent| agent.removed_at.is_none()).map(Arc::new);
        let limits = Arc::new(tenants::limits(transaction, &self.tenant, agent.as_deref()).await?);
        Ok(HeldGrants { agent, limits, generation: self.generation, held, truncated, work, work_revision })
    }
}

/// Reads the newest grants of an agent that have ended.
pub struct ReadEnded {
    pub tenant: TenantId,
    pub agent: PrincipalId,
    pub now: Timestamp,
}

impl Operation for ReadEnded {
    type Output = Vec<Arc<HeldGrant>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let sql = format!(
            "SELECT {COLUMNS} FROM grants WHERE tenant = $1 AND agent = $2 \
             AND (revoked_at IS NOT NULL OR expires_at <= $3) ORDER BY id DESC LIMIT $4"
        );
        let rows = transaction.query(&sql, values![&self.tenant, &self.agent, self.now, ENDED_LIMIT]).await?;
        let grants = rows.iter().map(grant_rows::read).collect::<Result<Vec<_>, _>>()?;
        assemble(transaction, grants, 0).await
    }
}

/// Reads one grant, whatever state it is in.
pub struct ReadHeldGrant {
    pub tenant: TenantId,
    pub id: GrantId,
    /// The point in the history of authority that the read has reached.
    pub generation: Generation,
}

impl Operation for ReadHeldGrant {
    type Output = Option<Arc<HeldGrant>>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let Some(lineage) = lineage(transaction, &self.tenant, self.id).await? else { return Ok(None) };
        let mut credentials = read_credentials(transaction, [lineage.grant().credential].into_iter()).await?;
        let credential = credentials.remove(&lineage.grant().credential);
        let Some(credential) = credential else { return Ok(None) };
        let agents = lineage.ancestors().iter().chain([lineage.grant()]).map(|grant| &grant.agent);
        let coordinators = governing::of_agents(transaction, &self.tenant, agents).await?;
        let coordinators = governing::of_lineage(&coordinators, &lineage);
        let held_grant = HeldGrant::new(lineage, credential, self.generation);
        Ok(Some(Arc::new(HeldGrant { coordinators, ..held_grant })))
    }
}

async fn assemble<T: Transaction>(
    transaction: &mut T,
    grants: Vec<Grant>,
    generation: Generation,
) -> Result<Vec<Arc<HeldGrant>>, Failure> {
    let lineages: Vec<Lineage> = with_lineages(transaction, grants).await?;
    with_credentials(transaction, lineages, &[], generation).await
}

/// The grants of an agent with the coordinators that govern them, and all of these.
async fn assemble_governed<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    agent: &PrincipalId,
    grants: Vec<Grant>,
    (generation, work_revision): (Generation, u64),
) -> Result<(Vec<Arc<HeldGrant>>, Vec<Arc<Coordinator>>), Failure> {
    let lineages: Vec<Lineage> = with_lineages(transaction, grants).await?;
    let coordinators = if work_revision == 0 {
        Vec::new()
    } else {
        let above = lineages.iter().flat_map(|lineage| lineage.ancestors()).map(|grant| &grant.agent);
        governing::of_agents(transaction, tenant, above.chain([agent])).await?
    };
    let held = with_credentials(transaction, lineages, &coordinators, generation).await?;
    Ok((held, coordinators))
}

async fn with_credentials<T: Transaction>(
    transaction: &mut T,
    lineages: Vec<Lineage>,
    coordinators: &[Arc<Coordinator>],
    generation: Generation,
) -> Result<Vec<Arc<HeldGrant>>, Failure> {
    let ids = lineages.iter().map(|lineage| lineage.grant().credential);
    let credentials = read_credentials(transaction, ids).await?;
    let held = lineages.into_iter().filter_map(|lineage| {
        let credential = credentials.get(&lineage.grant().credential)?.clone();
        let coordinators = governing::of_lineage(coordinators, &lineage);
        Some(Arc::new(HeldGrant { coordinators, ..HeldGrant::new(lineage, credential, generation) }))
    });
    Ok(held.collect())
}

pub async fn read_credentials<T: Transaction>(
    transaction: &mut T,
    ids: impl Iterator<Item = CredentialId>,
) -> Result<BTreeMap<CredentialId, Credential>, Failure> {
    let ids: std::collections::BTreeSet<_> = ids.collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (places, ids) = padded(ids.into_iter().map(Value::from).collect());
    let sql = format!("SELECT {} FROM credentials WHERE id IN ({places})", credentials::COLUMNS);
    let rows = transaction.query(&sql, &ids).await?;
    rows.iter()
        .map(|row| credentials::read(row).map(|credential| (credential.id, credential)).map_err(Failure::from))
        .collect()
}
