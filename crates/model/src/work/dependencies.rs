//! Dependencies between the tasks of an intent: no unknown ones, no cycles.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::limits::DEPENDENCIES;
use crate::id::TaskId;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DependencyError {
    #[error("a task depends on at most {DEPENDENCIES} tasks")]
    TooMany,
    #[error("the intent has no task {0}")]
    Unknown(TaskId),
    #[error("task {0} would depend on itself")]
    Cycle(TaskId),
}

/// Checks the dependencies of tasks to be created. `existing` are the tasks of the intent, which cannot depend on new
/// ones.
pub fn check_dependencies(
    existing: &BTreeSet<TaskId>,
    new: &BTreeMap<TaskId, Vec<TaskId>>,
) -> Result<(), DependencyError> {
    for depends_on in new.values() {
        if depends_on.len() > DEPENDENCIES {
            return Err(DependencyError::TooMany);
        }
        if let Some(unknown) = depends_on.iter().find(|task| !existing.contains(task) && !new.contains_key(task)) {
            return Err(DependencyError::Unknown(*unknown));
        }
    }
    // Takes away tasks whose dependencies are all taken away; what is left over is a cycle, or depends on one.
    let mut left: BTreeMap<TaskId, usize> = BTreeMap::new();
    let mut dependents: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for (task, depends_on) in new {
        let among_new: BTreeSet<_> = depends_on.iter().filter(|other| new.contains_key(other)).collect();
        left.insert(*task, among_new.len());
        for other in among_new {
            dependents.entry(*other).or_default().push(*task);
        }
    }
    let mut free: Vec<TaskId> = left.iter().filter(|(_, count)| **count == 0).map(|(task, _)| *task).collect();
    while let Some(task) = free.pop() {
        left.remove(&task);
        for dependent in dependents.remove(&task).unwrap_or_default() {
            if let Some(count) = left.get_mut(&dependent) {
                *count -= 1;
                if *count == 0 {
                    free.push(dependent);
                }
            }
        }
    }
    left.keys().next().map_or(Ok(()), |task| Err(DependencyError::Cycle(*task)))
}
