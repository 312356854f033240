//! Policies: the active ones, changes, drafts, and re-evaluation of recorded decisions.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate_model::hook::RunId;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::Paging;
use crate::reading::Object;

pub use self::replies::{
    ActivePolicies, CheckedPolicies, PolicyProblem, PolicyRule, PolicySchema, PolicyTest, PolicyVersion,
    PolicyVersionFiles, PolicyVersionPage, PolicyVersionRules, RecordedVerdict, ReevaluatedVerdict, Reevaluation,
    Replay, ReplayStep, ShadowExample, ShadowReport, ShadowRule, Simulation, SimulationResponse, SimulationStep,
    Verdict, VerdictChange,
};

mod replies;

endpoints! {
    tag "policies" = "The rules that restrict calls: what is in force, its versions, and drafts. Changing them needs `policies.manage`, which no other permission includes.";

    /// Show the policies in force
    ///
    /// Needs `policies.manage` or `audit.read`. Where nothing was ever applied, everything but `rules` is `null`.
    ShowPolicies = GET "/api/v1/policies" as "show_policies" {
        reply: OK ActivePolicies = "The active version with its rules.",
    }

    /// Replace the policies in force
    ///
    /// Needs `policies.manage`. All files together become a new version, which is active on every replica when this
    /// returns. They must have no problems, and the tests beside them must pass: otherwise `POLICY_INVALID`, with
    /// `error.problems` or `error.failed_tests`.
    ApplyPolicies = PUT "/api/v1/policies" as "apply_policies" {
        body: PoliciesRequest = {
            "files": [{
                "name": "hours.cedar",
                "text": "@id(\"no-night-work\")\n@reason(\"nothing runs before six\")\nforbid (principal, action in Action::\"call\", resource) when { context.time.hour < 6 };\n"
            }],
            "note": "quiet nights",
            "expected_version": 3
        },
        reply: OK PolicyVersionRules = "The new version with its rules.",
    }

    /// Check and test a draft
    ///
    /// Needs `policies.manage`. Nothing is changed. The response to a draft with problems is 200 too; its tests are then
    /// not run.
    CheckPolicies = POST "/api/v1/policies/check" as "check_policies" {
        body: DraftRequest = {
            "files": [{"name": "draft.cedar", "text": "forbid (principal, action, resource);\n"}]
        },
        reply: OK CheckedPolicies = "The findings.",
    }

    /// Enforce a rule that was in shadow mode
    ///
    /// Needs `policies.manage`. Creates a new version.
    PromotePolicy = POST "/api/v1/policies/promote" as "promote_policy" {
        body: PromoteRequest = {"policy_id": "no-night-work"},
        reply: OK PolicyVersionRules = "The new version with its rules.",
        errors: [NotFound],
    }

    /// Activate the policies of an earlier version again
    ///
    /// Needs `policies.manage`. Creates a new version with the files of the earlier one, which are checked and tested
    /// again.
    RollBackPolicies = POST "/api/v1/policies/rollback" as "roll_back_policies" {
        body: RollbackRequest = {"version": 2, "expected_version": 3},
        reply: OK PolicyVersionRules = "The new version with its rules.",
        errors: [NotFound],
    }

    /// Show what rules can refer to
    ///
    /// Needs `policies.manage` or `audit.read`. Generated from the tools that are registered now.
    ShowPolicySchema = GET "/api/v1/policies/schema" as "show_policy_schema" {
        reply: OK PolicySchema = "The schema.",
    }

    /// Show what rules in shadow mode would have decided
    ///
    /// Needs `audit.read`.
    ShowShadowReport = GET "/api/v1/policies/shadow" as "show_shadow_report" {
        query: ShadowQuery,
        reply: OK ShadowReport = "The rules that would have had an effect.",
    }

    /// Evaluate recorded calls by a draft
    ///
    /// Needs `policies.manage` and `audit.read`. Nothing is changed. A call is undecidable if a rule reads what was not
    /// recorded.
    SimulatePolicies = POST "/api/v1/policies/simulate" as "simulate_policies" {
        body: SimulationRequest = {
            "files": [{"name": "draft.cedar", "text": "forbid (principal, action, resource);\n"}],
            "since": "2099-03-01T00:00:00Z"
        },
        reply: OK Simulation = "The decisions that would have been different.",
        stream: Lines SimulationStep = "Lines of JSON: the progress, and at the end the result.",
    }

    /// List the versions, newest first
    ///
    /// Needs `policies.manage` or `audit.read`.
    ListPolicyVersions = GET "/api/v1/policies/versions" as "list_policy_versions" {
        query: Paging,
        reply: OK PolicyVersionPage = "A page of versions, without their files.",
    }

    /// Show one version with its files
    ///
    /// Needs `policies.manage` or `audit.read`.
    ShowPolicyVersion = GET "/api/v1/policies/versions/{version}" as "show_policy_version" {
        path: PolicyVersionNumber,
        reply: OK PolicyVersionFiles = "The version.",
    }

    /// Re-evaluate an execution by the policies of that moment
    ///
    /// Needs `audit.read`. Recorded durations are shown as they were.
    ReplayRun = GET "/api/v1/runs/{run_id}/replay" as "replay_run" {
        path: RunId,
        reply: OK Replay = "Each decision of the policies, as recorded and as re-evaluated.",
    }
}

/// The number of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyVersionNumber(pub u64);

impl fmt::Display for PolicyVersionNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl JsonSchema for PolicyVersionNumber {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::borrow::Cow::Borrowed("PolicyVersionNumber")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = json!({"type": "integer", "description": "Versions are counted from one.", "minimum": 1});
        Schema::try_from(schema).unwrap_or_default()
    }
}

/// A file with rules (`.cedar`) or with tests of them (`.test.yaml`).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9._-]+\.(cedar|test\.yaml)$"))]
    pub name: String,
    pub text: String,
}

/// All files of a policy set; together at most 8 MiB.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PolicyFiles(#[schemars(length(max = 500))] pub Vec<Object<PolicyFile>>);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoliciesRequest {
    pub files: PolicyFiles,
    /// Recorded with the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Line>,
    /// The version that must be active still, 0 for none; else `VERSION_CONFLICT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

impl RequestBody for PoliciesRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftRequest {
    pub files: PolicyFiles,
}

impl RequestBody for DraftRequest {}

/// A draft, and from when on calls are evaluated by it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulationRequest {
    pub files: PolicyFiles,
    pub since: Timestamp,
}

impl RequestBody for SimulationRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    // 0 names no version, and is refused as such.
    #[schemars(with = "PolicyVersionNumber")]
    pub version: u64,
    /// The version that must be active still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

impl RequestBody for RollbackRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    pub policy_id: String,
}

impl RequestBody for PromoteRequest {}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShadowQuery {
    /// Decisions from then on.
    pub since: Timestamp,
}
