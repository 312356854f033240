//! Coordinators: agents that direct an intent, within guardrails.

use serde_json::{Map, Value};

use super::guardrails::Guardrails;
use super::limits::MISSED_HEARTBEATS;
use super::text_choice::choices;
use crate::context::{ContextId, GrantContext};
use crate::id::{CoordinatorId, IntentId};
use crate::principal::{PrincipalId, TenantId};
use crate::spending::Reservation;
use crate::time::Timestamp;

choices! {
    CoordinatorKind {
        Llm = "llm",
        Human = "human",
        Composite = "composite",
        System = "system",
    }
    CoordinatorStatus {
        Registering = "registering",
        Active = "active",
        Paused = "paused",
        /// Its heartbeats stopped.
        Unresponsive = "unresponsive",
        /// Terminal.
        FailedOver = "failed_over",
        Completing = "completing",
        /// Terminal.
        Completed = "completed",
    }
}

impl CoordinatorStatus {
    /// Whether its guardrails no longer apply.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::FailedOver | Self::Completed)
    }

    /// Whether it may direct the intent.
    pub fn may_act(self) -> bool {
        !self.has_ended() && self != Self::Paused
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Coordinator {
    pub id: CoordinatorId,
    pub tenant: TenantId,
    pub intent: IntentId,
    pub agent: PrincipalId,
    /// Who set its guardrails.
    pub supervisor: PrincipalId,
    pub version: u64,
    pub status: CoordinatorStatus,
    pub role: String,
    pub kind: CoordinatorKind,
    pub guardrails: Guardrails,
    pub heartbeat_seconds: u32,
    pub last_heartbeat: Option<Timestamp>,
    pub granted_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub metadata: Map<String, Value>,
}

impl Coordinator {
    /// The status at this time, whether or not missed heartbeats have been recorded.
    pub fn status_at(&self, now: Timestamp) -> CoordinatorStatus {
        let is_beating = matches!(self.status, CoordinatorStatus::Active | CoordinatorStatus::Completing);
        if is_beating && self.lapses_at() <= now { CoordinatorStatus::Unresponsive } else { self.status }
    }

    /// When it counts as unresponsive unless it sends a heartbeat.
    pub fn lapses_at(&self) -> Timestamp {
        let seconds = u64::from(self.heartbeat_seconds.saturating_mul(MISSED_HEARTBEATS));
        self.last_heartbeat.unwrap_or(self.granted_at).plus(std::time::Duration::from_secs(seconds))
    }

    /// What each call reserves that it governs; `None` if it bounds neither calls nor costs.
    pub fn reservation(&self) -> Option<Reservation> {
        Reservation::of_coordinator(&self.id, self.guardrails.max_tool_invocations, self.guardrails.cost_limit())
    }

    /// Whether its guardrails apply to the use of a grant with this effective context: only a binding to another intent
    /// excludes it, whatever a caller claims.
    pub fn governs(&self, bound: &GrantContext) -> bool {
        let bound = bound.intent_id.as_ref().map(ContextId::as_str).map(IntentId::parse);
        !self.status.has_ended() && bound.is_none_or(|bound| bound.is_err() || bound == Ok(self.intent))
    }
}
