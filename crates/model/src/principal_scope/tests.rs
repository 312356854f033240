//! What is a scope, and which covers which.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn holds(held: &str, required: &str) -> bool {
    PrincipalScope::parse(held).unwrap().covers(&RequiredScope::parse(required).unwrap())
}

#[test]
fn scopes_are_segments_between_colons() {
    for good in ["a", "http:fetch", "tools:mail:send", "A-1._:b", "*", "tools:*", "a:*:c", "a:b:c:d:e:f:g:h"] {
        assert_eq!(PrincipalScope::parse(good).map(|scope| scope.to_string()), Ok(good.to_owned()));
    }
    let long = "x".repeat(129);
    for (bad, error) in [
        ("", PrincipalScopeError::Length),
        (&long, PrincipalScopeError::Length),
        (":", PrincipalScopeError::Segment),
        ("a:", PrincipalScopeError::Segment),
        (":a", PrincipalScopeError::Segment),
        ("a::b", PrincipalScopeError::Segment),
        ("a b", PrincipalScopeError::Segment),
        ("a@b", PrincipalScopeError::Segment),
        ("mail*", PrincipalScopeError::Segment),
        ("**", PrincipalScopeError::Segment),
        ("ä", PrincipalScopeError::Segment),
        ("a:b:c:d:e:f:g:h:i", PrincipalScopeError::Segments),
    ] {
        assert_eq!(PrincipalScope::parse(bad), Err(error), "{bad:?}");
        assert_eq!(RequiredScope::parse(bad), Err(error), "{bad:?}");
    }
    for pattern in ["*", "a:*", "*:b"] {
        assert_eq!(RequiredScope::parse(pattern), Err(PrincipalScopeError::Wildcard));
    }
}

#[test]
fn a_star_stands_for_one_segment_and_at_the_end_for_one_or_more() {
    for (held, required, covered) in [
        ("a:b", "a:b", true),
        ("a:b", "a:B", false),
        ("a", "a:b", false),
        ("a:b", "a", false),
        ("a:*", "a", false),
        ("a:*", "a:b", true),
        ("a:*", "a:b:c", true),
        ("a:*", "ab:c", false),
        ("a:*:c", "a:b:c", true),
        ("a:*:c", "a:b:b:c", false),
        ("a:*:c", "a:c", false),
        ("a:*:*", "a:b", false),
        ("a:*:*", "a:b:c:d", true),
        ("*:b", "a:b", true),
        ("*:b", "a:c", false),
        ("*", "a", true),
        ("*", "a:b:c", true),
    ] {
        assert_eq!(holds(held, required), covered, "{held} covers {required}");
    }
}

#[test]
fn every_required_scope_must_be_covered_and_what_is_missing_is_named() {
    assert_eq!(covers_all([], []), Ok(()));
    assert_eq!(covers_all(["a:*", "b"], ["a:x", "b"]), Ok(()));
    let missing = covers_all(["a:*"], ["a:x", "b", "c:d"]).unwrap_err();
    assert_eq!(missing, NotCovered::Missing(vec!["b".to_owned(), "c:d".to_owned()]));
    assert_eq!(missing.to_string(), "the principal does not hold b, c:d");
}

#[test]
fn what_cannot_be_understood_denies_and_is_told_apart_from_what_is_missing() {
    let unevaluable = |scope: &str, error| Err(NotCovered::Unevaluable { scope: scope.to_owned(), error });
    assert_eq!(covers_all(["*"], ["a b"]), unevaluable("a b", PrincipalScopeError::Segment));
    assert_eq!(covers_all(["*"], ["a:*"]), unevaluable("a:*", PrincipalScopeError::Wildcard));
    assert_eq!(covers_all([], ["b", ""]), unevaluable("", PrincipalScopeError::Length));
    // A held one that nobody understands hides nothing that another one covers.
    assert_eq!(covers_all(["ann@shop", "b"], ["b"]), Ok(()));
    assert_eq!(covers_all(["ann@shop", "b"], ["c"]), unevaluable("ann@shop", PrincipalScopeError::Segment));
    // Where nothing is required nothing needs to be understood.
    assert_eq!(covers_all(["ann@shop"], []), Ok(()));
    let long = "?".repeat(10_000);
    assert!(covers_all([], [long.as_str()]).unwrap_err().to_string().len() < 512);
}

#[test]
fn scopes_are_checked_when_they_are_read_from_json() {
    assert_eq!(serde_json::from_str::<PrincipalScope>("\"a:*\"").unwrap().as_str(), "a:*");
    assert!(serde_json::from_str::<PrincipalScope>("\"a:\"").is_err());
    assert!(serde_json::from_str::<RequiredScope>("\"a:*\"").is_err());
    assert_eq!(serde_json::to_string(&RequiredScope::parse("a:b").unwrap()).unwrap(), "\"a:b\"");
}

/// Few enough names that scopes meet.
fn names() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(select(vec!["a", "b", "ab", "a.b"]), 1..5)
}

fn patterns() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(select(vec!["a", "b", "ab", "*"]), 1..5)
}

/// The rule by induction, apart from how it is implemented.
fn covers_by_definition(held: &[&str], required: &[&str]) -> bool {
    match (held, required) {
        ([], []) => true,
        (["*"], [_, ..]) => true,
        ([own, held @ ..], [other, required @ ..]) => {
            (own == other || *own == "*") && covers_by_definition(held, required)
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_scope_without_a_star_covers_itself_alone(held in names(), required in names()) {
        prop_assert_eq!(holds(&held.join(":"), &required.join(":")), held == required);
    }

    #[test]
    fn a_star_at_the_end_covers_what_begins_with_the_rest(held in names(), required in names()) {
        let begins = required.len() > held.len() && required.starts_with(&held);
        prop_assert_eq!(holds(&format!("{}:*", held.join(":")), &required.join(":")), begins);
    }

    #[test]
    fn covering_is_what_its_definition_says(held in patterns(), required in names()) {
        let expected = covers_by_definition(&held, &required);
        prop_assert_eq!(holds(&held.join(":"), &required.join(":")), expected);
    }

    #[test]
    fn holding_more_never_takes_a_scope_away(
        held in prop::collection::vec(patterns(), 0..4), more in patterns(), required in prop::collection::vec(names(), 0..4),
    ) {
        let text = |scopes: &[Vec<&str>]| scopes.iter().map(|scope| scope.join(":")).collect::<Vec<_>>();
        let (held, required, more) = (text(&held), text(&required), more.join(":"));
        let of = |scopes: &[String]| {
            covers_all(scopes.iter().map(String::as_str), required.iter().map(String::as_str)).is_ok()
        };
        let with_more: Vec<String> = held.iter().cloned().chain([more]).collect();
        prop_assert!(!of(&held) || of(&with_more));
    }
}
