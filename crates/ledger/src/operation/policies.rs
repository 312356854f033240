//! Policies: the versions of a tenant's policy set, and the active one. The registry's row counts them, so that an
//! admission reads one row to know whether tools and policies are still those that the call was decided on.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use toolgate_gate::ports::ledger::{
    ActivePolicies, ApplyPolicies, Freshness, Generation, History, HistoryQuery, Mandate, Page, PageRequest, Policies,
    PolicyChange, RecordDecision,
};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::canonical::to_canonical;
use toolgate_model::event::{EventPayload, PoliciesChanged, PolicyChangeKind};
use toolgate_model::guard::{PolicyFile, PolicySetVersion};
use toolgate_model::hook::RunId;
use toolgate_model::merkle::sha256;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::text::{SharedText, check_identifier};
use toolgate_model::time::Timestamp;

use super::Operation;
use super::administration::{Administration, Entitled};
use super::listing::Conditions;
use super::marks::ReadHistory;
use super::record::{Entry, record};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> Policies for SqlLedger<E> {
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
            // A change of something else: the same set, now known to be valid at a later generation.
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
}

const COLUMNS: &str = "tenant, version, files, digest, note, applied_by, created_at";

/// A file as it is stored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    name: String,
    text: String,
}

fn read(row: &Row) -> Result<PolicySetVersion, SqlError> {
    let files: Vec<StoredFile> = row.json(2)?;
    Ok(PolicySetVersion {
        version: row.count(1)?,
        files: files.into_iter().map(|StoredFile { name, text }| PolicyFile { name, text }).collect(),
        digest: row.text(3)?.to_owned(),
        note: row.optional_text(4)?.map(str::to_owned),
        applied_by: row.parsed(5, PrincipalId::parse)?,
        created_at: row.time(6)?,
    })
}

/// Counts a change, and locks out every other change and every admission of this tenant until the transaction ends.
async fn next_version<T: Transaction>(transaction: &mut T, tenant: &TenantId) -> Result<u64, Failure> {
    let sql = "INSERT INTO registries (tenant, revision, policies) VALUES ($1, 0, 1) \
         ON CONFLICT (tenant) DO UPDATE SET policies = registries.policies + 1 RETURNING tenant, policies";
    let row = transaction.query_optional(sql, values![tenant]).await?;
    Ok(row.ok_or_else(|| SqlError::Corrupt("no version of the policies".to_owned()))?.count(1)?)
}

impl Administration for ApplyPolicies {
    type Output = PolicySetVersion;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(
        &self,
        transaction: &mut T,
        by: &Entitled<'_>,
    ) -> Result<PolicySetVersion, Failure> {
        let tenant = &by.tenant;
        let version = next_version(transaction, tenant).await?;
        let active = version.saturating_sub(1);
        if let Some(expected) = self.expected.filter(|expected| *expected != active) {
            return Err(changed_meanwhile(expected, active).into());
        }
        let canonical = to_canonical(&self.files.iter().map(stored).collect());
        let made = PolicySetVersion {
            version,
            files: self.files.clone(),
            digest: sha256(&canonical).to_hex(),
            note: self.note.clone(),
            applied_by: by.actor.clone(),
            created_at: by.time,
        };
        let sql = "INSERT INTO policy_sets (tenant, version, files, digest, note, applied_by, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)";
        // INVARIANT: canonical JSON is UTF-8.
        let files = String::from_utf8_lossy(&canonical);
        let parameters = values![
            tenant,
            version,
            files.as_ref(),
            made.digest.as_str(),
            made.note.as_deref(),
            &made.applied_by,
            made.created_at,
        ];
        transaction.execute(sql, parameters).await?;
        let (change, subject) = match &self.change {
            PolicyChange::Applied => (PolicyChangeKind::Applied, None),
            PolicyChange::RolledBack { to } => (PolicyChangeKind::RolledBack, Some(to.to_string())),
            PolicyChange::Promoted { policy } => (PolicyChangeKind::Promoted, Some(policy.clone())),
        };
        let payload = EventPayload::PoliciesChanged(PoliciesChanged {
            version,
            change,
            subject,
            rules: self.rules,
            shadowed: self.shadowed,
            digest: made.digest.clone(),
            note: made.note.clone(),
        });
        record(transaction, by, Entry::new(payload)).await?;
        Ok(made)
    }
}

fn stored(file: &PolicyFile) -> Json {
    json!({"name": file.name, "text": file.text})
}

fn changed_meanwhile(expected: u64, active: u64) -> Refusal {
    let version_text = |version| match version {
        0 => "no version".to_owned(),
        version => format!("version {version}"),
    };
    let reason = format!(
        "{} of the policies is active, not {}; review it and apply again",
        version_text(active),
        version_text(expected)
    );
    Refusal::new(Code::VersionConflict, reason).with("active_version", active).with("expected_version", expected)
}

/// Reads the policies of a tenant, unless the known revision is current.
pub struct ReadPolicies {
    pub tenant: TenantId,
    pub known: Option<u64>,
    /// The point in the history of authority that the read has reached.
    pub generation: Generation,
}

impl Operation for ReadPolicies {
    /// `None` if the known revision is current.
    type Output = Option<ActivePolicies>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Option<ActivePolicies>, Failure> {
        let sql = "SELECT tenant, policies FROM registries WHERE tenant = $1";
        let revision = match transaction.query_optional(sql, values![&self.tenant]).await? {
            Some(row) => row.count(1)?,
            None => 0,
        };
        if self.known == Some(revision) {
            return Ok(None);
        }
        let active = match revision {
            0 => None,
            version => {
                let found = ReadPolicyVersion { tenant: self.tenant.clone(), version }.run(transaction).await?;
                // Without the text of the active version nothing can be evaluated.
                let lost = || SqlError::Corrupt(format!("version {version} of the policies of {}", self.tenant));
                Some(found.ok_or_else(lost)?.into())
            }
        };
        Ok(Some(ActivePolicies { revision, active, generation: self.generation }))
    }
}

pub struct ReadPolicyVersion {
    pub tenant: TenantId,
    pub version: u64,
}

impl Operation for ReadPolicyVersion {
    type Output = Option<PolicySetVersion>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM policy_sets WHERE tenant = $1 AND version = $2");
        let row = transaction.query_optional(&sql, values![&self.tenant, self.version]).await?;
        Ok(row.as_ref().map(read).transpose()?)
    }
}

/// Lists the versions, newest first.
pub struct ListPolicyVersions {
    pub tenant: TenantId,
    /// Which page; the cursor is a version.
    pub page: PageRequest,
}

impl Operation for ListPolicyVersions {
    type Output = Page<PolicySetVersion>;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<Self::Output, Failure> {
        let before = self.page.after.as_ref().map(|after| after.parse::<u64>()).transpose();
        let before =
            before.map_err(|_| Refusal::new(Code::InvalidCursor, "`cursor` must come from an earlier response"))?;
        let mut conditions = Conditions::default();
        conditions.and("tenant =", &self.tenant);
        conditions.and_if("version <", before);
        let from = (COLUMNS, "policy_sets", "version DESC");
        conditions.page(transaction, from, &self.page, read, |set| set.version.to_string()).await
    }
}

impl Operation for RecordDecision {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<(), Failure> {
        // Names of conversations and tools in other programs are searched only if they are valid identifiers.
        let is_name = |text: &&str| check_identifier(text).is_ok();
        let session = self.decision.ids.session.as_deref().filter(is_name);
        let run = self.run.as_ref().map(RunId::as_str).or(session);
        let entry = Entry {
            run: run.map(str::to_owned),
            tool: self.decision.tool.as_deref().filter(is_name).map(SharedText::from),
            ..Entry::about(EventPayload::HookDecided(self.decision.clone()), &self.agent)
        };
        record(transaction, &self.audit, entry).await
    }
}
