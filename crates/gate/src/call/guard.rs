//! Guardians on the request: a denial ends it, a modification goes back through the constraints, an ask demands approval.

use serde_json::{Map, Value};

use super::Call;
use super::constrain::{Constrained, constrain_all};
use super::fit::Fit;
use crate::gate::Gate;
use crate::ports::guardian::Verdict;
use crate::refusal::Refusal;

/// A call that the guardian let pass, with its final parameters.
pub(super) struct Guarded {
    constrained: Constrained,
    /// What the guardian made of the parameters, where it changed them.
    modified: Option<Value>,
    asks: Vec<String>,
}

impl Guarded {
    pub(super) fn asks(&self) -> &[String] {
        &self.asks
    }

    pub(super) fn fits(&self) -> &[Fit] {
        self.constrained.fits()
    }

    pub(super) fn modified(&self) -> Option<&Value> {
        self.modified.as_ref()
    }

    /// The same with only those fits; `None` where there is none.
    pub(super) fn into_those(self, wanted: impl Fn(&Fit) -> bool) -> Option<Self> {
        let fits: Vec<Fit> = self.constrained.into_fits().into_iter().filter(wanted).collect();
        let constrained = Constrained::of(fits)?;
        Some(Self { constrained, ..self })
    }

    pub(super) fn into_parts(self) -> (Vec<Fit>, Option<Value>) {
        (self.constrained.into_fits(), self.modified)
    }
}

impl Gate {
    /// Asks the guardian.
    pub(super) async fn guard(&self, call: &Call, constrained: Constrained) -> Result<Guarded, Refusal> {
        let nothing = Map::new();
        let verdict = match constrained.fits().first() {
            Some(preferred) => {
                let view = preferred.candidate.view(call, call.parameters.as_object().unwrap_or(&nothing));
                self.guardian.review_request(&view).await
            }
            // INVARIANT: there is one.
            None => Verdict::Allow,
        };
        match verdict {
            Verdict::Allow => Ok(Guarded { constrained, modified: None, asks: Vec::new() }),
            Verdict::Ask { reason } => Ok(Guarded { constrained, modified: None, asks: vec![reason] }),
            Verdict::Deny(refusal) => Err(refusal),
            Verdict::Modify { parameters } => {
                let parameters = Value::Object(parameters);
                let candidates = constrained.into_fits().into_iter().map(|fit| fit.candidate).collect();
                let constrained = constrain_all(call, candidates, &parameters)?;
                Ok(Guarded { constrained, modified: Some(parameters), asks: Vec::new() })
            }
        }
    }
}
