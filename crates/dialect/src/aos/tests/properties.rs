//! Whatever is sent is read or refused, and what is written reads back.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(|number| json!(number)),
        "\\PC{0,12}".prop_map(Value::String),
        // Names that mean something, so that not everything ends at the envelope.
        prop_oneof![
            Just("2.0"),
            Just("steps/message"),
            Just("protocols/MCP"),
            Just("message/send"),
            Just("modify"),
            Just("q-1")
        ]
        .prop_map(|text| json!(text)),
    ];
    let name = prop_oneof![
        "[a-z]{1,4}",
        prop::sample::select(
            &[
                "jsonrpc", "id", "method", "params", "context", "agent", "message", "payload", "role", "content",
                "result", "decision"
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(name.clone(), inner, 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn hook() -> impl Strategy<Value = Hook> {
    prop::sample::select(&Hook::ALL[..])
}

/// Puts `value` in place of the `nth` value of a tree, counted in the order of reading.
fn put(tree: &mut Value, nth: &mut usize, value: &Value) {
    if *nth == 0 {
        *tree = value.clone();
        *nth = usize::MAX;
        return;
    }
    *nth = nth.saturating_sub(usize::from(*nth != usize::MAX));
    match tree {
        Value::Array(items) => items.iter_mut().for_each(|item| put(item, nth, value)),
        Value::Object(members) => members.values_mut().for_each(|member| put(member, nth, value)),
        _ => {}
    }
}

fn part() -> impl Strategy<Value = Part> {
    let file = (any::<Option<String>>(), any::<Option<String>>(), any::<String>())
        .prop_map(|(name, mime_type, uri)| File { name, mime_type, place: json!({"uri": uri}) });
    let body = prop_oneof![
        any::<String>().prop_map(PartBody::Text),
        json_value().prop_map(PartBody::Data),
        file.prop_map(PartBody::File)
    ];
    let metadata = proptest::option::of(json_value().prop_filter("null is none", |value| !value.is_null()));
    (body, metadata).prop_map(|(body, metadata)| Part { body, metadata })
}

fn generated() -> impl Strategy<Value = HookEvent<'static>> {
    let arguments = btree_map(any::<String>(), json_value(), 0..5)
        .prop_map(|members| Content::Arguments(Cow::Owned(members.into_iter().collect())));
    let texts = || vec(any::<String>(), 2..4);
    let value = prop_oneof![any::<String>().prop_map(Value::String), texts().prop_map(|texts| json!(texts))];
    let result =
        (value, any::<bool>()).prop_map(|(value, is_error)| Content::Result { value: Cow::Owned(value), is_error });
    let finding = (any::<String>(), any::<String>(), any::<Option<String>>())
        .prop_map(|(id, content, mime_type)| Finding { id, content, mime_type, metadata: None });
    let knowledge = (any::<Option<String>>(), vec(any::<String>(), 0..3), vec(finding, 0..3))
        .prop_map(|(query, keywords, results)| Content::Knowledge { query, keywords, results });
    let of = |hook: Hook, content: Content<'static>| HookEvent { content, ..event(hook) };
    prop_oneof![
        arguments.prop_map(move |content| of(Hook::ToolCallRequest, content)),
        result.prop_map(move |content| of(Hook::ToolCallResult, content)),
        vec(part(), 0..4).prop_map(move |parts| of(Hook::AgentTrigger, Content::Parts(parts))),
        texts().prop_map(move |entries| of(Hook::MemoryStore, Content::Memory(entries))),
        knowledge.prop_map(move |content| of(Hook::KnowledgeRetrieval, content)),
        json_value().prop_map(move |note| of(Hook::A2aSend, message(json!({"id": 1, "params": {"note": note}})))),
    ]
}

proptest! {
    #[test]
    fn any_json_is_read_without_falling_over(value in json_value(), hook in hook()) {
        let text = value.to_string();
        let _ = read(text.as_bytes(), now());
        let _ = read_response(text.as_bytes(), "q-1", &event(hook));
    }

    #[test]
    fn a_damaged_question_is_read_or_refused_with_its_id(
        hook in hook(), mut nth in 1_usize..40, value in json_value(),
    ) {
        let mut asked = asked(hook);
        put(&mut asked, &mut nth, &value);
        match read_one(&asked) {
            Message::Hook(question) => {
                let response = write(&question, &plain(VerdictKind::Deny, "no"));
                prop_assert_eq!(&response["id"], &asked["id"]);
            }
            Message::Invalid { id: Some(id), .. } => prop_assert_eq!(id.to_value(), asked["id"].clone()),
            Message::Invalid { id: None, .. } => prop_assert_eq!(Id::read(&asked["id"]), None),
            Message::Ping(_) | Message::Notification => {}
        }
    }

    #[test]
    fn a_damaged_change_never_becomes_another_tool_or_task(
        hook in hook(), mut nth in 0_usize..40, value in json_value(),
    ) {
        let event = event(hook);
        let mut whole = ask(&event, "q-1", Dialect::Aos).unwrap();
        put(&mut whole, &mut nth, &value);
        if let Ok(given) = given(json!({"decision": "modify", "modifiedRequest": whole}), &event) {
            let GuardianDecision::Modify(content) = given.decision else { panic!("a modify stays one") };
            prop_assert_eq!(std::mem::discriminant(&content), std::mem::discriminant(&event.content));
            if let Content::Message(message) = &content {
                let Content::Message(shown) = &event.content else { panic!("a message stays one") };
                prop_assert_eq!(message.get("id"), shown.get("id"));
                prop_assert_eq!(message.pointer("/params/name"), shown.pointer("/params/name"));
            }
        }
    }

    #[test]
    fn whatever_is_asked_is_read_back(event in generated()) {
        for dialect in DIALECTS {
            let asked = ask(&event, "q-1", dialect).unwrap();
            prop_assert_eq!(&question(&asked).event, &event);
        }
    }

    #[test]
    fn whatever_we_change_is_read_back(event in generated()) {
        let question = question(&ask(&super::event(event.hook), "q-1", Dialect::Joch).unwrap());
        // A guardian must not change what a message is about, and neither do we.
        prop_assume!(event.hook != Hook::A2aSend && event.hook != Hook::ToolCallResult);
        // A query or keywords that are gone are told as empty ones.
        prop_assume!(!matches!(&event.content, Content::Knowledge { query: None, .. }));
        for form in FORMS {
            let response = modify(&question, &event.content, form);
            let given = read_response(response.to_string().as_bytes(), "q-1", &question.event).unwrap();
            prop_assert_eq!(given.decision, GuardianDecision::Modify(event.content.clone()));
        }
    }
}
