//! What a task requires: as options, and what an agent lacks of it as text.

use toolgate_api::work::objects::MissingTool;
use toolgate_api::work::tasks::TaskCheck;
use toolgate_model::credential::ServiceName;
use toolgate_model::scope::ScopeSet;
use toolgate_model::work::ToolRequirement;

use crate::output::clean;

/// Parses `SERVICE:SCOPE,SCOPE`.
pub(super) fn parse_requirement(text: &str) -> Result<(ServiceName, ScopeSet), String> {
    let advice = "use SERVICE:SCOPE,SCOPE, such as stripe:charges.read,charges.create";
    // Names of services can contain colons, scopes as well; the last one separates them.
    let (service, scopes) = text.rsplit_once(':').ok_or(advice)?;
    let service = ServiceName::parse(service).map_err(|error| format!("the service {error}; {advice}"))?;
    let scopes: Vec<&str> = scopes.split(',').collect();
    let scopes = serde_json::to_value(scopes).and_then(serde_json::from_value);
    Ok((service, scopes.map_err(|error| format!("the scopes: {error}; {advice}"))?))
}

pub(super) fn requirement((service, scopes): (ServiceName, ScopeSet), required: bool) -> ToolRequirement {
    ToolRequirement { service, scopes, required }
}

/// Whether an agent could claim a task, and what it lacks.
pub(super) fn verdict(check: &TaskCheck) -> String {
    let optional = missing(&check.optional_missing);
    if check.allowed {
        return format!("{} has the tools that {} requires.{optional}", check.agent_id, check.task_id);
    }
    format!("{} lacks {}.{optional}", check.agent_id, listed(&check.missing))
}

/// A sentence about optional requirements; empty if nothing is missing.
pub(super) fn missing(optional: &[MissingTool]) -> String {
    if optional.is_empty() { String::new() } else { format!(" Optional, and missing: {}.", listed(optional)) }
}

fn listed(missing: &[MissingTool]) -> String {
    let one = |missing: &MissingTool| {
        let scopes: Vec<String> = missing.scopes.iter().map(ToString::to_string).collect();
        clean(&format!("{} ({})", missing.service, scopes.join(", ")))
    };
    missing.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_a_service_and_its_scopes() {
        let (service, scopes) = parse_requirement("stripe:charges.read,charges.create").unwrap();
        assert_eq!(service.as_str(), "stripe");
        assert_eq!(scopes.iter().count(), 2);
        for bad in ["", "stripe", "stripe:", ":a", "a b:c", "stripe:a,,b"] {
            assert!(parse_requirement(bad).is_err(), "{bad}");
        }
    }
}
