//! What a task may become: one table.

use thiserror::Error;

use super::text_choice::choices;

choices! {
    TaskStatus {
        /// Something that it depends on has not ended yet.
        Pending = "pending",
        Ready = "ready",
        Claimed = "claimed",
        Running = "running",
        Blocked = "blocked",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Skipped = "skipped",
    }
}

/// A change of status that the table does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a task that is {from} cannot become {to}; it can become {}", list(.from.next()))]
pub struct TransitionError {
    pub from: TaskStatus,
    pub to: TaskStatus,
}

impl TaskStatus {
    /// What it can become. `pending` becomes `ready` by itself, and `failed` becomes `ready` only while attempts are left.
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Ready, Self::Cancelled, Self::Skipped],
            Self::Ready => &[Self::Claimed, Self::Cancelled, Self::Skipped],
            Self::Claimed => &[Self::Running, Self::Ready, Self::Completed, Self::Failed, Self::Cancelled],
            Self::Running => &[Self::Blocked, Self::Completed, Self::Failed, Self::Cancelled],
            Self::Blocked => &[Self::Running, Self::Failed, Self::Cancelled],
            Self::Failed => &[Self::Ready],
            Self::Completed | Self::Cancelled | Self::Skipped => &[],
        }
    }

    pub fn require(self, to: Self) -> Result<(), TransitionError> {
        if self.next().contains(&to) { Ok(()) } else { Err(TransitionError { from: self, to }) }
    }

    /// Whether nobody works on it any more. A failed task may be tried again.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }

    /// Whether an agent has it.
    pub fn is_taken(self) -> bool {
        matches!(self, Self::Claimed | Self::Running | Self::Blocked)
    }

    /// Whether it lets the tasks that depend on it begin.
    pub fn satisfies(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

fn list(statuses: &[TaskStatus]) -> String {
    match statuses {
        [] => "nothing else".to_owned(),
        some => some.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", "),
    }
}
