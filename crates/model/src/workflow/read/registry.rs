//! The services and policies of a file.

use serde_json::{Value, json};

use super::report_repeated;
use crate::guard::PolicyFile;
use crate::service::ServiceDefinition;
use crate::workflow::DeclaredPolicies;
use crate::workflow::members::{Members, Problems, list, wrong};
use crate::workflow::problem::Located;
use crate::workflow::tree::{Content, Node};

/// More versions of services than one file should have.
const SERVICE_LIMIT: usize = 200;
/// The maximum number of problems of one service that are looked for.
const TOOL_PROBLEM_LIMIT: usize = 20;

pub(super) fn services(members: &Members<'_>, problems: &mut Problems) -> Vec<Located<ServiceDefinition>> {
    let Some(node) = members.get("services") else { return Vec::new() };
    let mut services: Vec<Located<ServiceDefinition>> = Vec::new();
    for (number, node) in list(node, "services", SERVICE_LIMIT, problems).iter().enumerate() {
        services.extend(service(node, &format!("services.{number}"), problems));
    }
    let name = |service: &Located<ServiceDefinition>| {
        (format!("{} {}", service.value.service, service.value.version), service.at)
    };
    report_repeated(&services, name, "services", problems);
    services
}

fn service(node: &Node, path: &str, problems: &mut Problems) -> Option<Located<ServiceDefinition>> {
    let value = node.to_json();
    let first = match ServiceDefinition::from_json(&value) {
        Ok(definition) => return Some(Located { value: definition, at: node.at }),
        Err(error) => error,
    };
    let mut report = |error: &crate::service::DefinitionError| {
        problems.add(node.place_of(&error.path), &format!("{path}.{}", error.path), error.to_string());
    };
    report(&first);
    // Tools do not depend on each other: each on its own finds the problems after the first.
    let tools = value.get("tools").and_then(Value::as_object);
    let mut found = 0;
    for (name, tool) in tools.into_iter().flatten() {
        let mut single = value.clone();
        if let Some(members) = single.as_object_mut() {
            members.insert("tools".to_owned(), json!({ name: tool }));
        }
        if let Err(error) = ServiceDefinition::from_json(&single)
            && error != first
            && found < TOOL_PROBLEM_LIMIT
        {
            found += 1;
            report(&error);
        }
    }
    None
}

/// A directory, or a mapping from names to texts. The gate checks names and rules.
pub(super) fn policies(members: &Members<'_>, problems: &mut Problems) -> Option<Located<DeclaredPolicies>> {
    let node = members.get("policies")?;
    let policies = match &node.content {
        Content::Scalar(Value::String(directory)) => DeclaredPolicies::Directory(directory.clone()),
        Content::Map(entries) => {
            let mut files = Vec::new();
            for entry in entries {
                match entry.value.text() {
                    Some(text) => files.push(PolicyFile { name: entry.key.clone(), text: text.to_owned() }),
                    None => {
                        let path = format!("policies.{}", entry.key);
                        wrong::<()>(&entry.value, &path, "the text of the file (`|` and indented lines)", problems);
                    }
                }
            }
            files.sort_by(|left, right| left.name.cmp(&right.name));
            DeclaredPolicies::Files(files)
        }
        _ => {
            let expected = "the path of a directory, or a mapping from file names to texts";
            return wrong(node, "policies", expected, problems);
        }
    };
    Some(Located { value: policies, at: members.given("policies").map_or(node.at, |entry| entry.at) })
}
