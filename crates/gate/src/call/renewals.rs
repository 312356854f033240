//! Serializes the renewal of credentials: one exchange at a time for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_model::id::CredentialId;

/// The locks that are held or waited for.
#[derive(Default)]
pub(crate) struct Renewals(Mutex<HashMap<CredentialId, Turn>>);

/// The holder of the lock renews.
pub(crate) type Turn = Arc<tokio::sync::Mutex<()>>;

impl Renewals {
    pub(crate) fn turn(&self, credential: CredentialId) -> Turn {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Locks that nobody waits for are dropped.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(credential).or_default())
    }
}
