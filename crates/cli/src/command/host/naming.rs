//! The names of tools: hosts call the tools of the workspace by their bare names, the gate by their full ones.

use serde_json::{Map, Value};
use toolgate_model::approval::Category;
use toolgate_workspace::WorkspaceTool;

/// What stands before the name of a tool of the workspace.
const WORKSPACE: &str = "x-host-toolgate-workspace.";

/// The name by which the gate knows a tool.
pub(super) fn full(name: &str) -> String {
    match category_of(name) {
        Some(_) => format!("{WORKSPACE}{name}"),
        None => name.to_owned(),
    }
}

/// What kind of calls a tool makes. Whatever is not of the workspace is somebody else's.
pub(super) fn category(name: &str) -> Category {
    category_of(name.strip_prefix(WORKSPACE).unwrap_or(name)).unwrap_or(Category::Mcp)
}

/// What a call does, in a line, where nobody was asked and so the gate did not say.
pub(super) fn description(name: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match (category(name), text("command"), text("file_path")) {
        (Category::Exec, Some(command), _) => format!("Execute: {command}"),
        (Category::Info | Category::Edit, _, Some(path)) => format!("{name}: {path}"),
        _ => format!("Call: {name}"),
    }
}

fn category_of(name: &str) -> Option<Category> {
    // INVARIANT: the words are the same; one that were not would be taken for the most dangerous.
    WorkspaceTool::parse(name).map(|tool| Category::parse(tool.category()).unwrap_or(Category::Exec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_are_those_of_the_workspace_and_others_stay_as_they_are() {
        assert_eq!(full("Bash"), "x-host-toolgate-workspace.Bash");
        assert_eq!(full("payments.charges.create"), "payments.charges.create");
        assert_eq!(full("bash"), "bash");
        assert_eq!(category("x-host-toolgate-workspace.Edit"), Category::Edit);
        assert_eq!(category("Grep"), Category::Info);
        assert_eq!(category("payments.Bash"), Category::Mcp);
    }
}
