//! The approval settings of sessions.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_model::approval::{Attendance, Mode, SessionName};
use toolgate_model::principal::{PrincipalId, TenantId};

use super::Mandate;
use crate::refusal::Refusal;

#[async_trait]
pub trait ApprovalSessions: Send + Sync {
    /// Returns the defaults if nothing was set.
    async fn session_terms(
        &self,
        tenant: &TenantId,
        owner: &PrincipalId,
        name: &SessionName,
    ) -> Result<SessionTerms, Refusal>;
    async fn set_session_terms(&self, command: SetSessionTerms) -> Result<(), Refusal>;
}

/// The approval settings of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTerms {
    /// `None` is the default of the gate.
    pub mode: Option<Mode>,
    /// How long its calls wait; `None` is the default of the gate.
    pub wait: Option<Duration>,
    /// Whether an approver must be connected; `None` is the default of the gate.
    pub attendance: Option<Attendance>,
}

#[derive(Debug, Clone)]
pub struct SetSessionTerms {
    pub audit: Mandate,
    /// The owner of the session.
    pub owner: PrincipalId,
    pub name: SessionName,
    pub terms: SessionTerms,
    /// The effective modes before and after, if they differ.
    pub mode_change: Option<(Mode, Mode)>,
}
