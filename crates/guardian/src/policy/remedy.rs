//! What a satisfied rule does instead of refusing: it asks a person, or takes out what it names.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::arguments::without;
use toolgate_model::guard::{Ask, PolicyRef};

use crate::detector::{Detectors, FieldSelector, redact_fields};

/// What is done about a satisfied rule, so that it need not refuse.
#[derive(Debug, Clone)]
pub enum Remedy {
    /// A person is asked.
    Ask(Asking),
    /// Something is taken out.
    Redact(Redaction),
}

/// Who is asked, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asking {
    /// Who may answer: any of these groups; empty is whoever may answer approvals.
    pub groups: Vec<String>,
    /// How many must say yes.
    pub quorum: u32,
    /// How long they have, in seconds.
    pub within: Option<u64>,
}

/// What is taken out, and where.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// Fields and detectors as they were written: what is looked for, in a word.
    pub wanted: String,
    /// Whether the secrets of the call are taken out too, by their values and wherever they stand.
    pub by_value: bool,
    /// Below which fields.
    pub fields: FieldSelector,
    /// What is looked for there; without it the fields are replaced as a whole.
    pub detectors: Option<Detectors>,
}

impl Asking {
    /// The question, in the name of a rule.
    pub(super) fn ask(&self, reason: String, policy: PolicyRef) -> Ask {
        Ask {
            reason,
            groups: self.groups.clone(),
            approvers: self.quorum,
            ttl_seconds: self.within,
            policy: Some(policy),
        }
    }
}

impl Redaction {
    /// What the content becomes; `None` where nothing is found in it.
    pub(super) fn apply(&self, content: &Value, secrets: &[&[u8]]) -> Option<Value> {
        let known: &[&[u8]] = if self.by_value { secrets } else { &[] };
        let without = without(content, known);
        let redacted = redact_fields(&without, &self.fields, self.detectors.as_ref());
        redacted
            .or(match without {
                Cow::Owned(changed) => Some(changed),
                Cow::Borrowed(_) => None,
            })
            .filter(|redacted| redacted != content)
    }
}
