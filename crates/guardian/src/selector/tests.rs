//! What a selector selects.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::remote::fixture::World;

fn patterns(texts: &[&str]) -> Vec<NamePattern> {
    texts.iter().map(|text| NamePattern::parse(text).unwrap()).collect()
}

fn labels(texts: &[&str]) -> BTreeSet<Label> {
    texts.iter().map(|text| Label::parse(text).unwrap()).collect()
}

fn world() -> World {
    let mut world = World::of(json!({}));
    Arc::get_mut(&mut world.principal).unwrap().labels = labels(&["trial", "team:a"]);
    let definition = Arc::get_mut(&mut world.definition).unwrap();
    definition.labels = labels(&["private-data"]);
    definition.safety_tier = Some(SafetyTier::Exec);
    world
}

#[test]
fn what_is_left_empty_admits_all() {
    let mut world = world();
    assert!(Selector::default().selects(&world.hooked()));
    world.event.hook = Hook::MemoryStore;
    world.event.tool = None;
    assert!(Selector::default().selects(&world.hooked()));
}

#[test]
fn each_condition_must_hold_and_any_of_its_values_is_enough() {
    let world = world();
    let hooked = world.hooked();
    let table: &[(Selector, bool)] = &[
        (Selector { hooks: [Hook::ToolCallRequest, Hook::MemoryStore].into(), ..Selector::default() }, true),
        (Selector { hooks: [Hook::ToolCallResult].into(), ..Selector::default() }, false),
        (Selector { agents: patterns(&["other", "helper-*"]), ..Selector::default() }, true),
        (Selector { agents: patterns(&["helper", "help-*"]), ..Selector::default() }, false),
        (Selector { tools: patterns(&["mail.send"]), ..Selector::default() }, true),
        (Selector { tools: patterns(&["mail.*"]), ..Selector::default() }, true),
        (Selector { tools: patterns(&["*"]), ..Selector::default() }, true),
        (Selector { tools: patterns(&["mail", "mai.*", "mail.send.*"]), ..Selector::default() }, false),
        (Selector { tiers: [SafetyTier::Exec].into(), ..Selector::default() }, true),
        (Selector { tiers: [SafetyTier::Read, SafetyTier::Write].into(), ..Selector::default() }, false),
        (Selector { tool_labels: labels(&["x", "private-data"]), ..Selector::default() }, true),
        (Selector { tool_labels: labels(&["trial"]), ..Selector::default() }, false),
        (Selector { principal_labels: labels(&["team:a"]), ..Selector::default() }, true),
        (Selector { principal_labels: labels(&["private-data"]), ..Selector::default() }, false),
        (Selector { tenants: [TenantId::default_tenant()].into(), ..Selector::default() }, true),
        (Selector { tenants: [TenantId::parse("other").unwrap()].into(), ..Selector::default() }, false),
        (Selector { tools: patterns(&["mail.*"]), agents: patterns(&["other"]), ..Selector::default() }, false),
    ];
    for (selector, expected) in table {
        assert_eq!(selector.selects(&hooked), *expected, "{selector:?}");
    }
}

#[test]
fn an_event_without_a_tool_is_not_meant_by_what_is_said_of_tools() {
    let mut world = world();
    world.event.tool = None;
    let hooked = Hooked { tool: None, ..world.hooked() };
    for selector in [
        Selector { tools: patterns(&["*"]), ..Selector::default() },
        Selector { tiers: [SafetyTier::Write].into(), ..Selector::default() },
        Selector { tool_labels: labels(&["private-data"]), ..Selector::default() },
    ] {
        assert!(!selector.selects(&hooked), "{selector:?}");
    }
}

#[test]
fn a_tool_of_which_only_the_name_is_known_is_taken_to_write() {
    let mut world = world();
    world.event.tool = Some(Cow::Borrowed("shell"));
    let hooked = Hooked { tool: None, ..world.hooked() };
    let of_tier = |tier| Selector { tiers: [tier].into(), ..Selector::default() };
    assert!(of_tier(SafetyTier::Write).selects(&hooked));
    assert!(!of_tier(SafetyTier::Read).selects(&hooked));
    assert!(Selector { tools: patterns(&["shell"]), ..Selector::default() }.selects(&hooked));
}

#[test]
fn a_star_stands_only_at_the_end() {
    assert_eq!(NamePattern::parse(""), Err(PatternError::Empty));
    for text in ["*.send", "ma*l", "mail.**"] {
        assert_eq!(NamePattern::parse(text), Err(PatternError::Star(text.to_owned())));
    }
}
