//! The context of a grant: an intent, a plan, a task, or none.

use serde::{Deserialize, Serialize};

use crate::text::identifiers;

identifiers! {
    /// The id of an intent, plan or task, as assigned by the coordination protocol.
    ContextId;
}

/// The context that a grant is bound to, or that a call is made in. An absent part binds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantContext {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<ContextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<ContextId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ContextId>,
}

impl GrantContext {
    /// The first part that is bound to another value than in `source`.
    pub fn first_widening(&self, source: &Self) -> Option<&'static str> {
        let differs = |own: &Option<ContextId>, source: &Option<ContextId>| matches!((own, source), (Some(own), Some(source)) if own != source);
        [
            ("intent_id", differs(&self.intent_id, &source.intent_id)),
            ("plan_id", differs(&self.plan_id, &source.plan_id)),
            ("task_id", differs(&self.task_id, &source.task_id)),
        ]
        .into_iter()
        .find_map(|(part, widens)| widens.then_some(part))
    }

    /// These bindings, completed by those of `source`.
    pub fn within(&self, source: &Self) -> Self {
        Self {
            intent_id: self.intent_id.clone().or_else(|| source.intent_id.clone()),
            plan_id: self.plan_id.clone().or_else(|| source.plan_id.clone()),
            task_id: self.task_id.clone().or_else(|| source.task_id.clone()),
        }
    }
}
