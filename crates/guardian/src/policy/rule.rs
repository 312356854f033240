//! One rule of a policy set: a Cedar `forbid` with its annotations.

use cedar_policy::{Effect, Policy, PolicyId};

use super::annotation::{Annotations, Fault};
use super::index::Scope;
use super::reads::Reads;
use super::remedy::Remedy;

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    /// Unique within the set.
    pub id: String,
    pub file: String,
    pub line: Option<u32>,
    /// The reason that is shown to the agent and to approvers.
    pub reason: Option<String>,
    /// The description for readers of the set.
    pub description: Option<String>,
    /// What happens instead of a denial.
    pub remedy: Option<Remedy>,
    /// Whether the rule is in shadow mode.
    pub shadow: bool,
    /// The context attributes that the rule reads.
    pub reads: Reads,
    pub(super) scope: Scope,
    pub(super) policy: Policy,
}

impl Rule {
    /// Compiles a rule. Without an `@id` it is named by its file and its position in it, from 1.
    pub(super) fn read(policy: &Policy, file: &str, place: usize, line: Option<u32>) -> Result<Self, Vec<Fault>> {
        let fault = |message: &str| vec![Fault { message: message.to_owned(), help: None }];
        if policy.effect() == Effect::Permit {
            return Err(fault("`permit` is not supported, because grants permit calls; write `forbid ... unless`"));
        }
        let Annotations { id, reason, description, shadow, remedy } = Annotations::read(policy)?;
        let id = id.unwrap_or_else(|| default_id(file, place));
        let form = policy.to_json().map_err(|error| fault(&format!("could not read the rule: {error}")))?;
        let scope = Scope::of(policy);
        if matches!(remedy, Some(Remedy::Ask(_))) && is_about_results_only(&scope) {
            return Err(fault("a result cannot be sent for approval; ask about the call, or redact the result"));
        }
        Ok(Self {
            reads: Reads::of(&form),
            policy: policy.new_id(PolicyId::new(&id)),
            id,
            file: file.to_owned(),
            line,
            reason,
            description,
            remedy,
            shadow,
            scope,
        })
    }

    /// The source text of the rule.
    pub fn text(&self) -> String {
        self.policy.to_cedar().unwrap_or_default()
    }

    /// The reason of a denial.
    pub(super) fn refusal(&self) -> String {
        self.reason.clone().unwrap_or_else(|| format!("policy `{}` forbids this", self.id))
    }

    /// The reason of an ask.
    pub(super) fn question(&self) -> String {
        self.reason.clone().unwrap_or_else(|| format!("policy `{}` requires approval", self.id))
    }
}

/// The id of a rule without `@id`.
pub(super) fn default_id(file: &str, place: usize) -> String {
    format!("{}:{place}", file.strip_suffix(super::set::EXTENSION).unwrap_or(file))
}

fn is_about_results_only(scope: &Scope) -> bool {
    let is_result = |name: &str| name == "result" || name.starts_with("result:");
    let actions = scope.actions().filter(|actions| !actions.is_empty());
    actions.is_some_and(|actions| actions.iter().all(|action| is_result(action.id().unescaped())))
}
