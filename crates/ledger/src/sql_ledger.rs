//! The `Ledger` port over an engine: each method is one operation in one transaction.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use toolgate_gate::ports::ledger::*;
use toolgate_gate::ports::sealer::{MasterKeyId, SealSubject};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::approval::{Approval, SessionName, StandingApproval};
use toolgate_model::checkpoint::SigningKey;
use toolgate_model::credential::{Credential, Vault};
use toolgate_model::grant::{Grant, Lineage};
use toolgate_model::guard::PolicySetVersion;
use toolgate_model::id::{
    ApprovalId, CredentialId, GrantId, InvocationId, KeyId, ProcessId, SessionId, StandingApprovalId, VaultId,
};
use toolgate_model::invocation::Invocation;
use toolgate_model::key::KeyDigest;
use toolgate_model::merkle::{TileCoordinate, Tiles};
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, Tenant, TenantId};
use toolgate_model::time::Timestamp;

use crate::cache::Cache;
use crate::known_heads::KnownHeads;
use crate::operation::Operation;
use crate::operation::approval_decisions::Deciding;
use crate::operation::approval_sessions::ReadSessionTerms;
use crate::operation::approval_webhooks::{BeginWebhooks, ReadWebhookBacklog, TakeLease};
use crate::operation::approvals::{ListApprovals, ReadApproval};
use crate::operation::audit::{self, Integrate, ListPending, ReadHead, ReadTiles};
use crate::operation::closing::{self, CloseCalls, ForgetKeys};
use crate::operation::credentials::{CredentialsNaming, ListCredentials, ReadCredential, ReadSealed, Renewal};
use crate::operation::denial_counts::{CountDenials, ListDenialCounts, SumUpDenials};
use crate::operation::event_lists::ListEvents;
use crate::operation::event_news::ReadNews;
use crate::operation::expiry::{AnnounceExpired, DestroyRetired};
use crate::operation::grant_lists::{ListGrants, ReadDescendants, ReadLineage};
use crate::operation::heads::{CompareHeads, rolled_back};
use crate::operation::holdings::{ReadEnded, ReadHolding, ReadHoldings};
use crate::operation::invocations::{ListInvocations, ReadInvocation};
use crate::operation::keys::{Identify, NoteKeyUse, ReadKeys};
use crate::operation::marks::{self, ForgetMarks, ReadHistory};
use crate::operation::master_keys::{ListUnderOtherKeys, ReadKeyUsage, RegisterKey, RetireKey};
use crate::operation::newest::ReadNewestId;
use crate::operation::policies::{ListPolicyVersions, ReadPolicies, ReadPolicyVersion};
use crate::operation::principals::{ListPrincipals, ReadPrincipal};
use crate::operation::processes::{ForgetProcesses, ReadAttendance};
use crate::operation::rates::{self, ForgetRates};
use crate::operation::reaping::{
    CollectApprovals, Dead, EndAbandoned, EndOrphans, EndOverdue, ForgetArguments, HasEnded,
};
use crate::operation::services::ReadRegistry;
use crate::operation::sessions::{CloseSessions, ReadSession};
use crate::operation::settings::{CheckWrite, ReadRevision, ReadSetting, SetSettingOnce};
use crate::operation::standing_approvals::{ListStandings, ReadStanding, ReadStandingFor};
use crate::operation::sweeping::{Sweep, Swept};
use crate::operation::tenants::{ListTenants, ReadTenant};
use crate::operation::vaults::{ListVaults, ReadVault};
use crate::renewed::Renewed;

/// Runs operations durably.
pub trait Engine: Send + Sync + 'static {
    /// Runs an operation in a transaction of its own; when this answers with success, it is durable.
    fn write<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Output, Refusal>> + Send;

    /// Whether [`Engine::generation`] moves with every change of authority, whoever makes it.
    const SEES_EVERY_CHANGE: bool;

    /// Whether other processes may work on the same ledger.
    const IS_SHARED: bool;

    /// The point in the history of authority that whoever reads from now on has reached.
    fn generation(&self) -> Generation;

    /// Admits a call, together with others that come at the same time.
    fn admit(&self, command: Arc<Admit>) -> impl Future<Output = Result<Admission, Refusal>> + Send;

    /// Settles a call, together with others that come at the same time.
    fn settle(&self, command: Arc<Settle>) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Runs an operation that only reads, on one consistent and current state.
    fn read<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Output, Refusal>> + Send;
}

/// A ledger on an engine.
pub struct SqlLedger<E> {
    pub(crate) engine: E,
    callers: Cache<KeyDigest, (Arc<Principal>, KeyRecord)>,
    holdings: Cache<(TenantId, PrincipalId), Holdings>,
    registries: Cache<TenantId, Registry>,
    policies: Cache<TenantId, ActivePolicies>,
    sealed: Cache<CredentialId, SealedVersion>,
    renewed: Renewed,
    heads: KnownHeads,
    /// Whether calls that an earlier process left running were closed.
    inherited_closed: AtomicBool,
    /// Whether sessions that an earlier process left open were closed.
    inherited_sessions_closed: AtomicBool,
    /// Whether approved calls that no process lived to end were ended.
    inherited_reaped: AtomicBool,
}

impl<E: Engine> SqlLedger<E> {
    /// The ledger on this engine.
    pub fn new(engine: E) -> Self {
        let exact = E::SEES_EVERY_CHANGE;
        Self {
            engine,
            callers: Cache::new(exact),
            holdings: Cache::new(exact),
            registries: Cache::new(exact),
            policies: Cache::new(exact),
            sealed: Cache::new(exact),
            renewed: Renewed::default(),
            heads: KnownHeads::default(),
            inherited_closed: AtomicBool::new(!exact),
            inherited_sessions_closed: AtomicBool::new(!exact),
            inherited_reaped: AtomicBool::new(false),
        }
    }
}

impl<E: Engine> SqlLedger<E> {
    /// The revision at which a change that was just made holds: whoever reads later reports this one or a later one.
    async fn revision_after_change(&self) -> Result<Revision, Refusal> {
        self.engine.read(ReadRevision).await.map_err(|refusal| {
            Refusal::new(
                refusal.code(),
                "the change was made, and then the ledger stopped answering; look at it again later",
            )
        })
    }

    /// Takes all pending events of a tenant into its tree.
    async fn integrate_tenant(
        &self,
        tenant: &TenantId,
        signer: &Arc<SigningKey>,
        now: Timestamp,
    ) -> Result<u64, Refusal> {
        let mut total = 0;
        loop {
            let known = self.heads.of(tenant);
            let integrate = Integrate { tenant: tenant.clone(), known, signer: Arc::clone(signer), now };
            let (count, head) = self.engine.write(integrate).await?;
            self.heads.learn(head);
            total += count;
            if count < u64::from(audit::BATCH) {
                return Ok(total);
            }
        }
    }

    /// Runs an operation, which is told how many rows to pass over, until a batch is not full.
    async fn in_batches<O: Operation<Output = Swept>>(
        &self,
        operation: impl Fn(u32) -> O + Send + Sync,
    ) -> Result<Sweep, Refusal> {
        let mut sweep = Sweep::default();
        loop {
            let batch = self.engine.write(operation(sweep.passed_over())).await?;
            let full = batch.full;
            sweep.add(batch);
            if !full {
                return Ok(sweep);
            }
        }
    }
}

#[async_trait]
impl<E: Engine> Ledger for SqlLedger<E> {
    async fn create_tenant(&self, command: CreateTenant) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, Refusal> {
        self.engine.read(ListTenants { page }).await
    }

    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, Refusal> {
        self.engine.read(ReadTenant { id: id.clone() }).await
    }

    async fn create_principal(&self, command: CreatePrincipal) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Refusal> {
        self.engine.read(ReadPrincipal { tenant: tenant.clone(), id: id.clone() }).await
    }

    async fn principals(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<Principal>, Refusal> {
        self.engine.read(ListPrincipals { tenant: tenant.clone(), page }).await
    }

    async fn update_principal(&self, command: UpdatePrincipal) -> Result<Principal, Refusal> {
        self.engine.write(command).await
    }

    async fn remove_principal(&self, command: RemovePrincipal) -> Result<Removed, Refusal> {
        let (keys, grants) = self.engine.write(command).await?;
        Ok(Removed { keys, grants, revision: self.revision_after_change().await? })
    }

    async fn create_key(&self, command: CreateKey) -> Result<KeyRecord, Refusal> {
        self.engine.write(command).await
    }

    async fn keys(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal> {
        self.engine.read(ReadKeys { tenant: tenant.clone(), principal: Some(principal.clone()), id: None }).await
    }

    async fn key(&self, tenant: &TenantId, id: KeyId) -> Result<Option<KeyRecord>, Refusal> {
        let keys = self.engine.read(ReadKeys { tenant: tenant.clone(), principal: None, id: Some(id) }).await?;
        Ok(keys.into_iter().next())
    }

    async fn revoke_key(&self, command: RevokeKey) -> Result<KeyRecord, Refusal> {
        self.engine.write(command).await
    }

    fn generation(&self) -> Generation {
        self.engine.generation()
    }

    async fn identify(
        &self,
        digest: &KeyDigest,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<(Arc<Principal>, KeyRecord)>>, Refusal> {
        self.heads.intact()?;
        let generation = self.engine.generation();
        if let Some(known) = self.callers.get(digest, generation, now, freshness) {
            return Ok(Some(known));
        }
        let Some((principal, key)) = self.engine.read(Identify { digest: *digest }).await? else { return Ok(None) };
        let found = Arc::new((Arc::new(principal), key));
        self.callers.put(*digest, Arc::clone(&found), generation, now);
        Ok(Some(found))
    }

    async fn note_key_use(&self, uses: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal> {
        self.engine.write(NoteKeyUse { uses }).await
    }

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

    async fn create_credential(&self, command: CreateCredential) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn credential(&self, tenant: &TenantId, id: CredentialId) -> Result<Option<Credential>, Refusal> {
        self.engine.read(ReadCredential { tenant: tenant.clone(), id }).await
    }

    async fn credentials(
        &self,
        tenant: &TenantId,
        vault: Option<VaultId>,
        page: PageRequest,
    ) -> Result<Page<Credential>, Refusal> {
        self.engine.read(ListCredentials { tenant: tenant.clone(), vault, page }).await
    }

    async fn credentials_naming(&self, tenant: &TenantId, name: &str) -> Result<Vec<Credential>, Refusal> {
        self.engine.read(CredentialsNaming { tenant: tenant.clone(), name: name.to_owned() }).await
    }

    async fn rotate_credential(&self, command: RotateCredential) -> Result<Credential, Refusal> {
        if command.end != NewEnd::Same || command.metadata.is_some() {
            return self.engine.write(command).await;
        }
        self.renewed.note(command.id, command.expected_version.saturating_add(1));
        self.engine.write(Renewal(command)).await
    }

    async fn revoke_credential(&self, command: RevokeCredential) -> Result<Revoked, Refusal> {
        let grants = self.engine.write(command).await?;
        Ok(Revoked { grants, revision: self.revision_after_change().await? })
    }

    async fn sealed_material(
        &self,
        tenant: &TenantId,
        id: CredentialId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<SealedVersion>>, Refusal> {
        let generation = self.engine.generation();
        let known = self.sealed.get(&id, generation, now, freshness);
        let known = known.filter(|known| !self.renewed.is_before(id, known.binding.version()));
        if let Some(known) = known.filter(|known| known.binding.tenant == *tenant) {
            return Ok(Some(known));
        }
        let read = self.engine.read(ReadSealed { tenant: tenant.clone(), id }).await?;
        let Some(found) = read.map(Arc::new) else { return Ok(None) };
        self.sealed.put(id, Arc::clone(&found), generation, now);
        Ok(Some(found))
    }

    async fn key_usage(&self) -> Result<Vec<KeyUsage>, Refusal> {
        self.engine.read(ReadKeyUsage).await
    }

    async fn register_key(&self, key: &MasterKeyId) -> Result<(), Refusal> {
        self.engine.write(RegisterKey { key: key.clone() }).await
    }

    async fn sealed_under_other_keys(
        &self,
        current: &MasterKeyId,
        after: Option<SealSubject>,
        limit: u32,
    ) -> Result<Vec<SealedVersion>, Refusal> {
        self.engine.read(ListUnderOtherKeys { current: current.clone(), after, limit }).await
    }

    async fn rewrap(&self, command: Rewrap) -> Result<bool, Refusal> {
        self.engine.write(command).await
    }

    async fn retire_key(&self, key: &MasterKeyId, time: Timestamp) -> Result<bool, Refusal> {
        self.engine.write(RetireKey { key: key.clone(), time }).await
    }

    async fn record_rekey(&self, command: RecordRekey) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn destroy_retired(&self, now: Timestamp) -> Result<u64, Refusal> {
        self.engine.write(DestroyRetired { now }).await
    }

    async fn create_grant(&self, command: CreateGrant) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn delegate_grant(&self, command: DelegateGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

    async fn lineage(&self, tenant: &TenantId, id: GrantId) -> Result<Option<Lineage>, Refusal> {
        self.engine.read(ReadLineage { tenant: tenant.clone(), id }).await
    }

    async fn grants(
        &self,
        tenant: &TenantId,
        filter: GrantFilter,
        page: PageRequest,
    ) -> Result<Page<Lineage>, Refusal> {
        self.engine.read(ListGrants { tenant: tenant.clone(), filter, page }).await
    }

    async fn descendants(&self, tenant: &TenantId, id: GrantId, limit: u32) -> Result<Vec<Grant>, Refusal> {
        self.engine.read(ReadDescendants { tenant: tenant.clone(), id, limit }).await
    }

    async fn revoke_grant(&self, command: RevokeGrant) -> Result<Revoked, Refusal> {
        let grants = self.engine.write(command).await?;
        Ok(Revoked { grants, revision: self.revision_after_change().await? })
    }

    async fn suspend_grant(&self, command: SuspendGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

    async fn resume_grant(&self, command: ResumeGrant) -> Result<Grant, Refusal> {
        self.engine.write(command).await
    }

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

    async fn policies(
        &self,
        tenant: &TenantId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<ActivePolicies>, Refusal> {
        let generation = self.engine.generation();
        if let Some(known) = self.policies.get(tenant, generation, now, freshness) {
            return Ok(known);
        }
        let last = self.policies.last_known(tenant);
        let known = last.as_ref().map(|last| last.revision);
        let policies = match (self.engine.read(ReadPolicies { tenant: tenant.clone(), known, generation }).await?, last)
        {
            (Some(policies), _) => Arc::new(policies),
            (None, Some(last)) if last.generation == generation => last,
            // Another change than of the policies: the same set, known to be right at a later point.
            (None, Some(last)) => Arc::new(ActivePolicies { generation, ..(*last).clone() }),
            (None, None) => Arc::new(ActivePolicies { revision: 0, active: None, generation }),
        };
        self.policies.put(tenant.clone(), Arc::clone(&policies), generation, now);
        Ok(policies)
    }

    async fn apply_policies(&self, command: ApplyPolicies) -> Result<PolicySetVersion, Refusal> {
        self.engine.write(command).await
    }

    async fn policy_version(&self, tenant: &TenantId, version: u64) -> Result<Option<PolicySetVersion>, Refusal> {
        self.engine.read(ReadPolicyVersion { tenant: tenant.clone(), version }).await
    }

    async fn policy_versions(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<PolicySetVersion>, Refusal> {
        self.engine.read(ListPolicyVersions { tenant: tenant.clone(), page }).await
    }

    async fn history(&self, query: &HistoryQuery) -> Result<History, Refusal> {
        self.engine.read(ReadHistory { query: query.clone() }).await
    }

    async fn record_decision(&self, command: RecordDecision) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn holdings(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<Holdings>, Refusal> {
        let generation = self.engine.generation();
        let key = (tenant.clone(), agent.clone());
        let known = self.holdings.get(&key, generation, now, freshness);
        // What ends by the clock ends without a change.
        let ended = |one: &Arc<Holding>| one.lineage.grant().authority.expires_at.is_some_and(|end| end <= now);
        let renewed = |known: &Arc<Holdings>| {
            self.renewed.any_before(known.held.iter().map(|one| (one.credential.id, one.credential.version)))
        };
        if let Some(known) = known.filter(|known| !known.held.iter().any(ended) && !renewed(known)) {
            return Ok(known);
        }
        let read = ReadHoldings { tenant: tenant.clone(), agent: agent.clone(), now, generation };
        let found = Arc::new(self.engine.read(read).await?);
        self.holdings.put(key, Arc::clone(&found), generation, now);
        Ok(found)
    }

    async fn holding(&self, tenant: &TenantId, grant: GrantId) -> Result<Option<Arc<Holding>>, Refusal> {
        let generation = self.engine.generation();
        self.engine.read(ReadHolding { tenant: tenant.clone(), id: grant, generation }).await
    }

    async fn ended_holdings(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
    ) -> Result<Vec<Arc<Holding>>, Refusal> {
        self.engine.read(ReadEnded { tenant: tenant.clone(), agent: agent.clone(), now }).await
    }

    async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal> {
        self.heads.intact()?;
        self.engine.admit(command).await
    }

    async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal> {
        self.engine.settle(command).await
    }

    async fn count_denials(&self, counts: Vec<DenialCount>) -> Result<(), Refusal> {
        self.engine.write(CountDenials { counts }).await
    }

    async fn sum_up_denials(&self, before: Timestamp, now: Timestamp) -> Result<u64, Refusal> {
        let mut total = 0;
        for (tenant, principal) in self.engine.read(ListDenialCounts { before }).await? {
            total += self.engine.write(SumUpDenials { tenant, principal, now }).await?;
        }
        Ok(total)
    }

    async fn record_denial(&self, command: RecordDenial) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn report_invocation(&self, command: ReportInvocation) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn open_session(&self, command: OpenSession) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn close_session(&self, command: CloseSession) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn session(&self, tenant: &TenantId, id: SessionId) -> Result<Option<ToolSession>, Refusal> {
        self.engine.read(ReadSession { tenant: tenant.clone(), id }).await
    }

    async fn close_sessions(&self, now: Timestamp) -> Result<u64, Refusal> {
        let only_overdue = self.inherited_sessions_closed.load(Ordering::Acquire);
        let closed = self.in_batches(|passed_over| CloseSessions { now, only_overdue, passed_over }).await?;
        self.inherited_sessions_closed.store(true, Ordering::Release);
        closed.report()
    }

    async fn request_approval(&self, command: RequestApproval) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn decide_approval(&self, command: DecideApproval) -> Result<Approval, Refusal> {
        self.engine.write(Deciding { command, shared: E::IS_SHARED }).await
    }

    async fn end_approval(&self, command: EndApproval) -> Result<Approval, Refusal> {
        self.engine.write(command).await
    }

    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, Refusal> {
        self.engine.read(ReadApproval { tenant: tenant.clone(), id }).await
    }

    async fn approvals(
        &self,
        tenant: &TenantId,
        filter: ApprovalFilter,
        page: PageRequest,
    ) -> Result<Page<Approval>, Refusal> {
        self.engine.read(ListApprovals { tenant: tenant.clone(), filter, page }).await
    }

    async fn collect_approvals(&self, process: ProcessId) -> Result<Vec<Approval>, Refusal> {
        match self.engine.read(HasEnded { process }).await? {
            true => self.engine.write(CollectApprovals { process }).await,
            false => Ok(Vec::new()),
        }
    }

    fn shares_approvals(&self) -> bool {
        E::IS_SHARED
    }

    async fn reap_approvals(&self, process: ProcessId, now: Timestamp) -> Result<u64, Refusal> {
        let dead = Dead { process, shared: E::IS_SHARED };
        let all = !self.inherited_reaped.load(Ordering::Acquire);
        let mut sweep = self.in_batches(|passed_over| EndOverdue { now, passed_over }).await?;
        sweep.join(self.in_batches(|passed_over| EndOrphans { dead, now, passed_over }).await?);
        sweep.join(self.in_batches(|passed_over| EndAbandoned { dead, now, all, passed_over }).await?);
        self.inherited_reaped.store(true, Ordering::Release);
        let forgotten = self.in_batches(|passed_over| ForgetArguments { now, passed_over }).await?;
        self.engine.write(ForgetProcesses { now }).await?;
        forgotten.report()?;
        sweep.report()
    }

    async fn beat(&self, command: Beat) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn is_attended(&self, tenant: &TenantId, now: Timestamp) -> Result<bool, Refusal> {
        self.engine.read(ReadAttendance { tenant: tenant.clone(), now }).await
    }

    async fn begin_webhooks(&self) -> Result<(), Refusal> {
        self.engine.write(BeginWebhooks).await
    }

    async fn webhook_backlog(&self) -> Result<Vec<WebhookBacklog>, Refusal> {
        self.engine.read(ReadWebhookBacklog).await
    }

    async fn lease_webhook(&self, command: LeaseWebhook) -> Result<Option<u64>, Refusal> {
        self.engine.write(TakeLease { command, shared: E::IS_SHARED }).await
    }

    async fn advance_webhook(&self, command: AdvanceWebhook) -> Result<bool, Refusal> {
        self.engine.write(command).await
    }

    async fn create_approval_link(&self, command: CreateApprovalLink) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn redeem_approval_link(&self, command: RedeemApprovalLink) -> Result<Approval, Refusal> {
        self.engine.write(command).await
    }

    async fn standing_for(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        tool: &str,
        now: Timestamp,
    ) -> Result<Vec<StandingApproval>, Refusal> {
        let (tenant, agent, tool) = (tenant.clone(), agent.clone(), tool.to_owned());
        self.engine.read(ReadStandingFor { tenant, agent, tool, now }).await
    }

    async fn standing(&self, tenant: &TenantId, id: StandingApprovalId) -> Result<Option<StandingApproval>, Refusal> {
        self.engine.read(ReadStanding { tenant: tenant.clone(), id }).await
    }

    async fn standings(
        &self,
        tenant: &TenantId,
        filter: StandingFilter,
        page: PageRequest,
    ) -> Result<Page<StandingApproval>, Refusal> {
        self.engine.read(ListStandings { tenant: tenant.clone(), filter, page }).await
    }

    async fn revoke_standing(&self, command: RevokeStanding) -> Result<StandingApproval, Refusal> {
        self.engine.write(command).await
    }

    async fn session_terms(
        &self,
        tenant: &TenantId,
        owner: &PrincipalId,
        name: &SessionName,
    ) -> Result<SessionTerms, Refusal> {
        let read = ReadSessionTerms { tenant: tenant.clone(), owner: owner.clone(), name: name.clone() };
        self.engine.read(read).await
    }

    async fn set_session_terms(&self, command: SetSessionTerms) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn close_calls(&self, now: Timestamp) -> Result<u64, Refusal> {
        // The first time, in the only process, nothing can be running: it is what an earlier one left behind.
        let only_overdue = self.inherited_closed.load(Ordering::Acquire);
        let closed = self.in_batches(|passed_over| CloseCalls { now, only_overdue, passed_over }).await?;
        self.inherited_closed.store(true, Ordering::Release);
        while self.engine.write(ForgetKeys { now }).await? >= u64::from(closing::BATCH) {}
        for _ in 0..rates::BATCHES {
            if !self.engine.write(ForgetRates).await? {
                break;
            }
        }
        while self.engine.write(ForgetMarks { now }).await? >= u64::from(marks::BATCH) {}
        closed.report()
    }

    async fn invocation(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<Invocation>, Refusal> {
        self.engine.read(ReadInvocation { tenant: tenant.clone(), id }).await
    }

    async fn invocations(
        &self,
        tenant: &TenantId,
        filter: InvocationFilter,
        page: PageRequest,
    ) -> Result<Page<Invocation>, Refusal> {
        self.engine.read(ListInvocations { tenant: tenant.clone(), filter, page }).await
    }

    async fn announce_expired(&self, now: Timestamp) -> Result<u64, Refusal> {
        // A row that cannot be read is marked like the others, and so is reported once.
        self.in_batches(|_| AnnounceExpired { now }).await?.report()
    }

    async fn integrate(&self, signer: Arc<SigningKey>, now: Timestamp) -> Result<u64, Refusal> {
        self.heads.intact()?;
        let (mut total, mut failure) = (0, None);
        for tenant in self.engine.read(ListPending).await? {
            match self.integrate_tenant(&tenant, &signer, now).await {
                Ok(count) => total += count,
                Err(refusal) if refusal.code() == Code::LedgerRolledBack => return Err(self.heads.lose(refusal)),
                Err(refusal) if refusal.code() == Code::LedgerUnavailable => return Err(refusal),
                // The logs of other tenants go on without this one.
                Err(refusal) => {
                    let reason = format!("the log of tenant `{tenant}` cannot be extended: {}", refusal.reason());
                    failure.get_or_insert(Refusal::new(refusal.code(), reason));
                }
            }
        }
        failure.map_or(Ok(total), Err)
    }

    async fn events(
        &self,
        tenant: &TenantId,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<LoggedEvent>, Refusal> {
        self.engine.read(ListEvents { tenant: tenant.clone(), filter, page }).await
    }

    async fn log_news(&self, followed: Vec<(TenantId, Option<u64>)>) -> Result<Vec<LogNews>, Refusal> {
        self.engine.read(ReadNews { followed }).await
    }

    async fn log_head(&self, tenant: &TenantId) -> Result<Option<LogHead>, Refusal> {
        self.engine.read(ReadHead { tenant: tenant.clone() }).await
    }

    async fn compare_heads(&self, known: &[LogHead]) -> Result<Vec<Setback>, Refusal> {
        let heads = known.iter().map(|known| (known.head.tenant.clone(), known.head.clone())).collect();
        let compared = self.engine.read(CompareHeads { known: heads }).await?;
        if compared.setbacks.is_empty() {
            self.heads.learn(known.iter().cloned().chain(compared.newer));
        }
        Ok(compared.setbacks)
    }

    async fn watch_heads(&self) -> Result<Option<Timestamp>, Refusal> {
        self.heads.intact()?;
        // INVARIANT: taken before the ledger is read, so that what is read cannot be older.
        let known = self.heads.all();
        let compared = self.engine.read(CompareHeads { known }).await?;
        if !compared.setbacks.is_empty() {
            return Err(self.heads.lose(rolled_back(&compared.setbacks)));
        }
        self.heads.learn(compared.newer);
        Ok(self.heads.newest())
    }

    fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)> {
        self.heads.newer_than(seen)
    }

    async fn record_rollback(&self, command: RecordRollback) -> Result<(), Refusal> {
        self.engine.write(command).await
    }

    async fn tiles(&self, tenant: &TenantId, coordinates: &[TileCoordinate]) -> Result<Tiles, Refusal> {
        self.engine.read(ReadTiles { tenant: tenant.clone(), coordinates: coordinates.to_vec() }).await
    }

    async fn setting(&self, name: &'static str) -> Result<Option<String>, Refusal> {
        self.engine.read(ReadSetting { name }).await
    }

    async fn set_setting_once(&self, name: &'static str, value: &str) -> Result<String, Refusal> {
        self.engine.write(SetSettingOnce { name, value: value.to_owned() }).await
    }

    async fn newest_id(&self) -> Result<Option<Timestamp>, Refusal> {
        self.engine.read(ReadNewestId).await
    }

    async fn revision(&self) -> Result<Revision, Refusal> {
        self.engine.read(ReadRevision).await
    }

    async fn check(&self) -> Result<(), Refusal> {
        self.heads.intact()?;
        self.engine.write(CheckWrite).await
    }
}
