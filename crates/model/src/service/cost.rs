//! What a call of a tool costs: by the prices of a model, as its service states it, or by its estimate.

use serde_json::Value;

use super::ToolDefinition;
use crate::constraint::Cost;
use crate::spending::{CostBasis, charge};
use crate::step::{ModelStep, Step};

/// What came of a call, as far as it matters for its cost.
#[derive(Debug, Clone, Copy)]
pub enum Answered<'a> {
    /// The service has answered; `None` if nothing of it is left.
    Result(Option<&'a Value>),
    /// The service has refused the request, and done nothing.
    Refused(Option<&'a Value>),
}

impl ToolDefinition {
    fn model(&self) -> Option<&ModelStep> {
        match &self.step {
            Some(Step::Model(model)) => Some(model),
            _ => None,
        }
    }

    /// What a call with these parameters is expected to cost, for limits of single calls; `None` if nobody knows.
    pub fn expected_cost(&self, parameters: &Value) -> Option<Cost> {
        match self.model() {
            Some(model) => model.most(parameters),
            None => self.estimated_cost.or(self.stated_cost.as_ref().map(|stated| stated.at_most)),
        }
    }

    /// The most that a call with these parameters can cost, which is reserved before it is made.
    pub fn reserved_cost(&self, parameters: &Value, limit: Option<Cost>) -> Option<Cost> {
        match (self.model(), &self.stated_cost) {
            (Some(model), _) => model.most(parameters),
            (None, Some(stated)) => Some(limit.map_or(stated.at_most, |limit| limit.min(stated.at_most))),
            (None, None) => self.estimated_cost,
        }
    }

    /// What a call has cost, of which this much was reserved; `None` if it costs its estimate.
    pub fn charged_cost(
        &self,
        parameters: &Value,
        reserved: Cost,
        answered: Answered<'_>,
    ) -> Option<(Cost, CostBasis)> {
        match (self.model(), answered) {
            (Some(_), Answered::Refused(_)) => Some((Cost::from_micros(0)?, CostBasis::Stated)),
            (Some(model), Answered::Result(result)) => Some(model.charge(parameters, reserved, result)),
            (None, Answered::Result(result) | Answered::Refused(result)) => {
                Some(charge(self.stated_cost.as_ref()?, self.estimated_cost, reserved, result))
            }
        }
    }
}
