//! Policies as texts: whether they can be applied, what they would say. The gate keeps them and hands them out; what
//! they mean is known behind this port.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::guard::{HookDecision, PolicyFile, VerdictKind};
use toolgate_model::hook::ToolCalled;
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::service::ToolDefinition;

/// A tool that rules can speak of.
#[derive(Debug, Clone)]
pub struct PolicyTool {
    /// `service.tool`.
    pub name: String,
    /// Its service.
    pub service: String,
    /// What is known of it.
    pub definition: Arc<ToolDefinition>,
}

/// Something that is wrong with a policy set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// In which file.
    pub file: String,
    /// In which rule.
    pub policy: Option<String>,
    /// In which line.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
    /// What helps.
    pub help: Option<String>,
}

impl PolicyProblem {
    /// As it is told to whoever brought it.
    pub fn to_json(&self) -> Value {
        json!({
            "file": self.file, "policy_id": self.policy, "line": self.line, "message": self.message, "help": self.help,
        })
    }
}

/// A rule, as people list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSummary {
    /// Its id.
    pub id: String,
    /// In which file.
    pub file: String,
    /// `deny`, `ask` or `redact`.
    pub effect: &'static str,
    /// Whether it only watches.
    pub shadow: bool,
    /// Why it is there.
    pub reason: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
}

/// What came of a test that stands beside the policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyTestOutcome {
    /// In which file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// `None` where it passed; else what was expected and what came.
    pub failure: Option<String>,
}

impl PolicyTestOutcome {
    /// As it is told to whoever runs it.
    pub fn to_json(&self) -> Value {
        json!({"file": self.file, "name": self.name, "passed": self.failure.is_none(), "failure": self.failure})
    }
}

/// A call, or another event, that is in the log: as far as it is there.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// What guardians decided, where they were asked.
    pub decision: Option<Box<HookDecision>>,
    /// The call, where it is one.
    pub called: Option<Box<ToolCalled>>,
    /// Whose call it was.
    pub agent: String,
    /// Who made it.
    pub actor: String,
    /// When, RFC 3339.
    pub time: String,
    /// As part of which execution.
    pub run: Option<String>,
    /// The tool as it is known now, where it still is.
    pub tool: Option<PolicyTool>,
    /// The agent as it is known now.
    pub principal: Option<Value>,
}

/// What policies say about something recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reevaluation {
    /// This.
    Verdict {
        /// In a word.
        kind: VerdictKind,
        /// By which rules.
        policies: Vec<String>,
    },
    /// It cannot be known: rules look at what was not recorded.
    Undecidable {
        /// Which rules.
        policies: Vec<String>,
        /// What is missing.
        missing: Vec<String>,
    },
}

/// What was found about policies.
#[derive(Debug, Default)]
pub struct Examined {
    /// What is wrong.
    pub problems: Vec<PolicyProblem>,
    /// The rules, as far as they can be read.
    pub rules: Vec<RuleSummary>,
    /// What came of their tests.
    pub tests: Vec<PolicyTestOutcome>,
    /// What rules name and there is not: they can be applied, and can never apply.
    pub warnings: Vec<PolicyProblem>,
}

/// The principals that rules can speak of.
#[derive(Debug, Clone, Default)]
pub struct KnownPrincipals {
    /// Whether these are all of them; if not, nothing can be said about what there is not.
    pub complete: bool,
    /// Their ids.
    pub ids: BTreeSet<String>,
    /// The labels that any of them has.
    pub labels: BTreeSet<String>,
    /// The scopes of each.
    pub scopes: Vec<HeldScopes>,
}

/// Reads policies.
pub trait PolicyBook: Send + Sync {
    /// Looks at these files, for a catalog of these tools; where nothing is wrong, the tests beside the policies are run.
    fn examine(&self, files: &[PolicyFile], tools: &[PolicyTool]) -> Examined;
    /// What the rules in these files name and there is not.
    fn warnings(&self, files: &[PolicyFile], tools: &[PolicyTool], principals: &KnownPrincipals) -> Vec<PolicyProblem>;
    /// The rules in these files; `None` where they cannot be read.
    fn rules(&self, files: &[PolicyFile]) -> Option<Vec<RuleSummary>>;
    /// The same files with this rule in force, where it was in shadow.
    fn promote(&self, files: &[PolicyFile], policy: &str) -> Result<Vec<PolicyFile>, String>;
    /// What rules can speak of, as a schema for people and editors.
    fn schema(&self, tools: &[PolicyTool]) -> String;
    /// These policies, compiled once for all that is in the log.
    fn judge(&self, version: u64, files: &[PolicyFile]) -> Result<Arc<dyn Judge>, Vec<PolicyProblem>>;
}

/// Policies that are evaluated again on what is in the log.
pub trait Judge: Send + Sync {
    /// What they say about it.
    fn reevaluate(&self, recorded: &Recorded) -> Reevaluation;
}
