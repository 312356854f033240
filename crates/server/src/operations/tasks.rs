//! The background tasks for `/readyz`: one that ended unexpectedly counts as failed until it has worked again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolgate_gate::refusal::{Code, Refusal};

/// Which background tasks have failed.
#[derive(Debug, Default)]
pub struct Tasks(Mutex<BTreeMap<&'static str, &'static str>>);

impl Tasks {
    /// A task has ended, in this way.
    pub fn failed(&self, name: &'static str, how: &'static str) {
        self.failures().insert(name, how);
    }

    /// A task has done its work once.
    pub fn worked(&self, name: &'static str) {
        self.failures().remove(name);
    }

    /// Refused while a task has failed.
    pub fn check(&self) -> Result<(), Refusal> {
        let failures = self.failures();
        if failures.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = failures.iter().map(|(name, how)| format!("`{name}` {how}")).collect();
        let reason = format!("background tasks are not running: {}; see the log of this gate", names.join(", "));
        Err(Refusal::new(Code::Internal, reason))
    }

    fn failures(&self) -> MutexGuard<'_, BTreeMap<&'static str, &'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_failed_is_named_until_it_has_worked_again() {
        let tasks = Tasks::default();
        tasks.check().unwrap();
        tasks.failed("integrate", "panicked");
        tasks.failed("sweep", "ended");
        let reason = tasks.check().unwrap_err().reason().to_owned();
        assert!(reason.contains("`integrate` panicked, `sweep` ended"), "{reason}");
        tasks.worked("integrate");
        assert!(!tasks.check().unwrap_err().reason().contains("integrate"));
        tasks.worked("sweep");
        tasks.check().unwrap();
    }
}
