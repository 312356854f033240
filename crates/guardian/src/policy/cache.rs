//! The cache of slices. The key of a slice is everything that it was made from, so that a hit is never stale: every
//! change of a principal has a new revision, and every change of a tool a new definition.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_gate::ports::guardian::Subject;
use toolgate_model::guard::Hook;
use toolgate_model::principal::PrincipalId;

use super::slice::{Rulesets, Slice};

/// The maximum number of slices, and of rules in them; beyond it the cache is cleared.
const MAX_SLICES: usize = 8_192;
const MAX_RULES: usize = 200_000;

/// The cache key of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SubjectKey {
    hook: Hook,
    agent: PrincipalId,
    agent_revision: Option<u64>,
    actor: PrincipalId,
    actor_revision: u64,
    tool: Option<ToolKey>,
    is_own_message: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ToolKey {
    name: String,
    external: bool,
    /// INVARIANT: the cached slice keeps the definition alive, so that no other can have its address.
    definition: usize,
}

/// The cache.
#[derive(Default)]
pub(super) struct Slices {
    slices: HashMap<SubjectKey, Arc<Slice>>,
    rulesets: HashMap<Vec<usize>, Arc<Rulesets>>,
    kept_rules: usize,
}

impl SubjectKey {
    /// `None` if caching is useless: a tool outside the registries is a new one with every call.
    pub(super) fn of(subject: &Subject<'_>) -> Option<Self> {
        let tool = match subject.tool {
            None => None,
            Some(tool) if tool.registry.is_some() => Some(ToolKey {
                name: tool.name.to_owned(),
                external: tool.external,
                definition: Arc::as_ptr(tool.definition).addr(),
            }),
            Some(_) => return None,
        };
        Some(Self {
            hook: subject.hook,
            agent: subject.agent.clone(),
            agent_revision: subject.principal.map(|principal| principal.revision),
            actor: subject.actor.id.clone(),
            actor_revision: subject.actor.revision,
            tool,
            is_own_message: subject.is_own_message(),
        })
    }
}

impl Slices {
    pub(super) fn slice(&self, key: &SubjectKey) -> Option<Arc<Slice>> {
        self.slices.get(key).cloned()
    }

    pub(super) fn rulesets(&self, numbers: &[usize]) -> Option<Arc<Rulesets>> {
        self.rulesets.get(numbers).cloned()
    }

    pub(super) fn keep(&mut self, key: SubjectKey, slice: &Arc<Slice>) {
        if self.slices.len() >= MAX_SLICES {
            self.slices.clear();
        }
        self.slices.insert(key, Arc::clone(slice));
    }

    pub(super) fn keep_rulesets(&mut self, numbers: Vec<usize>, rulesets: &Arc<Rulesets>) {
        self.kept_rules = self.kept_rules.saturating_add(numbers.len());
        if self.kept_rules > MAX_RULES || self.rulesets.len() >= MAX_SLICES {
            self.kept_rules = numbers.len();
            self.rulesets.clear();
            self.slices.clear();
        }
        self.rulesets.insert(numbers, Arc::clone(rulesets));
    }
}
