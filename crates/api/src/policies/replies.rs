//! Policies in their shown form, and the results of evaluations.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_model::guard::{PolicySetVersion, VerdictKind};
use toolgate_model::hook::RunId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::time::Timestamp;

use super::{PolicyFiles, PolicyVersionNumber};
use crate::error::ErrorBody;
use crate::reply::NextCursor;

/// SHA-256 of the canonical files.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = "^[0-9a-f]{64}$"))]
#[expect(dead_code, reason = "only its schema is used")]
struct PolicyDigest(String);

/// A version of the policies. It never changes.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyVersion {
    pub version: PolicyVersionNumber,
    #[schemars(with = "PolicyDigest")]
    pub digest: String,
    pub note: Option<String>,
    pub applied_by: PrincipalId,
    pub created_at: Timestamp,
}

impl From<&PolicySetVersion> for PolicyVersion {
    fn from(version: &PolicySetVersion) -> Self {
        Self {
            version: PolicyVersionNumber(version.version),
            digest: version.digest.clone(),
            note: version.note.clone(),
            applied_by: version.applied_by.clone(),
            created_at: version.created_at,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRule {
    pub id: String,
    pub file: String,
    /// The effect of a match.
    #[schemars(with = "RuleEffect")]
    pub effect: String,
    /// Whether it is only recorded.
    pub shadow: bool,
    /// The reason shown to the agent and the approver.
    pub reason: Option<String>,
    pub description: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum RuleEffect {
    Deny,
    Ask,
    Redact,
}

/// A version with its rules.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyVersionRules {
    #[serde(flatten)]
    pub version: PolicyVersion,
    pub rules: Vec<PolicyRule>,
}

/// A version with its rules and its files.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyVersionFiles {
    #[serde(flatten)]
    pub version: PolicyVersionRules,
    pub files: PolicyFiles,
}

/// The active policies. All members but `rules` are `null` if nothing was ever applied.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ActivePolicies {
    pub version: Option<PolicyVersionNumber>,
    #[schemars(with = "Option<PolicyDigest>")]
    pub digest: Option<String>,
    pub note: Option<String>,
    pub applied_by: Option<PrincipalId>,
    pub created_at: Option<Timestamp>,
    pub rules: Vec<PolicyRule>,
}

impl From<PolicyVersionRules> for ActivePolicies {
    fn from(PolicyVersionRules { version, rules }: PolicyVersionRules) -> Self {
        Self {
            version: Some(version.version),
            digest: Some(version.digest),
            note: version.note,
            applied_by: Some(version.applied_by),
            created_at: Some(version.created_at),
            rules,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyVersionPage {
    pub versions: Vec<PolicyVersion>,
    pub next_cursor: NextCursor,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct PolicySchema {
    /// In Cedar's own syntax for schemas.
    pub schema: String,
}

/// The findings about a draft.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPolicies {
    /// Whether it could be applied: no problems, and every test passed.
    pub ok: bool,
    #[schemars(length(max = 100))]
    pub problems: Vec<PolicyProblem>,
    pub rules: Vec<PolicyRule>,
    pub tests: Vec<PolicyTest>,
    /// Names in rules that do not exist: such rules can be applied but never match.
    #[schemars(length(max = 100))]
    pub warnings: Vec<PolicyProblem>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyProblem {
    pub file: String,
    pub policy_id: Option<String>,
    #[schemars(range(min = 1))]
    pub line: Option<u32>,
    pub message: String,
    pub help: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PolicyTest {
    pub file: String,
    pub name: String,
    pub passed: bool,
    /// What was expected, and what came.
    pub failure: Option<String>,
}

/// The decisions of policies and guardians, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Modify,
    Ask,
    Deny,
}

impl From<VerdictKind> for Verdict {
    fn from(kind: VerdictKind) -> Self {
        match kind {
            VerdictKind::Allow => Self::Allow,
            VerdictKind::Modify => Self::Modify,
            VerdictKind::Ask => Self::Ask,
            VerdictKind::Deny => Self::Deny,
        }
    }
}

/// The decision of policies about a recorded event.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reevaluation {
    pub verdict: ReevaluatedVerdict,
    /// The rules that decide.
    pub policies: Vec<String>,
    /// What was not recorded.
    pub missing: Vec<String>,
}

/// `undecidable` if rules read what was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ReevaluatedVerdict {
    Allow,
    Modify,
    Ask,
    Deny,
    Undecidable,
}

impl From<VerdictKind> for ReevaluatedVerdict {
    fn from(kind: VerdictKind) -> Self {
        match kind {
            VerdictKind::Allow => Self::Allow,
            VerdictKind::Modify => Self::Modify,
            VerdictKind::Ask => Self::Ask,
            VerdictKind::Deny => Self::Deny,
        }
    }
}

/// What a draft would have changed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Simulation {
    /// The number of evaluated calls.
    pub calls: u64,
    pub changed: u64,
    pub undecidable: u64,
    /// Those that change and those that are undecidable, in the order of the log.
    #[schemars(length(max = 1000))]
    pub changes: Vec<VerdictChange>,
    /// Whether the log has more than was read.
    pub truncated: bool,
}

/// The progress of a simulation. The last step is `answered`, with the status and the body of the response without
/// steps.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SimulationStep {
    Progress {
        /// The position in the log.
        reached: u64,
        /// The size of the log.
        size: u64,
        calls: u64,
        changed: u64,
    },
    Answered {
        #[schemars(range(min = 200, max = 599))]
        status: u16,
        body: Box<SimulationResponse>,
    },
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum SimulationResponse {
    Refused(Box<ErrorBody>),
    Done(Simulation),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct VerdictChange {
    /// Its position in the log.
    pub sequence: u64,
    pub invocation_id: Option<String>,
    #[schemars(with = "Timestamp")]
    pub timestamp: String,
    #[schemars(with = "PrincipalId")]
    pub agent_id: String,
    /// The tool, or the hook.
    pub subject: String,
    pub before: Verdict,
    /// The outcome of the call: `denied` if it was refused for any reason; else the verdict of the policies.
    pub was: String,
    /// The code that it was refused with.
    pub denied_with: Option<String>,
    pub after: Reevaluation,
}

/// What rules in shadow mode would have decided.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShadowReport {
    /// The number of decisions read.
    pub decisions: u64,
    pub rules: Vec<ShadowRule>,
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShadowRule {
    pub policy_id: String,
    /// The number of verdicts by kind.
    #[schemars(extend("propertyNames" = {"enum": ["allow", "modify", "ask", "deny"]}))]
    pub verdicts: BTreeMap<String, u64>,
    /// The number of verdicts that were stricter than the effective one.
    pub would_change: u64,
    /// The newest of those.
    #[schemars(length(max = 10))]
    pub examples: Vec<ShadowExample>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShadowExample {
    pub sequence: u64,
    pub invocation_id: Option<String>,
    #[schemars(with = "Timestamp")]
    pub timestamp: String,
    #[schemars(with = "PrincipalId")]
    pub agent_id: String,
    pub subject: String,
    pub effective: Verdict,
    pub would_be: Verdict,
}

/// An execution that was re-evaluated.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    pub run_id: RunId,
    /// In the order of the log.
    pub steps: Vec<ReplayStep>,
    pub truncated: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayStep {
    pub sequence: u64,
    pub invocation_id: Option<String>,
    #[schemars(with = "Timestamp")]
    pub timestamp: String,
    pub hook: String,
    pub subject: String,
    pub policy_version: PolicyVersionNumber,
    pub recorded: RecordedVerdict,
    /// The recorded duration of the evaluation, in microseconds.
    pub latency_us: u64,
    pub replayed: Reevaluation,
    /// Whether verdict and rules are the same; `null` if that cannot be known.
    pub same: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RecordedVerdict {
    pub verdict: Verdict,
    pub policies: Vec<String>,
}
