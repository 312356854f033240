//! The progress of a call, for its observer.

use serde_json::Value;
use toolgate_model::approval::Approval;
use toolgate_model::guard::PolicyRef;
use toolgate_model::id::{InvocationId, StandingApprovalId};

/// Is told how far a call has come.
pub type Observer = tokio::sync::mpsc::UnboundedSender<Progress>;

/// How far a call has come.
#[derive(Debug, Clone)]
pub enum Progress {
    /// It waits for a person.
    Asked(Box<Approval>),
    /// Earlier answers cover it.
    Covered(Vec<StandingApprovalId>),
    /// Guardians changed it.
    Modified(Box<Modified>),
    /// It is about to be carried out.
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

/// What guardians made of a call.
#[derive(Debug, Clone)]
pub struct Modified {
    /// Its parameters now.
    pub parameters: Value,
    /// Why.
    pub reason: Option<String>,
    /// The rule behind it.
    pub policy: Option<PolicyRef>,
}
