//! Which version of its material each credential has renewed itself to. A renewal changes nobody's authority, so that what is
//! remembered of all tenants stays; what is remembered of this credential before its renewal is not used any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolgate_model::id::CredentialId;

/// The versions, by credential.
#[derive(Default)]
pub(crate) struct Renewed(Mutex<HashMap<CredentialId, u32>>);

impl Renewed {
    /// A renewal to this version is about to be made. Noted before it is, so that no read of the version before can be
    /// remembered after it; one that fails only has later reads go to the ledger.
    pub(crate) fn note(&self, credential: CredentialId, version: u32) {
        let mut versions = self.versions();
        let known = versions.entry(credential).or_default();
        *known = version.max(*known);
    }

    /// Whether what is known of a credential is from before a renewal.
    pub(crate) fn is_before(&self, credential: CredentialId, version: u32) -> bool {
        self.versions().get(&credential).is_some_and(|renewed| version < *renewed)
    }

    /// Whether any of these is.
    pub(crate) fn any_before(&self, mut known: impl Iterator<Item = (CredentialId, u32)>) -> bool {
        let versions = self.versions();
        !versions.is_empty() && known.any(|(id, version)| versions.get(&id).is_some_and(|renewed| version < *renewed))
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<CredentialId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
