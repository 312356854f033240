//! Delegation trees, drawn with lines.

use serde_json::Value;

use crate::output::{at, plain};

/// Draws the answer to a question for a tree.
pub(super) fn draw(answer: &Value) -> String {
    let mut text = String::new();
    branch(at(answer, "tree"), "", "", &mut text);
    if at(answer, "truncated").as_bool() == Some(true) {
        text.push_str("There are more; look at one of the grants above.\n");
    }
    text
}

/// Draws a grant and what hangs below it. `first` stands before its own line, `rest` before those below.
fn branch(grant: &Value, first: &str, rest: &str, text: &mut String) {
    let line = format!(
        "{first}{}  {}  {}  {}\n",
        plain(at(grant, "id")),
        plain(at(grant, "agent_id")),
        plain(at(grant, "status")),
        plain(at(grant, "scopes"))
    );
    text.push_str(&line);
    let below = at(grant, "delegations").as_array().map(Vec::as_slice).unwrap_or_default();
    for (position, grant) in below.iter().enumerate() {
        let (mark, indent) = if position + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(grant, &format!("{rest}{mark}"), &format!("{rest}{indent}"), text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tree_is_drawn_with_its_branches() {
        let leaf =
            |id: &str| json!({"id": id, "agent_id": "x", "status": "active", "scopes": ["a"], "delegations": []});
        let mut middle = leaf("b");
        middle["delegations"] = json!([leaf("c"), leaf("d")]);
        let mut root = leaf("a");
        root["delegations"] = json!([middle, leaf("e")]);
        let drawn = draw(&json!({"tree": root, "truncated": false}));
        let ids: Vec<&str> = drawn.lines().map(|line| line.split("  x  ").next().unwrap()).collect();
        assert_eq!(ids, ["a", "├─ b", "│  ├─ c", "│  └─ d", "└─ e"]);
    }
}
