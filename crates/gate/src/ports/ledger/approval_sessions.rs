//! The approval settings of sessions.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_model::approval::{Attendance, Mode, SessionName};
use toolgate_model::principal::{PrincipalId, TenantId};

use super::Mandate;
use crate::refusal::Refusal;

/// The approval settings of sessions.
#[async_trait]
pub trait ApprovalSessions: Send + Sync {
    /// Returns the defaults where nothing was set.
    async fn session_terms(
        &self,
        tenant: &TenantId,
        owner: &PrincipalId,
        name: &SessionName,
    ) -> Result<SessionTerms, Refusal>;
    async fn set_session_terms(&self, command: SetSessionTerms) -> Result<(), Refusal>;
}

/// What holds for the calls of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTerms {
    /// Which calls pass without asking; `None` is as the gate says.
    pub mode: Option<Mode>,
    /// How long its calls wait; `None` is as the gate says.
    pub wait: Option<Duration>,
    /// Whether somebody must be there; `None` is as the gate says.
    pub attendance: Option<Attendance>,
}

/// Sets what holds for the calls of a session.
#[derive(Debug, Clone)]
pub struct SetSessionTerms {
    /// Who and when, and by which right.
    pub audit: Mandate,
    /// Whose session.
    pub owner: PrincipalId,
    /// Which.
    pub name: SessionName,
    /// What holds.
    pub terms: SessionTerms,
    /// The modes before and after, as they are in effect, where they differ.
    pub mode_change: Option<(Mode, Mode)>,
}
