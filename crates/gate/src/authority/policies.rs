//! Policies: who may change them, and their versions. Changing them needs its own permission, which no other permission
//! includes.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_model::guard::{PolicyFile, PolicySetVersion};
use toolgate_model::permission::Permission;
use toolgate_model::text::check_identifier;

use super::AuditReader;
use crate::builtin::Builtins;
use crate::catalog::Catalogs;
use crate::gate::{Ports, Shared};
use crate::identify::{Authenticator, Caller};
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    ActivePolicies, ApplyPolicies, AuditLog, Freshness, Page, PageRequest, Policies, PolicyChange, Principals,
};
use crate::ports::policy_book::{Examined, KnownPrincipals, PolicyBook, PolicyProblem, PolicyTool, RuleSummary};
use crate::refusal::{Code, Refusal};

pub use self::replay::{Replay, ReplayStep};
pub use self::shadow::{ShadowExample, ShadowReport, ShadowRule};
pub use self::simulation::{Simulating, Simulation, SimulationProgress, VerdictChange};
use self::trials::Trials;

mod recorded;
mod replay;
mod shadow;
mod simulation;
mod trials;

/// More files than any policy set needs.
const FILE_LIMIT: usize = 500;
/// The maximum size of all files together, in bytes.
const TEXT_LIMIT: usize = 8 * 1024 * 1024;
/// The maximum number of principals examined for warnings.
const PRINCIPAL_LIMIT: usize = 20_000;
/// The maximum number of problems reported at once.
const PROBLEM_LIMIT: usize = 100;

/// A policy set to check or apply.
pub struct NewPolicies {
    pub files: Vec<PolicyFile>,
    /// A note for the version history.
    pub note: Option<String>,
    /// The version that must still be active.
    pub expected: Option<u64>,
}

/// Policies, their versions, and evaluations by other policies.
pub struct PolicyAdministration {
    policies: Arc<dyn Policies>,
    principals: Arc<dyn Principals>,
    log: Arc<dyn AuditLog>,
    policy_book: Arc<dyn PolicyBook>,
    clock: Arc<dyn Clock>,
    authenticator: Arc<Authenticator>,
    audit: Arc<AuditReader>,
    catalogs: Arc<Catalogs>,
    builtins: Arc<Builtins>,
    trials: Arc<Trials>,
}

impl PolicyAdministration {
    pub(crate) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            policies: ports.ledger.clone(),
            principals: ports.ledger.clone(),
            log: ports.ledger.clone(),
            policy_book: Arc::clone(&ports.policy_book),
            clock: Arc::clone(&ports.clock),
            authenticator: Arc::clone(&shared.authenticator),
            audit: Arc::clone(&shared.audit),
            catalogs: Arc::clone(&shared.catalogs),
            builtins: Arc::clone(&shared.builtins),
            trials: Arc::default(),
        }
    }
}

impl PolicyAdministration {
    /// Checks policies without applying them.
    pub async fn check_policies(&self, caller: &Caller, files: Vec<PolicyFile>) -> Result<Examined, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        let files = in_order(files)?;
        let tools = self.policy_tools(caller).await?;
        let mut examined = self.look_at(files.clone(), tools.clone()).await?;
        if examined.problems.is_empty() {
            let (book, principals) = (Arc::clone(&self.policy_book), self.known_principals(caller).await?);
            let warned = tokio::task::spawn_blocking(move || book.warnings(&files, &tools, &principals));
            examined.warnings = warned.await.map_err(|_| broke_off())?;
            examined.warnings.truncate(PROBLEM_LIMIT);
        }
        Ok(examined)
    }

    /// The principals of the tenant, unless there are too many to examine.
    async fn known_principals(&self, caller: &Caller) -> Result<KnownPrincipals, Refusal> {
        let mut known = KnownPrincipals::default();
        let mut page = PageRequest::first(PageRequest::LIMIT);
        loop {
            let found = self.principals.principals(caller.tenant(), page).await?;
            for principal in found.items.iter().filter(|principal| principal.removed_at.is_none()) {
                known.ids.insert(principal.id.as_str().to_owned());
                known.labels.extend(principal.labels.iter().map(|label| label.as_str().to_owned()));
                known.scopes.push(principal.scopes.clone());
            }
            known.complete = found.next.is_none();
            match found.next {
                Some(next) if known.ids.len() < PRINCIPAL_LIMIT => {
                    page = PageRequest { after: Some(next), limit: PageRequest::LIMIT };
                }
                _ => return Ok(known),
            }
        }
    }

    /// Makes these the active policies. They must be valid, and their tests must pass.
    pub async fn apply_policies(&self, caller: &Caller, new: NewPolicies) -> Result<PolicySetVersion, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        let files = in_order(new.files)?;
        self.activate(caller, PolicyChange::Applied, files, new.note, new.expected).await
    }

    /// Makes the policies of an earlier version active again, as a new version.
    pub async fn roll_back_policies(
        &self,
        caller: &Caller,
        to: u64,
        expected: Option<u64>,
    ) -> Result<PolicySetVersion, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        let earlier = self.policy_version(caller, to).await?;
        let note = Some(format!("back to version {to}"));
        self.activate(caller, PolicyChange::RolledBack { to }, earlier.files, note, expected).await
    }

    /// Enforces a rule that was in shadow mode.
    pub async fn promote_policy(&self, caller: &Caller, policy: &str) -> Result<PolicySetVersion, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        if let Err(error) = check_identifier(policy) {
            let reason = format!("`policy_id` {error}");
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "policy_id"));
        }
        let active = self.active_policies(caller).await?;
        let none = || Refusal::new(Code::PolicyNotFound, "there are no policies; apply some first");
        let active = active.active.as_ref().ok_or_else(none)?;
        let files = self
            .policy_book
            .promote(&active.files, policy)
            .map_err(|reason| Refusal::new(Code::PolicyNotFound, reason).with("policy_id", policy))?;
        let change = PolicyChange::Promoted { policy: policy.to_owned() };
        let note = Some(format!("{policy} is in force"));
        self.activate(caller, change, files, note, Some(active.version)).await
    }

    pub async fn active_policies(&self, caller: &Caller) -> Result<Arc<ActivePolicies>, Refusal> {
        require_reader(caller)?;
        self.policies.policies(caller.tenant(), self.clock.now(), Freshness::Newest).await
    }

    pub async fn policy_version(&self, caller: &Caller, version: u64) -> Result<PolicySetVersion, Refusal> {
        require_reader(caller)?;
        let missing = || {
            let reason = format!("there is no version {version} of the policies");
            Refusal::new(Code::PolicyNotFound, reason).with("version", version)
        };
        self.policies.policy_version(caller.tenant(), version).await?.ok_or_else(missing)
    }

    /// Lists the versions of the policies, newest first.
    pub async fn policy_versions(&self, caller: &Caller, page: PageRequest) -> Result<Page<PolicySetVersion>, Refusal> {
        require_reader(caller)?;
        self.policies.policy_versions(caller.tenant(), page).await
    }

    /// The rules in a version of the policies.
    pub fn policy_rules(&self, version: &PolicySetVersion) -> Vec<RuleSummary> {
        self.policy_book.rules(&version.files).unwrap_or_default()
    }

    /// The Cedar schema for rules.
    pub async fn policy_schema(&self, caller: &Caller) -> Result<String, Refusal> {
        require_reader(caller)?;
        let tools = self.policy_tools(caller).await?;
        Ok(self.policy_book.schema(&tools))
    }

    async fn activate(
        &self,
        caller: &Caller,
        change: PolicyChange,
        files: Vec<PolicyFile>,
        note: Option<String>,
        expected: Option<u64>,
    ) -> Result<PolicySetVersion, Refusal> {
        let tools = self.policy_tools(caller).await?;
        let command = self.policy_activation(caller, change, files, note, expected, tools).await?;
        self.policies.apply_policies(command).await
    }

    /// The command that replaces the policies, if the caller may; these tools are also known to the rules.
    pub(super) async fn policy_application(
        &self,
        caller: &Caller,
        new: NewPolicies,
        more_tools: Vec<PolicyTool>,
    ) -> Result<ApplyPolicies, Refusal> {
        caller.require(Permission::ManagePolicies)?;
        let files = in_order(new.files)?;
        let mut tools = self.policy_tools(caller).await?;
        tools.retain(|tool| !more_tools.iter().any(|more| more.name == tool.name));
        tools.extend(more_tools);
        self.policy_activation(caller, PolicyChange::Applied, files, new.note, new.expected, tools).await
    }

    async fn policy_activation(
        &self,
        caller: &Caller,
        change: PolicyChange,
        files: Vec<PolicyFile>,
        note: Option<String>,
        expected: Option<u64>,
        tools: Vec<PolicyTool>,
    ) -> Result<ApplyPolicies, Refusal> {
        let checked = self.look_at(files.clone(), tools).await?;
        require_right(&checked)?;
        let count = |rules: usize| u64::try_from(rules).unwrap_or(u64::MAX);
        let shadowed = count(checked.rules.iter().filter(|rule| rule.shadow).count());
        let rules = count(checked.rules.len());
        let audit = caller.mandate(self.clock.now());
        Ok(ApplyPolicies { audit, change, files, note, expected, rules, shadowed })
    }

    /// Checks and tests policies off the workers that serve calls: many rules take a while.
    async fn look_at(&self, files: Vec<PolicyFile>, tools: Vec<PolicyTool>) -> Result<Examined, Refusal> {
        let book = Arc::clone(&self.policy_book);
        let looked = tokio::task::spawn_blocking(move || {
            let mut examined = book.examine(&files, &tools);
            examined.problems.truncate(PROBLEM_LIMIT);
            examined
        });
        looked.await.map_err(|_| broke_off())
    }

    /// The tools that rules can refer to: those of the newest version of every service, and the built-in tools.
    pub(super) async fn policy_tools(&self, caller: &Caller) -> Result<Vec<PolicyTool>, Refusal> {
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Newest).await?;
        let own = self.builtins.of(caller.tenant()).map(|builtin| &builtin.tool);
        let mut seen = BTreeSet::new();
        let registered = catalog.services().flat_map(|service| service.tools());
        let tools = own.chain(registered).filter_map(|tool| {
            let name = tool.qualified_name().to_owned();
            let tool = PolicyTool {
                name: name.clone(),
                service: tool.service.to_string(),
                definition: Arc::clone(&tool.definition),
            };
            seen.insert(name).then_some(tool)
        });
        Ok(tools.collect())
    }
}

fn broke_off() -> Refusal {
    Refusal::new(Code::Internal, "checking the policies failed; see the gate's log")
}

fn require_reader(caller: &Caller) -> Result<(), Refusal> {
    if caller.may(Permission::ReadAudit) { Ok(()) } else { caller.require(Permission::ManagePolicies) }
}

/// The files sorted by name, if they are within the limits.
fn in_order(mut files: Vec<PolicyFile>) -> Result<Vec<PolicyFile>, Refusal> {
    let wrong = |reason: String| Err(Refusal::new(Code::InvalidField, reason).with("path", "files"));
    if files.len() > FILE_LIMIT {
        return wrong(format!("a policy set has at most {FILE_LIMIT} files"));
    }
    if files.iter().map(|file| file.text.len()).sum::<usize>() > TEXT_LIMIT {
        return wrong(format!("a policy set has at most {TEXT_LIMIT} bytes"));
    }
    let is_name = |name: &str| {
        let stem = name.strip_suffix(".cedar").or_else(|| name.strip_suffix(".test.yaml"));
        stem.is_some_and(|stem| !stem.is_empty())
            && name.len() <= 128
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    if let Some(place) = files.iter().position(|file| !is_name(&file.name)) {
        let path = format!("files.{place}.name");
        let reason = format!(
            "`{path}` is not a valid policy file name: use letters, digits, . _ -, ending in .cedar or \
                .test.yaml"
        );
        return Err(Refusal::new(Code::InvalidField, reason).with("path", path));
    }
    files.sort_by(|left, right| left.name.cmp(&right.name));
    if let Some([twice, _]) = files.array_windows().find(|[left, right]| left.name == right.name) {
        return wrong(format!("`{}` appears twice", twice.name));
    }
    Ok(files)
}

fn require_right(checked: &Examined) -> Result<(), Refusal> {
    if let Some(problem) = checked.problems.first() {
        let reason = format!("{}: {}", problem.file, problem.message);
        let problems: Vec<_> = checked.problems.iter().map(PolicyProblem::to_json).collect();
        return Err(Refusal::new(Code::PolicyInvalid, reason).with("problems", problems));
    }
    let failed: Vec<_> = checked.tests.iter().filter(|test| test.failure.is_some()).collect();
    match failed.first() {
        None => Ok(()),
        Some(first) => {
            let why = first.failure.as_deref().unwrap_or_default();
            let reason = format!("{} of the policy tests failed; the first: {}: {why}", failed.len(), first.name);
            let failed: Vec<_> = failed.iter().map(|test| test.to_json()).collect();
            Err(Refusal::new(Code::PolicyInvalid, reason).with("failed_tests", failed))
        }
    }
}
