//! The principals and tools of a call as Cedar entities. They change only when a principal or a tool does, so they are
//! cached.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use cedar_policy::{Entity, EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use toolgate_gate::ports::guardian::{HookedTool, Subject};
use toolgate_model::descriptor::Egress;
use toolgate_model::guard::Hook;
use toolgate_model::principal::{Principal, PrincipalId};

use super::index::Place;
use super::schema::EXTERNAL;

/// The entity types of the schema, parsed once.
#[derive(Debug)]
pub(super) struct EntityTypes {
    principal: EntityTypeName,
    label: EntityTypeName,
    tool: EntityTypeName,
    service: EntityTypeName,
    action: EntityTypeName,
    hook: EntityTypeName,
}

pub(super) struct EventEntities {
    pub(super) principal: Place,
    pub(super) action: Place,
    pub(super) resource: Place,
    pub(super) actor: EntityUid,
}

impl EntityTypes {
    pub(super) fn new() -> Result<Self, String> {
        let kind = |name: &str| EntityTypeName::from_str(name).map_err(|error| error.to_string());
        Ok(Self {
            principal: kind("Principal")?,
            label: kind("Label")?,
            tool: kind("Tool")?,
            service: kind("Service")?,
            action: kind("Action")?,
            hook: kind("Hook")?,
        })
    }

    /// The principal, action and resource of an event.
    pub(super) fn event_entities(&self, subject: &Subject<'_>) -> Result<EventEntities, String> {
        let principal = self.principal(subject.agent, known_agent(subject));
        let actor = uid(&self.principal, subject.actor.id.as_str());
        let (group, of, resource) = match (subject.hook, subject.tool) {
            (Hook::ToolCallRequest, Some(tool)) => ("call", called(&tool), self.tool(&tool)),
            (Hook::ToolCallResult, Some(tool)) => ("result", called(&tool), self.tool(&tool)),
            (Hook::ToolCallRequest | Hook::ToolCallResult, None) => {
                return Err("the event concerns a tool and does not name it".to_owned());
            }
            (hook, _) => {
                let place = Place { uid: uid(&self.hook, hook.as_str()), above: HashSet::new() };
                ("hook", hook.as_str(), place)
            }
        };
        let action = Place {
            uid: uid(&self.action, &format!("{group}:{of}")),
            above: HashSet::from([uid(&self.action, group)]),
        };
        Ok(EventEntities { principal, action, resource, actor })
    }

    /// The same entities with all their attributes.
    pub(super) fn entities(
        &self,
        subject: &Subject<'_>,
        event_entities: &EventEntities,
    ) -> Result<Vec<Entity>, String> {
        let action = Entity::new_no_attrs(event_entities.action.uid.clone(), event_entities.action.above.clone());
        let agent = entity(&event_entities.principal, principal_attributes(subject.agent, known_agent(subject)))?;
        let resource = match subject.tool {
            Some(tool) => entity(&event_entities.resource, tool_attributes(&tool))?,
            None => Entity::new_no_attrs(event_entities.resource.uid.clone(), HashSet::new()),
        };
        let mut entities = vec![action, agent, resource];
        if event_entities.actor != event_entities.principal.uid {
            let place = self.principal(&subject.actor.id, Some(subject.actor));
            entities.push(entity(&place, principal_attributes(&subject.actor.id, Some(subject.actor)))?);
        }
        Ok(entities)
    }

    fn principal(&self, id: &PrincipalId, principal: Option<&Principal>) -> Place {
        let labels = principal.into_iter().flat_map(|principal| &principal.labels);
        Place {
            uid: uid(&self.principal, id.as_str()),
            above: labels.map(|label| uid(&self.label, label.as_str())).collect(),
        }
    }

    fn tool(&self, tool: &HookedTool<'_>) -> Place {
        let labels = tool.definition.labels.iter().map(|label| uid(&self.label, label.as_str()));
        Place {
            uid: uid(&self.tool, tool.name),
            above: labels.chain([uid(&self.service, tool.service.as_str())]).collect(),
        }
    }
}

/// A caller that acts for itself is known, even if it is not an agent of the gate.
fn known_agent<'a>(subject: &Subject<'a>) -> Option<&'a Principal> {
    subject.principal.or_else(|| (subject.actor.id == *subject.agent).then_some(subject.actor))
}

/// The name of a tool in actions: all external tools share one.
fn called<'a>(tool: &HookedTool<'a>) -> &'a str {
    if tool.external { EXTERNAL } else { tool.name }
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn entity(place: &Place, attributes: Vec<(&str, RestrictedExpression)>) -> Result<Entity, String> {
    let attributes: HashMap<_, _> = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Entity::new(place.uid.clone(), attributes, place.above.clone()).map_err(|error| error.to_string())
}

fn principal_attributes<'a>(id: &PrincipalId, principal: Option<&Principal>) -> Vec<(&'a str, RestrictedExpression)> {
    let labels = principal.into_iter().flat_map(|principal| &principal.labels).map(|label| label.as_str());
    let scopes = principal.into_iter().flat_map(|principal| principal.scopes.iter());
    vec![
        ("id", text(id.as_str())),
        ("kind", text(principal.map_or("unknown", |principal| principal.kind.as_str()))),
        ("labels", texts(labels)),
        ("scopes", texts(scopes)),
    ]
}

fn tool_attributes<'a>(tool: &HookedTool<'_>) -> Vec<(&'a str, RestrictedExpression)> {
    let definition = tool.definition;
    vec![
        ("name", text(tool.name)),
        ("service", text(tool.service.as_str())),
        ("tier", text(definition.tier().as_str())),
        ("egress", text(definition.egress.unwrap_or(Egress::HostMediated).as_str())),
        ("labels", texts(definition.labels.iter().map(|label| label.as_str()))),
        ("idempotent", RestrictedExpression::new_bool(definition.idempotent)),
        ("external", RestrictedExpression::new_bool(tool.external)),
    ]
}

pub(super) fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

pub(super) fn texts<'a>(all: impl Iterator<Item = &'a str>) -> RestrictedExpression {
    RestrictedExpression::new_set(all.map(text))
}
