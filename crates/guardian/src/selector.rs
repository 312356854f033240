//! Which events a guardian is asked about: by hook, agent, tool, tier, labels and tenant. What is left empty admits
//! all; what is filled must hold, all of it. Pure.

use std::collections::BTreeSet;

use thiserror::Error;
use toolgate_gate::ports::guardian::{Hooked, HookedTool, Subject};
use toolgate_model::descriptor::SafetyTier;
use toolgate_model::guard::Hook;
use toolgate_model::principal::TenantId;
use toolgate_model::text::Label;

#[cfg(test)]
mod tests;

/// Some events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Those at one of these points.
    pub hooks: BTreeSet<Hook>,
    /// Those of one of these agents.
    pub agents: Vec<NamePattern>,
    /// Those about one of these tools, named with their service.
    pub tools: Vec<NamePattern>,
    /// Those about a tool of one of these tiers.
    pub tiers: BTreeSet<SafetyTier>,
    /// Those about a tool that has one of these labels.
    pub tool_labels: BTreeSet<Label>,
    /// Those of an agent that has one of these labels.
    pub principal_labels: BTreeSet<Label>,
    /// Those in one of these tenants.
    pub tenants: BTreeSet<TenantId>,
}

impl Selector {
    /// Whether this event is among them.
    pub fn selects(&self, hooked: &Hooked<'_>) -> bool {
        self.selects_subject(hooked.tenant, &hooked.subject(), hooked.event.tool.as_deref())
    }

    /// The same by what decides it. Where the event is not about a tool of the catalog, `named` is the one that it names.
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
        // A tool of which nothing is known is taken to write, as everywhere.
        let tier = definition.map_or(SafetyTier::Write, |definition| definition.tier());
        holds(&self.tiers, |tiers| name.is_some() && tiers.contains(&tier))
            && holds(&self.tool_labels, |wanted| definition.is_some_and(|tool| !wanted.is_disjoint(&tool.labels)))
            && (self.tools.is_empty() || name.is_some_and(|name| self.tools.iter().any(|tool| tool.fits(name))))
    }
}

fn holds<T>(wanted: &BTreeSet<T>, condition: impl FnOnce(&BTreeSet<T>) -> bool) -> bool {
    wanted.is_empty() || condition(wanted)
}

/// A name, or all names that begin in one way (`stripe.*`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
    is_prefix: bool,
}

/// Why a text is no pattern of names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// There is nothing.
    #[error("a name is missing; write one, or the beginning of some followed by *")]
    Empty,
    /// A star with something behind it.
    #[error("`{0}` has a * before its end; only the beginning of names can be given, like stripe.*")]
    Star(String),
}

impl NamePattern {
    /// Reads a name, or the beginning of some followed by `*`.
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

    /// Whether this name is meant.
    pub fn fits(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&self.text) } else { name == self.text }
    }
}
