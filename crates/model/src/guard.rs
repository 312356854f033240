//! Guarding: the hooks at which guardians are asked, the events, the verdicts and the decision record. Independent of
//! any protocol: dialects convert from and to these types.

pub use self::content::{Content, File, Finding, Part, PartBody};
pub use self::decision::{Dialect, GuardianRecord, HookDecision, Outcome, TraceIds, WouldBe};
pub use self::event::{AgentRef, HookEvent};
pub use self::failure::FailureClass;
pub use self::hook::{Direction, Hook, Role};
pub use self::policy_set::{PolicyFile, PolicySetVersion};
pub use self::selector::{GuardMode, OnFailure};
pub use self::verdict::{Ask, Denial, DenialCause, PolicyRef, Verdict, VerdictKind};

mod content;
mod decision;
mod event;
mod failure;
mod hook;
mod policy_set;
mod selector;
mod verdict;

#[cfg(test)]
mod tests;
