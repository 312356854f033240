//! Policies as text: validation and evaluation. The gate stores and distributes them; the implementation of this port
//! knows what they mean.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::guard::{HookDecision, PolicyFile, VerdictKind};
use toolgate_model::hook::ToolCalled;
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::service::ToolDefinition;

/// A tool that rules can refer to.
#[derive(Debug, Clone)]
pub struct PolicyTool {
    /// `service.tool`.
    pub name: String,
    pub service: String,
    pub definition: Arc<ToolDefinition>,
}

/// A problem in a policy set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    pub file: String,
    pub policy: Option<String>,
    pub line: Option<u32>,
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
}

impl PolicyProblem {
    /// As shown to the author.
    pub fn to_json(&self) -> Value {
        json!({
            "file": self.file, "policy_id": self.policy, "line": self.line, "message": self.message, "help": self.help,
        })
    }
}

/// A rule, for listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSummary {
    pub id: String,
    pub file: String,
    /// `deny`, `ask` or `redact`.
    pub effect: &'static str,
    /// Whether it is in shadow mode.
    pub shadow: bool,
    pub reason: Option<String>,
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyTestOutcome {
    pub file: String,
    pub name: String,
    /// `None` if it passed; else what was expected and what came.
    pub failure: Option<String>,
}

impl PolicyTestOutcome {
    /// As shown to the author.
    pub fn to_json(&self) -> Value {
        json!({"file": self.file, "name": self.name, "passed": self.failure.is_none(), "failure": self.failure})
    }
}

/// What the log contains about a call or another event.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The guardians' decision, if they were consulted.
    pub decision: Option<Box<HookDecision>>,
    /// Set if it is a call.
    pub called: Option<Box<ToolCalled>>,
    pub agent: String,
    pub actor: String,
    /// In RFC 3339.
    pub time: String,
    pub run: Option<String>,
    /// The tool in its present definition, if it still exists.
    pub tool: Option<PolicyTool>,
    /// The agent in its present state.
    pub principal: Option<Value>,
}

/// What policies decide about a recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reevaluation {
    Verdict {
        kind: VerdictKind,
        /// The rules that determined it.
        policies: Vec<String>,
    },
    /// It cannot be known: rules read what was not recorded.
    Undecidable {
        /// The rules that read it.
        policies: Vec<String>,
        missing: Vec<String>,
    },
}

/// The findings about policies.
#[derive(Debug, Default)]
pub struct Examined {
    pub problems: Vec<PolicyProblem>,
    /// The rules, as far as they can be parsed.
    pub rules: Vec<RuleSummary>,
    pub tests: Vec<PolicyTestOutcome>,
    /// Names in rules that do not exist: such rules can be applied but never match.
    pub warnings: Vec<PolicyProblem>,
}

/// The principals that rules can refer to.
#[derive(Debug, Clone, Default)]
pub struct KnownPrincipals {
    /// Whether these are all principals; if not, missing ones cannot be reported.
    pub complete: bool,
    pub ids: BTreeSet<String>,
    /// The labels that any of them has.
    pub labels: BTreeSet<String>,
    pub scopes: Vec<HeldScopes>,
}

pub trait PolicyBook: Send + Sync {
    /// Validates these files for a catalog of these tools; if they are valid, runs the policy tests.
    fn examine(&self, files: &[PolicyFile], tools: &[PolicyTool]) -> Examined;
    /// Names in the rules of these files that do not exist.
    fn warnings(&self, files: &[PolicyFile], tools: &[PolicyTool], principals: &KnownPrincipals) -> Vec<PolicyProblem>;
    /// The rules in these files; `None` if they cannot be parsed.
    fn rules(&self, files: &[PolicyFile]) -> Option<Vec<RuleSummary>>;
    /// The same files with this rule enforced instead of in shadow mode.
    fn promote(&self, files: &[PolicyFile], policy: &str) -> Result<Vec<PolicyFile>, String>;
    /// What rules can refer to, as a schema for people and editors.
    fn schema(&self, tools: &[PolicyTool]) -> String;
    /// Compiles these policies once for a whole re-evaluation.
    fn judge(&self, version: u64, files: &[PolicyFile]) -> Result<Arc<dyn Judge>, Vec<PolicyProblem>>;
}

/// Policies that re-evaluate recorded events.
pub trait Judge: Send + Sync {
    fn reevaluate(&self, recorded: &Recorded) -> Reevaluation;
}
