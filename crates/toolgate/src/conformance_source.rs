//! The tools of the conformance endpoints: they do nothing, and succeed or fail as the caller of the endpoint wants. Only
//! a gate that serves these endpoints has this source.

use async_trait::async_trait;
use serde_json::json;
use toolgate_gate::Action;
use toolgate_gate::call::Admitted;
use toolgate_gate::ports::source::{Access, Execution, FailureKind, ServiceResponse, Source, SourceFailure};

pub struct ConformanceSource;

#[async_trait]
impl Source for ConformanceSource {
    fn executes(&self, action: Action) -> bool {
        matches!(action, Action::Conformance { .. })
    }

    async fn execute(&self, call: &Admitted, _: Option<Access<'_>>) -> Execution {
        if call.action() != (Action::Conformance { fails: true }) {
            return Ok(ServiceResponse::said(json!({})));
        }
        let failure = SourceFailure::not_sent(FailureKind::Service, "the tool was asked to fail");
        Err(SourceFailure { sent: true, ..failure })
    }
}
