//! The registered service of a mount: exactly what can be used of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conversion::presented;
use super::{Capability, Mount, MountAddress, MountTool, ToolState, convert};
use crate::a2a;
use crate::descriptor::{Egress, SafetyTier, SourceKind};
use crate::scope::Scope;
use crate::service::reading::refuse;
use crate::service::{
    DefinitionError, McpMapping, McpMethod, ServiceDefinition, ServiceVersion, ToolDefinition, ToolName,
};

/// The one version of the service of a mount. What is accepted later takes its place.
pub fn version() -> ServiceVersion {
    // INVARIANT: a digit is a version.
    #[expect(clippy::unwrap_used, reason = "the text is constant, and a test reads it")]
    ServiceVersion::parse("1").unwrap()
}

/// The service of a mount: the tools that are accepted, by their pinned definitions, and what the gate forwards of the rest
/// of the protocol. Nothing as long as the server is not accepted, or if another one seems to have taken its place.
pub fn service_definition(mount: &Mount, tools: &[MountTool]) -> Result<ServiceDefinition, DefinitionError> {
    if let MountAddress::Agent { .. } = &mount.address {
        let accepted = mount.pinned.as_ref().filter(|_| !mount.is_server_quarantined());
        let card = accepted.and_then(|server| server.card.as_ref()).unwrap_or(&Value::Null);
        return a2a::service_definition(mount.name.clone(), version(), card);
    }
    let mut usable = BTreeMap::new();
    if let Some(server) = mount.pinned.as_ref().filter(|_| !mount.is_replaced()) {
        for capability in &server.capabilities {
            for (name, tool) in forwarded(*capability, mount)? {
                usable.insert(name, tool);
            }
        }
        for tool in tools.iter().filter(|tool| tool.state == ToolState::Accepted) {
            let Some(pinned) = &tool.pinned else { continue };
            let mut definition = convert(&tool.name, &tool.upstream, pinned, mount.trusted, mount.hidden_characters)?;
            definition.egress = egress(mount);
            usable.insert(tool.name.clone(), definition);
        }
    }
    let base_url = match &mount.address {
        MountAddress::Http { url } | MountAddress::Agent { url } => Some(url.clone()),
        MountAddress::Stdio => None,
    };
    let description = mount.pinned.as_ref().map(|server| {
        let name = presented(server.title.as_ref().unwrap_or(&server.name), mount.hidden_characters);
        format!("MCP server `{}`", name.replace(['\n', '\t'], " "))
    });
    Ok(ServiceDefinition {
        service: mount.name.clone(),
        version: version(),
        description,
        source: SourceKind::Mcp,
        base_url,
        tools: usable,
    })
}

fn egress(mount: &Mount) -> Option<Egress> {
    match mount.address {
        MountAddress::Http { .. } | MountAddress::Agent { .. } => None,
        // A process reaches the network in its own way.
        MountAddress::Stdio => Some(Egress::HostOwned),
    }
}

/// The tools by which a part of the protocol is forwarded.
fn forwarded(capability: Capability, mount: &Mount) -> Result<Vec<(ToolName, ToolDefinition)>, DefinitionError> {
    let cursor = json!({"cursor": {"type": "string"}});
    let named = json!({"name": {"type": "string"}, "arguments": {"type": "object"}});
    let completion = json!({"ref": {"type": "object"}, "argument": {"type": "object"}, "context": {"type": "object"}});
    let table: &[(&str, McpMethod, &Value, &[&str], &str)] = match capability {
        Capability::Resources => &[
            ("mcp.resources.list", McpMethod::ListResources, &cursor, &[], "Lists the resources of the server."),
            (
                "mcp.resources.templates",
                McpMethod::ListResourceTemplates,
                &cursor,
                &[],
                "Lists the resource templates of the server.",
            ),
            (
                "mcp.resources.read",
                McpMethod::ReadResource,
                &json!({"uri": {"type": "string"}}),
                &["uri"],
                "Reads a resource of the server.",
            ),
        ],
        Capability::Prompts => &[
            ("mcp.prompts.list", McpMethod::ListPrompts, &cursor, &[], "Lists the prompts of the server."),
            ("mcp.prompts.get", McpMethod::GetPrompt, &named, &["name"], "Returns a prompt of the server."),
        ],
        Capability::Completions => {
            &[("mcp.complete", McpMethod::Complete, &completion, &["ref", "argument"], "Completes an argument.")]
        }
    };
    let scope = Scope::parse(capability.scope()).map_err(|error| refuse("scope", error.to_string()))?;
    let tool = |&(name, method, properties, required, told): &(&str, McpMethod, &Value, &[&str], &str)| {
        let name = ToolName::parse(name).map_err(|error| refuse("name", error.to_string()))?;
        let mut mapping = McpMapping::of_method(method);
        mapping.hidden_characters = mount.hidden_characters;
        let schema =
            json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let tool = ToolDefinition {
            description: Some(told.to_owned()),
            safety_tier: Some(SafetyTier::Read),
            egress: egress(mount),
            parameters: Some(schema),
            mcp: Some(mapping),
            ..ToolDefinition::of_scope(scope.clone())
        };
        Ok((name, tool))
    };
    table.iter().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount::tests::{mount, tool};

    #[test]
    fn only_accepted_tools_of_an_accepted_server_are_usable() {
        let tools: Vec<_> = ToolState::ALL.into_iter().map(|state| tool(state.as_str(), state)).collect();
        let definition = service_definition(&mount(), &tools).unwrap();
        let names: Vec<_> = definition.tools.keys().map(ToolName::as_str).collect();
        let forwarded = ["mcp.resources.list", "mcp.resources.read", "mcp.resources.templates"];
        assert_eq!(names, [&["accepted"][..], &forwarded[..]].concat());
        assert_eq!(ServiceDefinition::from_json(&definition.to_json()).as_ref(), Ok(&definition));

        let unaccepted = Mount { pinned: None, ..mount() };
        assert!(service_definition(&unaccepted, &tools).unwrap().tools.is_empty());
        let mut replaced = mount();
        replaced.seen.name = "other".to_owned();
        assert!(service_definition(&replaced, &tools).unwrap().tools.is_empty());
    }

    #[test]
    fn every_capability_is_forwarded_by_tools_that_the_registry_takes() {
        let mut mount = mount();
        if let Some(pinned) = &mut mount.pinned {
            pinned.capabilities = Capability::ALL.into_iter().collect();
        }
        let definition = service_definition(&mount, &[]).unwrap();
        assert_eq!(definition.tools.len(), 6);
        assert_eq!(ServiceDefinition::from_json(&definition.to_json()).as_ref(), Ok(&definition));
    }
}
