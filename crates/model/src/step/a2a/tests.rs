//! What is sent, what guardians see of it, and what they may change.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::*;
use crate::step::{StreamEvent, Unit};

fn step(operation: Operation, binding: Binding) -> A2aStep {
    A2aStep { operation, binding, version: Version::V1_0, tenant: Some("acme".to_owned()) }
}

fn message() -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "a"}], "x": 1}})
}

fn message_of(content: &Content<'_>) -> Value {
    match content {
        Content::Message(message) => message.clone().into_owned(),
        _ => Value::Null,
    }
}

#[test]
fn a_step_reads_back_as_it_was_written_and_unknown_words_are_refused() {
    let step = step(Operation::Send, Binding::HttpJson);
    assert_eq!(A2aStep::from_json(&step.to_json(), "step"), Ok(step));
    for (member, value) in [("operation", "push_set"), ("version", "1.1"), ("binding", "GRPC"), ("else", "x")] {
        let mut json = super::tests::step(Operation::Get, Binding::JsonRpc).to_json();
        json[member] = json!(value);
        assert!(A2aStep::from_json(&json, "step").is_err(), "{json}");
    }
}

#[test]
fn over_json_rpc_the_parameters_are_sent_in_their_envelope_with_the_tenant_of_the_interface() {
    let sent = step(Operation::Send, Binding::JsonRpc).sent(&message()).into_owned();
    assert_eq!((&sent["jsonrpc"], &sent["method"]), (&json!("2.0"), &json!("SendMessage")));
    assert_eq!((&sent["params"]["tenant"], &sent["params"]["message"]["x"]), (&json!("acme"), &json!(1)));
    assert_eq!(*step(Operation::Send, Binding::HttpJson).sent(&message()), message());
}

#[test]
fn configurations_of_push_notifications_are_refused_in_every_spelling() {
    let step = step(Operation::Send, Binding::JsonRpc);
    for name in [
        "taskPushNotificationConfig",
        "task_push_notification_config",
        "pushNotificationConfig",
        "push_notification",
        "PushNotification_Config",
    ] {
        let mut parameters = message();
        parameters["configuration"] = json!({"blocking": true, name: {"url": "https://x.example"}});
        assert!(step.check(&parameters).is_err(), "{name}");
    }
    let mut parameters = message();
    parameters["configuration"] = json!({"blocking": true, "pushNotificationConfig": null});
    assert_eq!(step.check(&parameters), Ok(()));
    parameters["tenant"] = json!("other");
    assert!(step.check(&parameters).is_err());
}

#[test]
fn what_a_guardian_changes_of_a_request_and_of_a_response_is_put_back() {
    for binding in Binding::ALL {
        let step = step(Operation::Send, binding);
        let mut parameters = message();
        let question = step.of_request(&parameters).unwrap().remove(0);
        assert_eq!(question.method.as_deref(), Some("message/send"));
        let mut changed = message_of(&question.content);
        changed["params"]["message"]["parts"][0]["text"] = json!("b");
        step.replace(&mut parameters, &question, Content::Message(Cow::Owned(changed.clone()))).unwrap();
        assert_eq!(parameters["message"]["parts"][0]["text"], "b");
        changed["params"]["message"]["role"] = json!("ROLE_AGENT");
        assert!(step.replace(&mut parameters, &question, Content::Message(Cow::Owned(changed))).is_err());

        let body = json!({"message": {"messageId": "n", "contextId": "c", "parts": [{"text": "a"}]}});
        let mut result = match binding {
            Binding::JsonRpc => json!({"jsonrpc": "2.0", "id": 1, "result": body}),
            Binding::HttpJson => body,
        };
        assert_eq!(step.named_by(&result).unwrap().contexts, ["c"]);
        let question = step.of_response(&parameters, &result).unwrap().remove(0);
        let mut changed = message_of(&question.content);
        changed["result"]["message"]["parts"][0]["text"] = json!("b");
        step.replace(&mut result, &question, Content::Message(Cow::Owned(changed))).unwrap();
        assert!(result.to_string().contains("\"text\":\"b\""), "{result}");
    }
}

#[test]
fn what_is_no_response_names_nothing_and_is_refused() {
    let step = step(Operation::Send, Binding::JsonRpc);
    for result in [json!("x"), json!({}), json!({"jsonrpc": "2.0", "id": 1}), json!({"raw": "x", "content_type": "a"})]
    {
        assert!(step.named_by(&result).is_err(), "{result}");
    }
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "no"}});
    assert!(step.named_by(&error).unwrap().is_empty());
}

#[test]
fn of_a_list_only_owned_tasks_are_kept_and_counted() {
    for binding in Binding::ALL {
        let list = json!({"tasks": [{"id": "a"}, {"id": "b"}], "totalSize": 2, "pageSize": 50, "nextPageToken": ""});
        let mut result = match binding {
            Binding::JsonRpc => json!({"result": list}),
            Binding::HttpJson => list,
        };
        step(Operation::List, binding).keep_tasks(&mut result, |id| id == "b");
        let list = result.get("result").unwrap_or(&result);
        assert_eq!((&list["tasks"], &list["totalSize"]), (&json!([{"id": "b"}]), &json!(1)));
        assert_eq!(list["pageSize"], 50);
    }
}

fn piece(text: &str, append: bool) -> StreamEvent {
    let update = json!({"artifactUpdate": {
        "taskId": "t", "contextId": "c", "append": append,
        "artifact": {"artifactId": "a", "parts": [{"text": text}]},
    }});
    StreamEvent { name: None, data: json!({"jsonrpc": "2.0", "id": 1, "result": update}).to_string() }
}

fn asked(unit: &Unit) -> String {
    let message = message_of(&unit.question.as_ref().unwrap().content);
    message.pointer("/result/artifactUpdate/artifact/parts/0/text").unwrap().as_str().unwrap().to_owned()
}

fn with_text(unit: &Unit, text: &str) -> Content<'static> {
    let mut message = message_of(&unit.question.as_ref().unwrap().content);
    *message.pointer_mut("/result/artifactUpdate/artifact/parts/0/text").unwrap() = json!(text);
    Content::Message(Cow::Owned(message))
}

#[test]
fn pieces_of_an_artifact_are_judged_with_what_came_before_and_passed_on_alone() {
    let mut stream = step(Operation::Stream, Binding::JsonRpc).stream(&message(), StreamMode::Units);
    let first = stream.take(piece("my pass", false)).unwrap().remove(0);
    assert_eq!(asked(&first), "my pass");
    let mut second = stream.take(piece("word is x", true)).unwrap().remove(0);
    assert_eq!(asked(&second), "my password is x");
    let replacement = with_text(&second, "my password is y");
    stream.replace(&mut second, replacement).unwrap();
    assert!(second.events[0].data.contains("\"word is y\""), "{:?}", second.events);
    let mut third = stream.take(piece("!", true)).unwrap().remove(0);
    assert_eq!(asked(&third), "my password is y!", "with what was passed on");
    let replacement = with_text(&third, "my secret is y!");
    assert!(stream.replace(&mut third, replacement).is_err(), "what was passed on cannot change");
    assert_eq!(stream.result(), json!({"streamed_events": 3, "task_id": "t", "context_id": "c"}));
}

#[test]
fn a_stream_that_is_held_back_is_judged_as_a_whole() {
    let mut stream = step(Operation::Stream, Binding::JsonRpc).stream(&message(), StreamMode::Whole);
    assert!(stream.take(piece("a", false)).unwrap().is_empty());
    assert!(stream.take(piece("b", true)).unwrap().is_empty());
    let unit = stream.end().unwrap().remove(0);
    assert_eq!(unit.events.len(), 2);
    assert_eq!(message_of(&unit.question.as_ref().unwrap().content)["result"].as_array().unwrap().len(), 2);
    assert_eq!(stream.result()["events"].as_array().unwrap().len(), 2);
}

#[test]
fn events_that_are_no_json_end_the_stream() {
    for mode in [StreamMode::Off, StreamMode::Units] {
        let mut stream = step(Operation::Stream, Binding::HttpJson).stream(&message(), mode);
        assert!(stream.take(StreamEvent { name: None, data: "no".to_owned() }).is_err());
        let error = StreamEvent { name: Some("error".to_owned()), data: "no".to_owned() };
        assert_eq!(stream.take(error).unwrap().len(), 1);
    }
}

#[test]
fn a_task_is_cancelled_over_the_interface_of_its_stream() {
    use crate::service::HttpMethod;
    let opened = |url: &str| RenderedRequest {
        method: HttpMethod::Post,
        url: url::Url::parse(url).unwrap(),
        headers: vec![("A2A-Version".to_owned(), "1.0".to_owned())],
        body: None,
    };
    let rpc = step(Operation::Stream, Binding::JsonRpc).cancelling(&opened("https://a.example/rpc"), "t").unwrap();
    let body: Value = serde_json::from_slice(&rpc.body.unwrap().bytes).unwrap();
    assert_eq!((&body["method"], &body["params"]["id"]), (&json!("CancelTask"), &json!("t")));
    for (operation, url) in [
        (Operation::Stream, "https://a.example/rest/message:stream"),
        (Operation::Subscribe, "https://a.example/rest/tasks/x:subscribe"),
    ] {
        let rest = step(operation, Binding::HttpJson).cancelling(&opened(url), "a/b").unwrap();
        assert_eq!(rest.url.as_str(), "https://a.example/rest/tasks/a%2Fb:cancel");
    }
    assert!(step(Operation::Send, Binding::JsonRpc).cancelling(&opened("https://a.example/rpc"), "t").is_none());
}
