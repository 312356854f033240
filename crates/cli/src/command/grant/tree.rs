//! Delegation trees as text.

use serde_json::json;
use toolgate_api::grants::{GrantBranch, GrantTree, StatedGrant};

use crate::output::plain;

pub(super) fn draw(tree: &GrantTree) -> String {
    let mut text = String::new();
    branch(&tree.tree.grant.stated, &tree.tree.delegations, "", "", &mut text);
    if tree.truncated {
        text.push_str("There are more; show the tree of one of the grants above.\n");
    }
    text
}

/// Draws a grant and those below it. `first` prefixes its own line, `rest` the lines below.
fn branch(grant: &StatedGrant, below: &[GrantBranch], first: &str, rest: &str, text: &mut String) {
    let (status, scopes) = (grant.status.as_str(), plain(&json!(grant.scopes)));
    text.push_str(&format!("{first}{}  {}  {status}  {scopes}\n", grant.id, grant.agent_id));
    for (position, next) in below.iter().enumerate() {
        let (mark, indent) = if position + 1 == below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(&next.grant, &next.delegations, &format!("{rest}{mark}"), &format!("{rest}{indent}"), text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn id(letter: char) -> String {
        format!("grant_01ARZ3NDEKTSV4RRFFQ69G5FA{}", letter.to_ascii_uppercase())
    }

    fn leaf(letter: char) -> Value {
        json!({
            "id": id(letter), "credential_id": "cred_01ARZ3NDEKTSV4RRFFQ69G5FAV", "service": "mail", "agent_id": "x",
            "granted_by": "x", "scopes": ["a"], "constraints": {}, "source": "direct", "source_grant_id": null,
            "delegated_from": null, "delegatable": true, "delegation_depth": null, "context": {}, "status": "active",
            "expires_at": null, "created_at": "2026-01-01T00:00:00Z", "suspended_at": null, "revoked_at": null,
            "delegations": [],
        })
    }

    #[test]
    fn a_tree_is_drawn_with_its_branches() {
        let mut middle = leaf('b');
        middle["delegations"] = json!([leaf('c'), leaf('d')]);
        let mut root = leaf('a');
        root["delegations"] = json!([middle, leaf('e')]);
        root["effective_status"] = json!("active");
        root["lineage"] = json!([]);
        root["effective"] = json!({
            "scopes": [], "constraints": {}, "context": {}, "delegatable": true, "delegation_depth": null,
            "expires_at": null,
        });
        let tree: GrantTree = serde_json::from_value(json!({"tree": root, "count": 4, "truncated": false})).unwrap();
        let drawn = draw(&tree);
        let lines: Vec<&str> = drawn.lines().map(|line| line.split("  x  ").next().unwrap()).collect();
        let expected = [("", 'a'), ("├─ ", 'b'), ("│  ├─ ", 'c'), ("│  └─ ", 'd'), ("└─ ", 'e')];
        assert_eq!(lines, expected.map(|(mark, letter)| format!("{mark}{}", id(letter))));
    }
}
