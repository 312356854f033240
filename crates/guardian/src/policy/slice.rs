//! The part of a policy set that concerns one kind of event: the rules with a matching scope, with the entities and the
//! shape of the arguments prepared for Cedar.

use std::collections::BTreeMap;
use std::sync::Arc;

use cedar_policy::{Entities, EntityUid, PolicyId, PolicySet};
use toolgate_gate::ports::guardian::Subject;
use toolgate_model::guard::{Hook, PolicyRef};
use toolgate_model::service::ToolDefinition;

use super::entities::{EntityTypes, EventEntities};
use super::facts::{ContextDetectors, LastAddress};
use super::reads::Reads;
use super::remedy::Remedy;
use super::rule::Rule;
use super::shape::Shape;

/// The rules for an agent, an actor and a tool at one hook, and everything that is known before the event.
pub struct Slice {
    pub(super) version: Arc<str>,
    pub(super) rules: Arc<Rulesets>,
    pub(super) stage: Result<Stage, String>,
    /// The cache key contains its address, which is only sound while the definition is alive.
    _definition: Option<Arc<ToolDefinition>>,
}

/// What Cedar needs besides the rules and the context.
pub(super) struct Stage {
    pub(super) hook: Hook,
    pub(super) entities: Entities,
    pub(super) principal: EntityUid,
    pub(super) action: EntityUid,
    pub(super) resource: EntityUid,
    pub(super) actor: EntityUid,
    pub(super) shape: Shape,
    pub(super) context_detectors: ContextDetectors,
    pub(super) last_address: LastAddress,
}

/// The enforced rules and the rules in shadow mode.
#[derive(Default)]
pub(super) struct Rulesets {
    pub(super) enforced: Ruleset,
    pub(super) shadow: Ruleset,
}

/// Some rules, compiled for Cedar.
#[derive(Default)]
pub(super) struct Ruleset {
    pub(super) policies: PolicySet,
    pub(super) rules: BTreeMap<PolicyId, Arc<Rule>>,
    pub(super) reads: Reads,
    /// Whether a rule searches for the values of the call's secrets.
    pub(super) looks_for_secrets: bool,
}

/// What must be fetched before a slice can be evaluated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// The labels that earlier calls left on the conversation.
    pub marks: bool,
    /// The number and the cost of the agent's calls so far.
    pub totals: bool,
}

impl Slice {
    pub(super) fn new(
        version: &Arc<str>,
        found: Result<(EventEntities, Arc<Rulesets>), String>,
        types: &EntityTypes,
        subject: &Subject<'_>,
        context_detectors: &ContextDetectors,
    ) -> Self {
        let (rules, stage) = match found {
            Ok((event_entities, rules)) => {
                (Arc::clone(&rules), Stage::set(types, subject, event_entities, &rules, context_detectors))
            }
            Err(fault) => (Arc::default(), Err(fault)),
        };
        let definition = subject.tool.map(|tool| Arc::clone(tool.definition));
        Self { version: Arc::clone(version), rules, stage, _definition: definition }
    }

    /// Whether no rule concerns the event, so that it is allowed.
    pub fn is_empty(&self) -> bool {
        self.stage.is_ok() && self.rules.enforced.is_empty() && self.rules.shadow.is_empty()
    }

    /// Whether a rule searches for the values of the call's secrets.
    pub fn looks_for_secrets(&self) -> bool {
        self.rules.enforced.looks_for_secrets || self.rules.shadow.looks_for_secrets
    }

    /// What must be fetched first.
    pub fn needs(&self) -> Needs {
        let Rulesets { enforced, shadow } = &*self.rules;
        let reads = |names: &[&str]| enforced.reads.any_of(names) || shadow.reads.any_of(names);
        Needs { marks: reads(&["marks"]), totals: reads(&["spent", "calls"]) }
    }

    /// The reference to a rule of this slice in the decision record.
    pub(super) fn name(&self, rule: &Rule) -> PolicyRef {
        PolicyRef { id: rule.id.clone(), version: self.version.to_string() }
    }
}

impl Stage {
    fn set(
        types: &EntityTypes,
        subject: &Subject<'_>,
        event_entities: EventEntities,
        rules: &Rulesets,
        context_detectors: &ContextDetectors,
    ) -> Result<Self, String> {
        let is_idle = rules.enforced.is_empty() && rules.shadow.is_empty();
        let entities = if is_idle { Vec::new() } else { types.entities(subject, &event_entities)? };
        let shape = match subject.tool {
            Some(tool) if !is_idle && !tool.external => Shape::of_parameters(tool.definition.parameters.as_ref()),
            _ => Shape::of_parameters(None),
        };
        Ok(Self {
            hook: subject.hook,
            entities: Entities::from_entities(entities, None).map_err(|error| error.to_string())?,
            principal: event_entities.principal.uid,
            action: event_entities.action.uid,
            resource: event_entities.resource.uid,
            actor: event_entities.actor,
            shape,
            context_detectors: context_detectors.clone(),
            last_address: LastAddress::default(),
        })
    }
}

impl Rulesets {
    pub(super) fn of<'a>(rules: impl Iterator<Item = &'a Arc<Rule>>) -> Result<Self, String> {
        let (shadow, enforced): (Vec<_>, Vec<_>) = rules.partition(|rule| rule.shadow);
        Ok(Self { enforced: Ruleset::of(enforced.into_iter())?, shadow: Ruleset::of(shadow.into_iter())? })
    }
}

impl Ruleset {
    pub(super) fn of<'a>(rules: impl Iterator<Item = &'a Arc<Rule>>) -> Result<Self, String> {
        let mut set = Self::default();
        for rule in rules {
            set.policies.add(rule.policy.clone()).map_err(|error| error.to_string())?;
            set.reads.add(&rule.reads);
            set.looks_for_secrets |= matches!(&rule.remedy, Some(Remedy::Redact(redaction)) if redaction.by_value);
            set.rules.insert(rule.policy.id().clone(), Arc::clone(rule));
        }
        Ok(set)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}
