//! Policy sets as they are kept: the texts, and which version of them it is.

use crate::principal::PrincipalId;
use crate::time::Timestamp;

/// One file of a policy set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Its name, without a folder.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// A version of a tenant's policy set. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySetVersion {
    /// Its number: the first is 1.
    pub version: u64,
    /// Its files, in the order of their names.
    pub files: Vec<PolicyFile>,
    /// SHA-256 of the canonical files, in lower case hexadecimal.
    pub digest: String,
    /// What whoever applied it says about it.
    pub note: Option<String>,
    /// Who applied it.
    pub applied_by: PrincipalId,
    /// When it was applied.
    pub created_at: Timestamp,
}
