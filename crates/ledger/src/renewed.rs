//! The version to which each credential has renewed itself. A renewal changes nobody's authority, so cached data of all
//! tenants stays valid; cached data of this credential from before its renewal is not used any more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolgate_model::id::CredentialId;

/// The versions, by credential.
#[derive(Default)]
pub(crate) struct Renewed(Mutex<HashMap<CredentialId, u32>>);

impl Renewed {
    /// Records that a renewal to this version is about to be made. Recorded before, so that no read of the previous
    /// version can be cached after it; if the renewal fails, later reads merely go to the ledger.
    pub(crate) fn note(&self, credential: CredentialId, version: u32) {
        let mut versions = self.versions();
        let known = versions.entry(credential).or_default();
        *known = version.max(*known);
    }

    /// Whether cached data of a credential is from before a renewal.
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
