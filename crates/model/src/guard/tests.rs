//! The words of guarding keep their meaning on the way through JSON.

use std::borrow::Cow;

use serde_json::{Map, json};

use super::*;

#[test]
fn every_hook_and_every_failure_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = Hook::ALL.iter().map(|hook| hook.as_str()).collect();
    assert_eq!(names.len(), Hook::ALL.len());
    for hook in Hook::ALL {
        assert_eq!(Hook::parse(hook.as_str()), Some(hook));
    }
    let names: std::collections::BTreeSet<_> = FailureClass::ALL.iter().map(|class| class.as_str()).collect();
    assert_eq!(names.len(), FailureClass::ALL.len());
}

#[test]
fn content_survives_the_way_through_json() {
    let file = File { name: Some("a.txt".to_owned()), mime_type: None, place: json!({"uri": "file:///a"}) };
    let contents = [
        Content::Arguments(Cow::Owned(Map::from_iter([("a".to_owned(), json!(1))]))),
        Content::Result { value: Cow::Owned(json!({"x": [1]})), is_error: true },
        Content::Parts(vec![
            Part::text("hello"),
            Part { body: PartBody::Data(json!({"a": null})), metadata: Some(json!({"m": 1})) },
            Part { body: PartBody::File(file), metadata: None },
        ]),
        Content::Memory(vec!["one".to_owned(), "two".to_owned()]),
        Content::Knowledge {
            query: Some("q".to_owned()),
            keywords: vec!["k".to_owned()],
            results: vec![Finding {
                id: "1".to_owned(),
                content: "c".to_owned(),
                mime_type: None,
                metadata: Some(json!({"m": 1})),
            }],
        },
        Content::Message(Cow::Owned(json!({"method": "tools/call"}))),
    ];
    for content in contents {
        assert_eq!(content.with_json(content.to_json()).as_ref(), Some(&content));
    }
}

#[test]
fn the_strictest_word_names_the_verdict() {
    let ask = Ask { reason: "why".to_owned(), groups: Vec::new(), approvers: 1, ttl_seconds: None, policy: None };
    let changed = Content::Memory(Vec::new());
    assert_eq!(Verdict::allow().kind(), VerdictKind::Allow);
    assert_eq!(Verdict::modify(changed.clone()).kind(), VerdictKind::Modify);
    let both = Verdict::Pass { content: Some(Box::new(changed)), asks: vec![ask] };
    assert_eq!(both.kind(), VerdictKind::Ask);
}
