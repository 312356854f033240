//! Tasks of a peer belong to the agent that began them, on every way to them.

use serde_json::{Value, json};

use super::network::{FORMS, Network};
use crate::world::text;

#[test]
fn a_task_of_another_agent_looks_like_one_that_does_not_exist() {
    let network = Network::open();
    let other = network.other("other");
    let began = network.through(&network.clerk, FORMS[0], &json!([{"do": "send", "text": "hello secret"}]), &[]);
    let (task, context) = (text(&began[0], "/state/task"), text(&began[0], "/state/context"));
    let unknown = "00000000-0000-0000-0000-000000000000";
    for form in FORMS {
        let steps = json!([
            {"do": "get", "task": "$task"},
            {"do": "cancel", "task": "$task"},
            {"do": "subscribe", "task": "$task"},
            {"do": "send", "text": "hello a", "task": "$task"},
            {"do": "send", "text": "hello b", "context": "$context"},
            {"do": "send", "text": "hello c", "reference": "$task"},
            {"do": "send", "text": "hello d", "task": "$task", "streaming": true},
        ]);
        let before = network.peer.received().len();
        let foreign = network.through(&other, form, &steps, &[("task", task), ("context", context)]);
        let nowhere = network.through(&other, form, &steps, &[("task", unknown), ("context", unknown)]);
        for (foreign, nowhere) in foreign.iter().zip(&nowhere) {
            assert_eq!(foreign["error"], "TaskNotFoundError", "{form:?}: {foreign}");
            assert_eq!(foreign["text"], nowhere["text"], "{form:?}");
        }
        assert_eq!(network.peer.received().len(), before, "nothing of it reaches the peer");
    }
    // The tools are the same ones, whoever calls them how.
    for (tool, parameters) in [
        ("get", json!({"id": task})),
        ("cancel", json!({"id": task})),
        ("send", json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [], "taskId": task}})),
        ("send", json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [], "task_id": task}})),
        ("send", json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [], "context_id": context}})),
        ("v03.get", json!({"id": task})),
    ] {
        let call = json!({"tool": format!("travel.{tool}"), "parameters": parameters});
        other.invokes(call).refused(404, "PEER_TASK_NOT_FOUND");
    }
    let owned = network.through(&network.clerk, FORMS[1], &json!([{"do": "get", "task": "$task"}]), &[("task", task)]);
    assert_eq!(owned[0]["id"], task);
}

#[test]
fn a_list_of_tasks_shows_those_of_the_caller() {
    let network = Network::open();
    let other = network.other("other");
    let steps = |text: &str| json!([{"do": "send", "text": text}, {"do": "list"}]);
    for form in &FORMS[..2] {
        let mine = network.through(&network.clerk, *form, &steps("hello one"), &[]);
        let theirs = network.through(&other, *form, &steps("hello two"), &[]);
        let tasks = |line: &Value| line["tasks"].as_array().unwrap().clone();
        let mine = tasks(&mine[1]);
        assert!(!mine.is_empty() && mine.iter().all(|task| !task.to_string().contains("hello two")));
        assert!(tasks(&theirs[1]).iter().all(|task| !task.to_string().contains("hello one")));
    }
}

#[test]
fn no_configuration_of_push_notifications_reaches_a_peer() {
    let network = Network::open();
    for form in FORMS {
        let steps = json!([
            {"do": "send", "text": "hello push", "push": "http://127.0.0.1:9/hook"},
            {"do": "send", "text": "hello push", "push": "http://127.0.0.1:9/hook", "streaming": true},
        ]);
        for came in network.through(&network.clerk, form, &steps, &[]) {
            assert!(text(&came, "/text").contains("push notifications"), "{form:?}: {came}");
        }
    }
    let call = |configuration: Value| {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello push"}]});
        let parameters = json!({"message": message, "configuration": configuration});
        network.clerk.invokes(json!({"tool": "travel.send", "parameters": parameters}))
    };
    for name in ["taskPushNotificationConfig", "task_push_notification_config", "pushNotificationConfig"] {
        call(json!({name: {"url": "http://127.0.0.1:9/hook"}})).refused(400, "PARAMETERS_INVALID");
    }
    assert!(!network.peer.has_received("push"));
}
