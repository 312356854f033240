//! The ledger: where everything is kept. Its operations are those of the domain, each one transaction; whatever it
//! acknowledges is durable, together with the events that record it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
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

use crate::ports::sealer::{MasterKeyId, SealSubject};
use crate::refusal::Refusal;

pub use self::approval_webhooks::{
    AdvanceWebhook, CreateApprovalLink, LeaseWebhook, RedeemApprovalLink, WebhookBacklog,
};
pub use self::approvals::{
    ApprovalFilter, Beat, Consent, DecideApproval, EndApproval, GrantRates, RequestApproval, RevokeStanding,
    SessionTerms, SetSessionTerms, StandingFilter,
};
pub use self::audit::{EventFilter, EventHeading, LogHead, LogNews, LoggedEvent, RecordRollback, Setback};
pub use self::calls::{
    Admission, Admit, DenialCount, Freshness, Generation, Holding, Holdings, InvocationFilter, RecordDenial,
    ReportInvocation, Settle, StoredAnswer,
};
pub use self::detached::{
    AskedApproval, ClaimDetached, ClaimedCall, DetachCall, Detached, DetachedCall, DetachedCalls, DetachedLimits,
    DetachedState, FinishDetached, ParkCall, StoredCall,
};
pub use self::grants::{
    CreateGrant, DelegateGrant, GrantFilter, GrantSource, ResumeGrant, RevokeGrant, Revoked, SuspendGrant,
};
pub use self::mandate::{Mandate, Right};
pub use self::page::{Page, PageRequest};
pub use self::policies::{
    ActivePolicies, ApplyPolicies, CountedRun, Counts, History, HistoryQuery, MarkScope, Marks, PolicyChange,
    RecordDecision, beginning_of_day,
};
pub use self::principals::{
    CreateKey, CreatePrincipal, CreateTenant, NewKey, RemovePrincipal, Removed, RevokeKey, UpdatePrincipal,
};
pub use self::services::{ApplyService, RegisteredService, Registry, RemoveService};
pub use self::sessions::{CloseSession, OpenSession, ToolSession};
pub use self::vaults::{
    CreateCredential, CreateVault, DeleteVault, Deleted, KeyUsage, NewEnd, RecordRekey, RevokeCredential, Rewrap,
    RotateCredential, SealedVersion,
};

mod approval_webhooks;
mod approvals;
mod audit;
mod calls;
mod detached;
mod grants;
mod mandate;
mod page;
mod policies;
mod principals;
mod services;
mod sessions;
mod vaults;

/// Who changes something, where and when. Every change carries one; it ends up in the event. What a caller administers
/// carries a [`Mandate`] instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The tenant in which it happens.
    pub tenant: TenantId,
    /// Who does it.
    pub actor: PrincipalId,
    /// When.
    pub time: Timestamp,
}

/// A point in the ledger's history: a read that reports this revision or a later one includes every change that was
/// acknowledged with it.
pub type Revision = u64;

/// Everything that Toolgate keeps.
#[async_trait]
pub trait Ledger: DetachedCalls {
    /// Makes a tenant with its administrator.
    async fn create_tenant(&self, command: CreateTenant) -> Result<(), Refusal>;
    /// Tenants, in the order of their ids.
    async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, Refusal>;
    /// One tenant.
    async fn tenant(&self, id: &TenantId) -> Result<Option<Tenant>, Refusal>;

    /// Registers a principal.
    async fn create_principal(&self, command: CreatePrincipal) -> Result<(), Refusal>;
    /// One principal, removed ones included.
    async fn principal(&self, tenant: &TenantId, id: &PrincipalId) -> Result<Option<Principal>, Refusal>;
    /// The principals that are not removed.
    async fn principals(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<Principal>, Refusal>;
    /// Changes a principal; answers it as it is now.
    async fn update_principal(&self, command: UpdatePrincipal) -> Result<Principal, Refusal>;
    /// Removes a principal for good: its keys and grants end with it, its id is never given out again.
    async fn remove_principal(&self, command: RemovePrincipal) -> Result<Removed, Refusal>;

    /// Adds a key to a principal.
    async fn create_key(&self, command: CreateKey) -> Result<KeyRecord, Refusal>;
    /// The keys of a principal, newest first.
    async fn keys(&self, tenant: &TenantId, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal>;
    /// One key.
    async fn key(&self, tenant: &TenantId, id: KeyId) -> Result<Option<KeyRecord>, Refusal>;
    /// Ends a key.
    async fn revoke_key(&self, command: RevokeKey) -> Result<KeyRecord, Refusal>;
    /// The point in the history of authority that whoever reads from now on has reached.
    fn generation(&self) -> Generation;
    /// The key with this digest and whose it is, whatever state both are in.
    async fn identify(
        &self,
        digest: &KeyDigest,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<(Arc<Principal>, KeyRecord)>>, Refusal>;
    /// Notes when keys were last accepted. No change that needs an event.
    async fn note_key_use(&self, uses: BTreeMap<KeyId, Timestamp>) -> Result<(), Refusal>;

    /// Makes a vault.
    async fn create_vault(&self, command: CreateVault) -> Result<(), Refusal>;
    /// One vault with the ids of the credentials in it.
    async fn vault(&self, tenant: &TenantId, id: VaultId) -> Result<Option<(Vault, Vec<CredentialId>)>, Refusal>;
    /// Vaults, each with the ids of the credentials in it.
    async fn vaults(
        &self,
        tenant: &TenantId,
        owner: Option<&PrincipalId>,
        page: PageRequest,
    ) -> Result<Page<(Vault, Vec<CredentialId>)>, Refusal>;
    /// Deletes a vault; its credentials and their grants end with it.
    async fn delete_vault(&self, command: DeleteVault) -> Result<Deleted, Refusal>;

    /// Adds a credential to a vault.
    async fn create_credential(&self, command: CreateCredential) -> Result<(), Refusal>;
    /// One credential.
    async fn credential(&self, tenant: &TenantId, id: CredentialId) -> Result<Option<Credential>, Refusal>;
    /// Credentials of a tenant or of one vault.
    async fn credentials(
        &self,
        tenant: &TenantId,
        vault: Option<VaultId>,
        page: PageRequest,
    ) -> Result<Page<Credential>, Refusal>;
    /// Credentials, also revoked ones, whose service this name, in small letters, is or begins with; or that may define
    /// a tool of this name.
    async fn credentials_naming(&self, tenant: &TenantId, name: &str) -> Result<Vec<Credential>, Refusal>;
    /// Replaces the material of a credential.
    async fn rotate_credential(&self, command: RotateCredential) -> Result<Credential, Refusal>;
    /// Ends a credential for good: its material is destroyed, its grants end with it.
    async fn revoke_credential(&self, command: RevokeCredential) -> Result<Revoked, Refusal>;
    /// The sealed material of the current version.
    async fn sealed_material(
        &self,
        tenant: &TenantId,
        id: CredentialId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Option<Arc<SealedVersion>>, Refusal>;

    /// Which master key wraps how many data keys.
    async fn key_usage(&self) -> Result<Vec<KeyUsage>, Refusal>;
    /// Makes a master key known before anything is stored under it, so that it is retired in its turn.
    async fn register_key(&self, key: &MasterKeyId) -> Result<(), Refusal>;
    /// Sealed versions that another key than `current` wraps, in order, after the one given.
    async fn sealed_under_other_keys(
        &self,
        current: &MasterKeyId,
        after: Option<SealSubject>,
        limit: u32,
    ) -> Result<Vec<SealedVersion>, Refusal>;
    /// Stores a data key that was wrapped anew, unless the version changed meanwhile.
    async fn rewrap(&self, command: Rewrap) -> Result<bool, Refusal>;
    /// Retires a master key that wraps nothing: from then on nothing can be stored under it. False while it still does.
    async fn retire_key(&self, key: &MasterKeyId, time: Timestamp) -> Result<bool, Refusal>;
    /// Records that a rekey is complete.
    async fn record_rekey(&self, command: RecordRekey) -> Result<(), Refusal>;
    /// Destroys replaced material whose last calls are over; answers how many versions.
    async fn destroy_retired(&self, now: Timestamp) -> Result<u64, Refusal>;

    /// Makes a direct grant.
    async fn create_grant(&self, command: CreateGrant) -> Result<(), Refusal>;
    /// Delegates a grant.
    async fn delegate_grant(&self, command: DelegateGrant) -> Result<Grant, Refusal>;
    /// One grant with all that it was delegated from.
    async fn lineage(&self, tenant: &TenantId, id: GrantId) -> Result<Option<Lineage>, Refusal>;
    /// Grants that fit the filter, each with its lineage.
    async fn grants(&self, tenant: &TenantId, filter: GrantFilter, page: PageRequest)
    -> Result<Page<Lineage>, Refusal>;
    /// The grants below one, nearest levels first, at most `limit`.
    async fn descendants(&self, tenant: &TenantId, id: GrantId, limit: u32) -> Result<Vec<Grant>, Refusal>;
    /// Takes a grant back, with everything below it.
    async fn revoke_grant(&self, command: RevokeGrant) -> Result<Revoked, Refusal>;
    /// Pauses a grant.
    async fn suspend_grant(&self, command: SuspendGrant) -> Result<Grant, Refusal>;
    /// Ends the pause of a grant.
    async fn resume_grant(&self, command: ResumeGrant) -> Result<Grant, Refusal>;
    /// Announces grants and credentials whose time is over, each once; answers how many.
    async fn announce_expired(&self, now: Timestamp) -> Result<u64, Refusal>;

    /// Registers or replaces a version of a service; true where it is new.
    async fn apply_service(&self, command: ApplyService) -> Result<bool, Refusal>;
    /// Removes versions of a service; answers how many.
    async fn remove_service(&self, command: RemoveService) -> Result<u64, Refusal>;
    /// All services of a tenant.
    async fn registry(&self, tenant: &TenantId, now: Timestamp, freshness: Freshness)
    -> Result<Arc<Registry>, Refusal>;

    /// The policies of a tenant.
    async fn policies(
        &self,
        tenant: &TenantId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<ActivePolicies>, Refusal>;
    /// Makes other policies the active ones; answers the new version.
    async fn apply_policies(&self, command: ApplyPolicies) -> Result<PolicySetVersion, Refusal>;
    /// One version of a tenant's policies.
    async fn policy_version(&self, tenant: &TenantId, version: u64) -> Result<Option<PolicySetVersion>, Refusal>;
    /// The versions of a tenant's policies, newest first.
    async fn policy_versions(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<PolicySetVersion>, Refusal>;
    /// What an agent has done so far, as of now.
    async fn history(&self, query: &HistoryQuery) -> Result<History, Refusal>;
    /// Writes down what guardians said about an event that is no call of the gate's own.
    async fn record_decision(&self, command: RecordDecision) -> Result<(), Refusal>;

    /// What an agent holds and has not ended by `now`.
    async fn holdings(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
        freshness: Freshness,
    ) -> Result<Arc<Holdings>, Refusal>;
    /// One grant with all that a call through it needs, whatever state it is in.
    async fn holding(&self, tenant: &TenantId, grant: GrantId) -> Result<Option<Arc<Holding>>, Refusal>;
    /// The newest grants of an agent that have ended by `now`.
    async fn ended_holdings(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        now: Timestamp,
    ) -> Result<Vec<Arc<Holding>>, Refusal>;

    /// Admits a call.
    async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal>;
    /// Settles an admitted call.
    async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal>;
    /// Writes down a refused call.
    async fn record_denial(&self, command: RecordDenial) -> Result<(), Refusal>;
    /// Counts refused calls that are not written down one by one: each principal and code once, in their order.
    async fn count_denials(&self, counts: Vec<DenialCount>) -> Result<(), Refusal>;
    /// Sums up what was counted, beginning before `before`, in one event for each principal; answers how many calls.
    async fn sum_up_denials(&self, before: Timestamp, now: Timestamp) -> Result<u64, Refusal>;
    /// Writes down a call that its caller made by itself.
    async fn report_invocation(&self, command: ReportInvocation) -> Result<(), Refusal>;
    /// Opens a tool session.
    async fn open_session(&self, command: OpenSession) -> Result<(), Refusal>;
    /// Closes a tool session.
    async fn close_session(&self, command: CloseSession) -> Result<(), Refusal>;
    /// A tool session that is open.
    async fn session(&self, tenant: &TenantId, id: SessionId) -> Result<Option<ToolSession>, Refusal>;
    /// Closes the tool sessions whose time is over, and those that an earlier life of this process left open where there
    /// is no other; answers how many.
    async fn close_sessions(&self, now: Timestamp) -> Result<u64, Refusal>;

    /// Writes down that a person is asked; refused where too many are asked already.
    async fn request_approval(&self, command: RequestApproval) -> Result<(), Refusal>;
    /// Counts a word; answers the approval as it is now.
    async fn decide_approval(&self, command: DecideApproval) -> Result<Approval, Refusal>;
    /// Ends an approval if it still waits; answers it as it is now.
    async fn end_approval(&self, command: EndApproval) -> Result<Approval, Refusal>;
    /// One approval.
    async fn approval(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, Refusal>;
    /// Approvals, newest first.
    async fn approvals(
        &self,
        tenant: &TenantId,
        filter: ApprovalFilter,
        page: PageRequest,
    ) -> Result<Page<Approval>, Refusal>;
    /// Approvals that calls of this process waited for and that ended, each told once.
    async fn collect_approvals(&self, process: ProcessId) -> Result<Vec<Approval>, Refusal>;
    /// Whether somebody else than this process may end approvals that it waits for.
    fn shares_approvals(&self) -> bool;
    /// Ends the approvals whose time is over, orphans those of processes that died, and forgets the arguments of those
    /// that ended long ago; answers how many ended.
    async fn reap_approvals(&self, process: ProcessId, now: Timestamp) -> Result<u64, Refusal>;
    /// Shows that a process lives.
    async fn beat(&self, command: Beat) -> Result<(), Refusal>;
    /// Whether a process that lives has somebody for this tenant who can answer.
    async fn is_attended(&self, tenant: &TenantId, now: Timestamp) -> Result<bool, Refusal>;

    /// Begins to tell the outside of approvals, at the end of every log, unless that was begun before.
    async fn begin_webhooks(&self) -> Result<(), Refusal>;
    /// The tenants whose logs go on behind what the outside was told.
    async fn webhook_backlog(&self) -> Result<Vec<WebhookBacklog>, Refusal>;
    /// Takes over to tell the outside of a tenant's approvals; answers how many events of its log are dealt with, or
    /// `None` where another process does it.
    async fn lease_webhook(&self, command: LeaseWebhook) -> Result<Option<u64>, Refusal>;
    /// Notes how far the outside was told; false where another process has taken over.
    async fn advance_webhook(&self, command: AdvanceWebhook) -> Result<bool, Refusal>;
    /// Makes a one-time link to an approval.
    async fn create_approval_link(&self, command: CreateApprovalLink) -> Result<(), Refusal>;
    /// Uses a one-time link up; answers the approval that it leads to.
    async fn redeem_approval_link(&self, command: RedeemApprovalLink) -> Result<Approval, Refusal>;

    /// What may cover calls of a tool by an agent: the standing approvals that are active.
    async fn standing_for(
        &self,
        tenant: &TenantId,
        agent: &PrincipalId,
        tool: &str,
        now: Timestamp,
    ) -> Result<Vec<StandingApproval>, Refusal>;
    /// One standing approval.
    async fn standing(&self, tenant: &TenantId, id: StandingApprovalId) -> Result<Option<StandingApproval>, Refusal>;
    /// Standing approvals, newest first.
    async fn standings(
        &self,
        tenant: &TenantId,
        filter: StandingFilter,
        page: PageRequest,
    ) -> Result<Page<StandingApproval>, Refusal>;
    /// Takes a standing approval back; answers it as it is now.
    async fn revoke_standing(&self, command: RevokeStanding) -> Result<StandingApproval, Refusal>;

    /// What holds for a session; the defaults where nothing was set.
    async fn session_terms(
        &self,
        tenant: &TenantId,
        owner: &PrincipalId,
        name: &SessionName,
    ) -> Result<SessionTerms, Refusal>;
    /// Sets what holds for a session.
    async fn set_session_terms(&self, command: SetSessionTerms) -> Result<(), Refusal>;

    /// Shows calls that are past their deadline, or left over by an earlier life of the only process, as unknown; and
    /// forgets idempotency keys that are old enough. Answers how many calls were cut off.
    async fn close_calls(&self, now: Timestamp) -> Result<u64, Refusal>;
    /// One invocation.
    async fn invocation(&self, tenant: &TenantId, id: InvocationId) -> Result<Option<Invocation>, Refusal>;
    /// Invocations, newest first.
    async fn invocations(
        &self,
        tenant: &TenantId,
        filter: InvocationFilter,
        page: PageRequest,
    ) -> Result<Page<Invocation>, Refusal>;

    /// Takes what was committed since into the Merkle logs and signs new heads; answers how many events.
    async fn integrate(&self, signer: Arc<SigningKey>, now: Timestamp) -> Result<u64, Refusal>;
    /// Events that are in the log, in order.
    async fn events(
        &self,
        tenant: &TenantId,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<LoggedEvent>, Refusal>;
    /// What is new in these logs, each looked at up to this size before. A log without news is left out.
    async fn log_news(&self, followed: Vec<(TenantId, Option<u64>)>) -> Result<Vec<LogNews>, Refusal>;
    /// The newest signed head; `None` while the log is empty.
    async fn log_head(&self, tenant: &TenantId) -> Result<Option<LogHead>, Refusal>;
    /// Compares the logs with heads that were signed before. Remembers those heads if every log goes on from its own.
    async fn compare_heads(&self, known: &[LogHead]) -> Result<Vec<Setback>, Refusal>;
    /// Compares the logs with the heads that this process knows, and learns newer ones. If a log went back, nothing is
    /// admitted, identified or signed from then on. Answers the time of the newest head.
    async fn watch_heads(&self) -> Result<Option<Timestamp>, Refusal>;
    /// The heads that this process knows, with the number of changes that led to them; `None` where there were no more
    /// changes than `seen`.
    fn known_heads(&self, seen: u64) -> Option<(u64, Vec<LogHead>)>;
    /// Records that an operator accepted a ledger that went back.
    async fn record_rollback(&self, command: RecordRollback) -> Result<(), Refusal>;
    /// Tiles of the log's tree.
    async fn tiles(&self, tenant: &TenantId, coordinates: &[TileCoordinate]) -> Result<Tiles, Refusal>;

    /// The value of a setting that belongs to this ledger (which audit key its log was begun with, for instance).
    async fn setting(&self, name: &'static str) -> Result<Option<String>, Refusal>;
    /// Sets it if it was not set; answers the value that holds.
    async fn set_setting_once(&self, name: &'static str, value: &str) -> Result<String, Refusal>;

    /// The time of the newest id of anything that is listed in the order of ids.
    async fn newest_id(&self) -> Result<Option<Timestamp>, Refusal>;
    /// The revision that a read made now would include.
    async fn revision(&self) -> Result<Revision, Refusal>;
    /// Writes and reads something, to see that the ledger works.
    async fn check(&self) -> Result<(), Refusal>;
}
