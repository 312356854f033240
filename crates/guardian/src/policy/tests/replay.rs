//! Judging again what was recorded in part.

use super::*;

fn replay(text: &str, missing: &Missing) -> Replayed {
    let world = World::new();
    let set = compile(text);
    let event =
        world.event(Hook::ToolCallRequest, Content::Arguments(Cow::Owned(members(&json!({"to": "ann", "body": "x"})))));
    judge_known(&set.slice(&world.subject(Hook::ToolCallRequest)), &world.facts(&event), missing)
}

fn without(names: &[&str]) -> Missing {
    Missing { arguments: Members::Only(names.iter().map(|name| (*name).to_owned()).collect()), ..Missing::default() }
}

const READS_BODY: &str = r#"@id("body") forbid(principal, action, resource) when { context.arguments has body && context.arguments.body == "x" };"#;

#[test]
fn a_rule_that_reads_what_is_missing_leaves_it_open() {
    let open =
        |missing: &str| Replayed::Undecidable { policies: vec!["body".to_owned()], missing: vec![missing.to_owned()] };
    assert_eq!(replay(READS_BODY, &without(&["body"])), open("arguments.body"));
    let everything = Missing { arguments: Members::All, ..Missing::default() };
    assert_eq!(replay(READS_BODY, &everything), open("arguments.body"));
    let text = r#"@id("body") @remedy("redact") @detectors("email") forbid(principal, action, resource);"#;
    assert_eq!(replay(text, &without(&["body"])), open("arguments"));
    let text = r#"@id("body") forbid(principal, action, resource) when { context.detected.contains("card") };"#;
    assert_eq!(replay(text, &without(&["body"])), open("arguments"));
    for (attribute, condition, missing) in [
        ("reasoning", "context has reasoning", Missing { reasoning: true, ..Missing::default() }),
        ("address", "context.address.isLoopback()", Missing { address: true, ..Missing::default() }),
        ("history", "context.calls.run > 1", Missing { totals: true, ..Missing::default() }),
        ("history", "context.marks.contains(\"x\")", Missing { marks: true, ..Missing::default() }),
    ] {
        let text = format!(r#"@id("body") forbid(principal, action, resource) when {{ {condition} }};"#);
        assert_eq!(replay(&text, &missing), open(attribute));
    }
}

#[test]
fn what_is_known_is_judged_as_ever() {
    for missing in [Missing::default(), without(&["amount"]), Missing { marks: true, ..Missing::default() }] {
        let Replayed::Known(evaluation) = replay(READS_BODY, &missing) else { panic!("{missing:?}") };
        assert_eq!(ids(&evaluation), ["body"]);
    }
}

#[test]
fn a_refusal_by_what_is_known_stands_whatever_the_others_say() {
    let text = format!(
        r#"{READS_BODY} @id("known") forbid(principal, action, resource) when {{ context.arguments.to == "ann" }};"#
    );
    let Replayed::Known(evaluation) = replay(&text, &without(&["body"])) else { panic!() };
    assert_eq!(ids(&evaluation), ["known"]);
    let text = format!(r#"{READS_BODY} @id("known") @remedy("ask") forbid(principal, action, resource);"#);
    assert!(matches!(replay(&text, &without(&["body"])), Replayed::Undecidable { .. }));
}

#[test]
fn a_rule_in_shadow_that_cannot_see_says_nothing() {
    let text = format!("@mode(\"shadow\") {READS_BODY}");
    let Replayed::Known(evaluation) = replay(&text, &without(&["body"])) else { panic!() };
    assert_eq!(evaluation, Evaluation::allow());
    let Replayed::Known(evaluation) = replay(&text, &Missing::default()) else { panic!() };
    assert_eq!(evaluation.shadow.len(), 1);
}

#[test]
fn what_was_found_in_content_that_was_not_kept_decides_about_what_was_taken_out() {
    let text = r#"@id("mails") @remedy("redact") @detectors("email") forbid(principal, action, resource);"#;
    let kept = |found: &[(&str, bool)]| Missing {
        arguments: Members::All,
        found: found.iter().map(|(wanted, found)| ((*wanted).to_owned(), *found)).collect(),
        ..Missing::default()
    };
    let Replayed::Known(evaluation) = replay(text, &kept(&[("*|email", true)])) else { panic!() };
    assert_eq!((evaluation.verdict.kind(), ids(&evaluation)), (VerdictKind::Modify, vec!["mails"]));
    let Replayed::Known(evaluation) = replay(text, &kept(&[("*|email", false)])) else { panic!() };
    assert_eq!(evaluation.verdict, Verdict::allow());
    // What another rule looked for says nothing.
    assert!(matches!(replay(text, &kept(&[("*|card", false)])), Replayed::Undecidable { .. }));
    let never = r#"@id("mails") @remedy("redact") @detectors("email") forbid(principal, action, resource)
        when { principal.kind == "service" };"#;
    let Replayed::Known(evaluation) = replay(never, &kept(&[])) else { panic!() };
    assert_eq!(evaluation.verdict, Verdict::allow());
}
