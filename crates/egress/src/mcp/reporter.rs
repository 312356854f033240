//! Progress of servers, passed on to the observer of a call: without secrets and hidden characters, and limited in number.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolgate_gate::call::UpstreamProgress;
use toolgate_model::hidden_text::revealed;
use toolgate_model::redaction::Redactor;
use toolgate_model::service::HiddenCharacters;

use super::message;

/// How often a server may report on one call.
const REPORTS: usize = 256;

/// Passes progress of one call on.
pub(crate) struct Reporter<'a> {
    sink: &'a (dyn Fn(UpstreamProgress) + Send + Sync),
    count: AtomicUsize,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(sink: &'a (dyn Fn(UpstreamProgress) + Send + Sync)) -> Self {
        Self { sink, count: AtomicUsize::new(0) }
    }

    /// Passes on what a notification says about the request of this id.
    pub(crate) fn report(&self, notification: &[u8], id: u64, redactor: &Redactor) {
        let Some((token, mut progress)) = message::progress(notification) else { return };
        if token != id || self.count.fetch_add(1, Ordering::Relaxed) >= REPORTS {
            return;
        }
        if let Some(message) = &mut progress.message {
            redactor.redact_text(message);
            if let Some(shown) = revealed(message, HiddenCharacters::Show) {
                *message = shown;
            }
        }
        (self.sink)(progress);
    }
}
