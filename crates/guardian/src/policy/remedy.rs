//! What a matching rule does instead of denying: it asks for an approval, or redacts.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_model::arguments::without;
use toolgate_model::guard::{Ask, PolicyRef};

use crate::detector::{Detectors, FieldSelector, redact_fields};

/// The alternative to a denial.
#[derive(Debug, Clone)]
pub enum Remedy {
    Ask(Asking),
    Redact(Redaction),
}

/// Who must approve, and within which time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asking {
    /// Groups whose members may decide; if empty, all approvers may.
    pub groups: Vec<String>,
    /// The number of required approvals.
    pub quorum: u32,
    /// The timeout in seconds.
    pub within: Option<u64>,
}

/// What is redacted, and where.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// Fields and detectors as written in the rule.
    pub wanted: String,
    /// Whether the values of the call's secrets are redacted as well, wherever they occur.
    pub by_value: bool,
    /// The fields to search.
    pub fields: FieldSelector,
    /// What to look for in the fields; without it the fields are replaced as a whole.
    pub detectors: Option<Detectors>,
}

impl Asking {
    /// The approval question in the name of a rule.
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
    /// The redacted content; `None` if nothing is found.
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
