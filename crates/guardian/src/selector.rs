//! Which events a guardian is asked about: by hook, agent, tool, tier, labels and tenant. What is left empty admits
//! all; what is filled must hold, all of it. Pure.

use std::collections::BTreeSet;

use thiserror::Error;
use toolgate_gate::ports::guardian::Hooked;
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
        let labels = hooked.principal.map(|principal| &principal.labels);
        holds(&self.hooks, |hooks| hooks.contains(&hooked.event.hook))
            && holds(&self.tenants, |tenants| tenants.contains(hooked.tenant))
            && (self.agents.is_empty() || self.agents.iter().any(|agent| agent.fits(hooked.agent.as_str())))
            && holds(&self.principal_labels, |wanted| labels.is_some_and(|labels| !wanted.is_disjoint(labels)))
            && self.selects_tool(hooked)
    }

    fn selects_tool(&self, hooked: &Hooked<'_>) -> bool {
        let definition = hooked.tool.map(|tool| tool.definition);
        let is_about_one = hooked.tool.is_some() || hooked.event.tool.is_some();
        // A tool of which nothing is known is taken to write, as everywhere.
        let tier = definition.map_or(SafetyTier::Write, |definition| definition.tier());
        holds(&self.tiers, |tiers| is_about_one && tiers.contains(&tier))
            && holds(&self.tool_labels, |wanted| definition.is_some_and(|tool| !wanted.is_disjoint(&tool.labels)))
            && (self.tools.is_empty() || self.names_tool(hooked))
    }

    fn names_tool(&self, hooked: &Hooked<'_>) -> bool {
        let fits = |name: &str| self.tools.iter().any(|tool| tool.fits(name));
        match hooked.tool {
            Some(tool) => fits(&tool.service.with_tool(tool.name.as_str())),
            None => hooked.event.tool.as_deref().is_some_and(fits),
        }
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
