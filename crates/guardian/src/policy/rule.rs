//! One rule of a policy set: a `forbid` of Cedar with what its annotations make of it.

use cedar_policy::{Effect, Policy, PolicyId};

use super::annotation::{Annotations, Fault};
use super::index::Scope;
use super::reads::Reads;
use super::remedy::Remedy;

/// A rule, ready for use.
#[derive(Debug)]
pub struct Rule {
    /// Its name, which no other rule of the set has.
    pub id: String,
    /// The file that it stands in.
    pub file: String,
    /// The line of that.
    pub line: Option<u32>,
    /// Why it is there, for the agent and the person.
    pub reason: Option<String>,
    /// What it is for, for whoever reads the set.
    pub description: Option<String>,
    /// What is done instead of refusing.
    pub remedy: Option<Remedy>,
    /// Whether it only watches.
    pub shadow: bool,
    /// What it reads.
    pub reads: Reads,
    pub(super) scope: Scope,
    pub(super) policy: Policy,
}

impl Rule {
    /// Reads a rule. Without an id of its own it is called by its file and its place in it, from 1.
    pub(super) fn read(policy: &Policy, file: &str, place: usize, line: Option<u32>) -> Result<Self, Vec<Fault>> {
        let fault = |message: &str| vec![Fault { message: message.to_owned(), help: None }];
        if policy.effect() == Effect::Permit {
            return Err(fault("a permit gives nothing here: grants do; write a forbid with unless"));
        }
        let Annotations { id, reason, description, shadow, remedy } = Annotations::read(policy)?;
        let id = id.unwrap_or_else(|| default_id(file, place));
        let form = policy.to_json().map_err(|error| fault(&format!("the rule cannot be read: {error}")))?;
        let scope = Scope::of(policy);
        if matches!(remedy, Some(Remedy::Ask(_))) && is_about_results_only(&scope) {
            return Err(fault("nobody can be asked about a result any more: ask on the call, or redact the result"));
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

    /// The rule as it was written.
    pub fn text(&self) -> String {
        self.policy.to_cedar().unwrap_or_default()
    }

    /// Why it refuses.
    pub(super) fn refusal(&self) -> String {
        self.reason.clone().unwrap_or_else(|| format!("policy `{}` forbids this", self.id))
    }

    /// Why it asks.
    pub(super) fn question(&self) -> String {
        self.reason.clone().unwrap_or_else(|| format!("policy `{}` asks for an approval of this", self.id))
    }
}

/// What a rule without an id is called.
pub(super) fn default_id(file: &str, place: usize) -> String {
    format!("{}:{place}", file.strip_suffix(super::set::EXTENSION).unwrap_or(file))
}

fn is_about_results_only(scope: &Scope) -> bool {
    let is_result = |name: &str| name == "result" || name.starts_with("result:");
    let actions = scope.actions().filter(|actions| !actions.is_empty());
    actions.is_some_and(|actions| actions.iter().all(|action| is_result(action.id().unescaped())))
}
