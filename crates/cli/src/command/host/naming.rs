//! Names of tools: hosts use the bare names of workspace tools, the gate qualified names.

use serde_json::{Map, Value};
use toolgate_model::approval::Category;
use toolgate_workspace::WorkspaceTool;

/// The prefix of workspace tools.
const WORKSPACE: &str = "x-host-toolgate-workspace.";

pub(super) fn full(name: &str) -> String {
    match category_of(name) {
        Some(_) => format!("{WORKSPACE}{name}"),
        None => name.to_owned(),
    }
}

/// The category of a tool. Tools other than workspace tools are external.
pub(super) fn category(name: &str) -> Category {
    category_of(name.strip_prefix(WORKSPACE).unwrap_or(name)).unwrap_or(Category::Mcp)
}

/// A description of a call that required no approval, for which the gate returns none.
pub(super) fn description(name: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    match (category(name), text("command"), text("file_path")) {
        (Category::Exec, Some(command), _) => format!("Execute: {command}"),
        (Category::Info | Category::Edit, _, Some(path)) => format!("{name}: {path}"),
        _ => format!("Call: {name}"),
    }
}

fn category_of(name: &str) -> Option<Category> {
    // INVARIANT: the names are the same; an unknown one would be the most dangerous category.
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
