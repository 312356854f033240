//! Selects the events that a guardian is asked about: by hook, agent, tool, tier, labels and tenant. An empty criterion
//! matches everything; all others must match. Pure.

use std::collections::BTreeSet;

use thiserror::Error;
use toolgate_gate::ports::guardian::{Hooked, HookedTool, Subject};
use toolgate_model::descriptor::SafetyTier;
use toolgate_model::guard::Hook;
use toolgate_model::principal::TenantId;
use toolgate_model::text::Label;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    pub hooks: BTreeSet<Hook>,
    pub agents: Vec<NamePattern>,
    /// Qualified names.
    pub tools: Vec<NamePattern>,
    pub tiers: BTreeSet<SafetyTier>,
    /// Matches a tool with at least one of these labels.
    pub tool_labels: BTreeSet<Label>,
    /// Matches an agent with at least one of these labels.
    pub principal_labels: BTreeSet<Label>,
    pub tenants: BTreeSet<TenantId>,
}

impl Selector {
    pub fn selects(&self, hooked: &Hooked<'_>) -> bool {
        self.selects_subject(hooked.tenant, &hooked.subject(), hooked.event.tool.as_deref())
    }

    /// The same without the event. If it is not about a tool of the catalog, `named` is the tool that it names.
    pub(crate) fn selects_subject(&self, tenant: &TenantId, subject: &Subject<'_>, named: Option<&str>) -> bool {
        let labels = subject.principal.map(|principal| &principal.labels);
        holds(&self.hooks, |hooks| hooks.contains(&subject.hook))
            && holds(&self.tenants, |tenants| tenants.contains(tenant))
            && (self.agents.is_empty() || self.agents.iter().any(|agent| agent.fits(subject.agent.as_str())))
            && holds(&self.principal_labels, |wanted| labels.is_some_and(|labels| !wanted.is_disjoint(labels)))
            && self.selects_tool(subject.tool, named)
    }

    fn selects_tool(&self, tool: Option<HookedTool<'_>>, named: Option<&str>) -> bool {
        let definition = tool.map(|tool| tool.definition);
        let name = tool.map(|tool| tool.name).or(named);
        // An unknown tool counts as writing, as everywhere.
        let tier = definition.map_or(SafetyTier::Write, |definition| definition.tier());
        holds(&self.tiers, |tiers| name.is_some() && tiers.contains(&tier))
            && holds(&self.tool_labels, |wanted| definition.is_some_and(|tool| !wanted.is_disjoint(&tool.labels)))
            && (self.tools.is_empty() || name.is_some_and(|name| self.tools.iter().any(|tool| tool.fits(name))))
    }
}

fn holds<T>(wanted: &BTreeSet<T>, condition: impl FnOnce(&BTreeSet<T>) -> bool) -> bool {
    wanted.is_empty() || condition(wanted)
}

/// A name, or a prefix of names (`stripe.*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    is_prefix: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    #[error("the name is empty; use a name, or a prefix followed by *")]
    Empty,
    #[error("`{0}` has a * before its end; only a prefix can be matched, such as stripe.*")]
    Star(String),
}

impl NamePattern {
    /// Parses a name, or a prefix followed by `*`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (name, is_prefix) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        if name.contains('*') {
            return Err(PatternError::Star(text.to_owned()));
        }
        if name.is_empty() && !is_prefix {
            return Err(PatternError::Empty);
        }
        Ok(Self { text: name.to_owned(), is_prefix })
    }

    pub fn fits(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&self.text) } else { name == self.text }
    }
}
