//! The progress of a call, for its observer.

use serde_json::Value;
use toolgate_model::approval::Approval;
use toolgate_model::guard::PolicyRef;
use toolgate_model::id::{InvocationId, StandingApprovalId};

/// Receives the progress of a call.
pub type Observer = tokio::sync::mpsc::UnboundedSender<Progress>;

#[derive(Debug, Clone)]
pub enum Progress {
    /// It waits for an approver.
    Asked(Box<Approval>),
    /// Standing approvals cover it.
    Covered(Vec<StandingApprovalId>),
    /// Guardians modified it.
    Modified(Box<Modified>),
    /// It is about to be executed.
    Admitted(InvocationId),
    /// The server that carries it out says how far it is.
    Upstream(Box<UpstreamProgress>),
}

/// What a server says about its progress. Untrusted content, without any secret.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamProgress {
    /// Grows.
    pub progress: f64,
    /// What it grows to.
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// A modification by guardians.
#[derive(Debug, Clone)]
pub struct Modified {
    /// The modified parameters.
    pub parameters: Value,
    pub reason: Option<String>,
    pub policy: Option<PolicyRef>,
}
