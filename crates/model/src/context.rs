//! What a grant is bound to: an intent, a plan, a task, or nothing.

use serde::{Deserialize, Serialize};

use crate::text::identifiers;

identifiers! {
    /// The id of an intent, plan or task, as the coordination protocol gives it.
    ContextId;
}

/// The binding of a grant, or the setting of a call. A part that is absent binds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantContext {
    /// The intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<ContextId>,
    /// The plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<ContextId>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ContextId>,
}

impl GrantContext {
    /// The first part that is bound to something else than in `source`.
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

    /// These bindings, and those of `source` where these leave a part open.
    pub fn within(&self, source: &Self) -> Self {
        Self {
            intent_id: self.intent_id.clone().or_else(|| source.intent_id.clone()),
            plan_id: self.plan_id.clone().or_else(|| source.plan_id.clone()),
            task_id: self.task_id.clone().or_else(|| source.task_id.clone()),
        }
    }
}
