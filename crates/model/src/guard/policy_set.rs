//! Stored policy sets: the texts and their version.

use crate::principal::PrincipalId;
use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Without a directory.
    pub name: String,
    pub text: String,
}

/// An immutable version of a tenant's policy set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySetVersion {
    /// Counted from 1.
    pub version: u64,
    /// Ordered by name.
    pub files: Vec<PolicyFile>,
    /// SHA-256 of the canonical files, in lower case hexadecimal.
    pub digest: String,
    /// A note of the principal that applied it.
    pub note: Option<String>,
    pub applied_by: PrincipalId,
    pub created_at: Timestamp,
}
