//! Names of upstream tools as names of tools here. The way back is the name in the tool's MCP mapping, so a name need not be
//! taken apart; it must only be the same every time, and another one for another tool.

use crate::merkle::sha256;
use crate::service::ToolName;
use crate::text::check_identifier;

/// Names that the gate gives to the rest of the protocol.
const RESERVED: &str = "mcp.";
/// Scopes of these; the scope of a tool is its name.
const RESERVED_SCOPES: [&str; 2] = ["prompts.read", "resources.read"];
/// How many digits of the hash stand behind a name that had to be changed.
const DIGITS: usize = 12;
/// How much of such a name is kept.
const KEPT: usize = 100;

/// The name here of a tool that its server calls `upstream`: the same where that is possible, else what can be kept of it
/// with a part of its hash.
pub fn tool_name(upstream: &str) -> ToolName {
    let is_taken = upstream.starts_with(RESERVED) || RESERVED_SCOPES.contains(&upstream) || has_digits(upstream);
    if let (Ok(()), Ok(name), false) = (check_identifier(upstream), ToolName::parse(upstream), is_taken) {
        return name;
    }
    let digits: String = sha256(upstream.as_bytes()).to_hex().chars().take(DIGITS).collect();
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    let kept: String = upstream.trim_start_matches(RESERVED).chars().map(allowed).take(KEPT).collect();
    let changed = format!("{kept}-{digits}");
    // INVARIANT: letters, digits and separators, not empty and not too long, are a name.
    ToolName::parse(&changed).unwrap_or_else(|_| tool_name("tool"))
}

/// Whether it ends like a name that had to be changed, and could be taken for one.
fn has_digits(name: &str) -> bool {
    let end = name.rsplit_once('-').map(|(_, end)| end);
    end.is_some_and(|end| end.len() == DIGITS && end.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_names_stay_and_others_keep_what_can_be_kept() {
        for name in ["echo", "read_file", "get-sum", "a.b", "A1"] {
            assert_eq!(tool_name(name).as_str(), name);
        }
        for (name, start) in
            [("a/b", "a_b-"), ("mcp.resources.list", "resources.list-"), ("é", "_-"), ("prompts.read", "prompts.read-")]
        {
            let given = tool_name(name);
            assert!(given.as_str().starts_with(start) && given.as_str() != name, "{given}");
        }
        assert!(tool_name(&"x".repeat(200)).as_str().len() <= 128);
        assert_ne!(tool_name(tool_name("a/b").as_str()), tool_name("a/b"));
    }

    proptest! {
        #[test]
        fn two_tools_never_get_one_name(names in proptest::collection::hash_set("[a-c/. é-]{1,6}", 2..60)) {
            let mut given = HashMap::new();
            for name in names {
                prop_assert!(!tool_name(&name).as_str().starts_with(RESERVED));
                if let Some(other) = given.insert(tool_name(&name), name.clone()) {
                    prop_assert_eq!(other, name);
                }
            }
        }
    }
}
