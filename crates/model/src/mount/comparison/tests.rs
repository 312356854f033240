//! Tests of the comparison.

use proptest::prelude::*;

use super::*;
use crate::mount::tests::{seen, tool};

fn offered(name: &str, text: &str) -> OfferedDefinition {
    OfferedDefinition { name: name.to_owned(), seen: seen(name, text) }
}

/// The state after a check, by what is listed: `None` for a tool that is forgotten.
fn after(state: ToolState, listed: Option<&str>) -> Option<ToolState> {
    let known = tool("a", state);
    let offer: Vec<_> = listed.map(|text| offered("a", text)).into_iter().collect();
    match compare(std::slice::from_ref(&known), &offer).pop() {
        None => Some(known.state),
        Some(change) => change.after.map(|tool| tool.state),
    }
}

#[test]
fn every_state_follows_what_is_listed() {
    use Quarantine::{Changed, New, Removed};
    use ToolState::{Accepted, Quarantined, Rejected};
    for (state, listed, expected) in [
        (Accepted, Some("first"), Some(Accepted)),
        (Accepted, Some("second"), Some(Quarantined(Changed))),
        (Accepted, None, Some(Quarantined(Removed))),
        (Quarantined(New), Some("second"), Some(Quarantined(New))),
        (Quarantined(New), Some("third"), Some(Quarantined(New))),
        (Quarantined(New), None, None),
        (Quarantined(Changed), Some("second"), Some(Quarantined(Changed))),
        (Quarantined(Changed), Some("third"), Some(Quarantined(Changed))),
        // Changed, and changed back.
        (Quarantined(Changed), Some("first"), Some(Quarantined(Changed))),
        (Quarantined(Changed), None, Some(Quarantined(Changed))),
        (Quarantined(Removed), Some("first"), Some(Accepted)),
        (Quarantined(Removed), Some("second"), Some(Quarantined(Changed))),
        (Quarantined(Removed), None, Some(Quarantined(Removed))),
        (Rejected, Some("second"), Some(Rejected)),
        (Rejected, Some("third"), Some(Quarantined(Changed))),
        (Rejected, None, None),
    ] {
        assert_eq!(after(state, listed), expected, "{state:?} {listed:?}");
    }
}

#[test]
fn a_new_tool_is_quarantined_and_a_renamed_one_is_two_changes() {
    let known = [tool("old", ToolState::Accepted)];
    let changes = compare(&known, &[offered("new", "first")]);
    let states: Vec<_> = changes.iter().map(|change| change.after.as_ref().map(|tool| tool.state)).collect();
    let expected = [Quarantine::New, Quarantine::Removed].map(|why| Some(ToolState::Quarantined(why)));
    assert_eq!(states, expected);
}

#[test]
fn a_second_definition_under_one_name_does_not_hide_behind_the_pinned_one() {
    let known = [tool("a", ToolState::Accepted)];
    for offer in [[offered("a", "first"), offered("a", "poison")], [offered("a", "poison"), offered("a", "first")]] {
        let changes = compare(&known, &offer);
        let changed = changes.first().and_then(|change| change.after.clone()).unwrap();
        assert_eq!(changed.state, ToolState::Quarantined(Quarantine::Changed));
        assert_eq!(changed.seen, Some(seen("a", "poison")));
    }
}

proptest! {
    #[test]
    fn nothing_is_usable_by_a_definition_that_nobody_accepted(
        texts in proptest::collection::vec((0usize..4, "[a-c]"), 0..40)
    ) {
        let mut known: Vec<MountTool> = vec![tool("a", ToolState::Accepted), tool("b", ToolState::Accepted)];
        let accepted: Vec<_> = known.iter().map(|tool| tool.pinned.clone()).collect();
        for (place, text) in texts {
            let names = ["a", "b", "c"];
            let listed: Vec<_> = names.iter().enumerate()
                .filter(|(number, _)| *number != place)
                .map(|(_, name)| offered(name, if text == "a" { "first" } else { &text })).collect();
            for change in compare(&known, &listed) {
                known.retain(|tool| tool.upstream != change.upstream);
                known.extend(change.after);
            }
            // A second look at the same list changes nothing.
            prop_assert!(compare(&known, &listed).is_empty());
            for tool in &known {
                if tool.state == ToolState::Accepted {
                    prop_assert!(accepted.contains(&tool.pinned));
                    let hash = tool.seen.as_ref().map(|seen| seen.hash.clone());
                    prop_assert_eq!(hash, tool.pinned.as_ref().map(|pinned| pinned.hash.clone()));
                }
            }
        }
    }
}
