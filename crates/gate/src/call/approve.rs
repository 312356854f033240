//! A person's answer, where something asks for one. It covers exactly what was shown: tool, canonical arguments, caller.

use serde_json::{Map, Value, json};
use toolgate_model::canonical::to_canonical;
use toolgate_model::descriptor::ApprovalNeed;
use toolgate_model::merkle::sha256;

use super::Call;
use super::fit::Fit;
use super::guard::Guarded;
use crate::gate::Gate;
use crate::ports::approver::Ask;
use crate::refusal::Refusal;

/// A call that needs nobody's answer any more.
pub(super) struct Approved {
    fits: Vec<Fit>,
    modified: Option<Value>,
}

impl Approved {
    pub(super) fn into_parts(self) -> (Vec<Fit>, Option<Value>) {
        (self.fits, self.modified)
    }
}

impl Gate {
    /// Waits for a person where something asks for one.
    pub(super) async fn approve(&self, call: &Call, guarded: Guarded) -> Result<Approved, Refusal> {
        let reasons = reasons(&guarded);
        if let (false, Some(fit)) = (reasons.is_empty(), guarded.fits().first()) {
            let nothing = Map::new();
            let parameters = guarded.modified().unwrap_or(&call.parameters);
            let digest = digest(call, fit, parameters);
            let view = fit.candidate.view(call, parameters.as_object().unwrap_or(&nothing));
            self.approver.approve(Ask { call: view, reasons: &reasons, digest: &digest }).await?;
        }
        let (fits, modified) = guarded.into_parts();
        Ok(Approved { fits, modified })
    }
}

/// Why a person must be asked: the guardian says so, or the tool's definition.
fn reasons(guarded: &Guarded) -> Vec<String> {
    let mut reasons = guarded.asks().to_vec();
    let tool = guarded.fits().first().map(|fit| &fit.candidate.tool);
    if tool.is_some_and(|tool| tool.definition.approval == Some(ApprovalNeed::Always)) {
        reasons.push("the tool's definition says that every call needs approval".to_owned());
    }
    reasons
}

fn digest(call: &Call, fit: &Fit, parameters: &Value) -> String {
    let tool = &fit.candidate.tool;
    let covered = json!({
        "service": tool.service, "tool": tool.name, "version": tool.version,
        "arguments": parameters, "agent": call.agent, "actor": call.caller.id(),
    });
    sha256(&to_canonical(&covered)).to_hex()
}
