//! Whose turn it is to renew which credential: one exchange at a time for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_model::id::CredentialId;

/// The turns that somebody has or waits for.
#[derive(Default)]
pub(crate) struct Renewals(Mutex<HashMap<CredentialId, Turn>>);

/// A turn: whoever holds the lock renews.
pub(crate) type Turn = Arc<tokio::sync::Mutex<()>>;

impl Renewals {
    /// The turn of this credential.
    pub(crate) fn turn(&self, credential: CredentialId) -> Turn {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What nobody waits for any more is forgotten.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(credential).or_default())
    }
}
