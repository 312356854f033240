//! What the tests of AOS share: an event for every hook, what it could be changed to, and readers that must succeed.

mod changes;
mod contradictions;
mod envelopes;
mod examples;
mod properties;
mod reading;
mod table;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolgate_model::guard::{
    AgentRef, Content, Dialect, File, Finding, Hook, HookEvent, Part, PartBody, PolicyRef, VerdictKind,
};
use toolgate_model::time::Timestamp;

use super::*;
use crate::jsonrpc::{Id, RpcError};
use crate::{GuardianDecision, GuardianResponse};

const DIALECTS: [Dialect; 2] = [Dialect::Aos, Dialect::Joch];
const FORMS: [ModifiedForm; 2] = [ModifiedForm::Whole, ModifiedForm::Fragment];

fn now() -> Timestamp {
    Timestamp::parse("2026-05-10T10:35:00.250Z").unwrap()
}

fn read_one(message: &Value) -> Message {
    match read(message.to_string().as_bytes(), now()).unwrap() {
        Incoming::Single(message) => message,
        Incoming::Batch(_) => panic!("one message was sent"),
    }
}

fn question(message: &Value) -> HookQuestion {
    match read_one(message) {
        Message::Hook(question) => *question,
        other => panic!("{other:?} to {message}"),
    }
}

fn refused(message: &Value) -> (Option<Id>, RpcError) {
    match read_one(message) {
        Message::Invalid { id, error } => (id, error),
        other => panic!("{other:?} to {message}"),
    }
}

/// The path that a refusal of params names.
fn invalid_member(message: &Value) -> String {
    let (id, error) = refused(message);
    assert!(id.is_some() && error.code == -32602, "{error:?}");
    let path = error.data.unwrap()["path"].as_str().unwrap().to_owned();
    assert!(error.message.contains(&format!("`{path}`")), "{}", error.message);
    path
}

/// One of our own questions.
fn asked(hook: Hook) -> Value {
    ask(&event(hook), "q-1", Dialect::Joch).unwrap()
}

/// Our answer that this is to be used instead.
fn modify(question: &HookQuestion, content: &Content<'_>, form: ModifiedForm) -> Value {
    let response =
        Response { kind: VerdictKind::Modify, content: Some(content), form, ..plain(VerdictKind::Modify, "redacted") };
    write(question, &response)
}

fn plain(kind: VerdictKind, reason: &str) -> Response<'_> {
    Response { kind, reason, codes: &[], policy: None, data: None, content: None, form: ModifiedForm::Whole }
}

/// A guardian's answer to one of our own questions.
fn given(result: Value, event: &HookEvent<'_>) -> Result<GuardianResponse, toolgate_model::guard::FailureClass> {
    let response = json!({"jsonrpc": "2.0", "id": "q-1", "result": result});
    read_response(response.to_string().as_bytes(), "q-1", event)
}

/// An event with all that its hook can tell on the wire.
fn event(hook: Hook) -> HookEvent<'static> {
    let is_tool = matches!(hook, Hook::ToolCallRequest | Hook::ToolCallResult);
    let method = match hook {
        Hook::Mcp(toolgate_model::guard::Direction::Outbound) => Some("tools/call"),
        Hook::A2aSend => Some("message/send"),
        Hook::A2aStream => Some("SendStreamingMessage"),
        Hook::A2aCancel => Some("tasks/cancel"),
        Hook::A2aGetTask => Some("GetTask"),
        Hook::A2aNotificationConfig => Some("tasks/pushNotificationConfig/set"),
        Hook::A2aOther => Some("ListTasks"),
        _ => None,
    };
    let tool = match hook {
        _ if is_tool => Some("zendesk.create_ticket"),
        Hook::Mcp(_) if method.is_some() => Some("send_email"),
        _ => None,
    };
    HookEvent {
        hook,
        agent: AgentRef { id: "support-triage".into(), name: Some("Support Triage".into()) },
        tool: tool.map(Cow::Borrowed),
        execution: is_tool.then_some(Cow::Borrowed("exec-1")),
        session: Some("session-1".into()),
        turn: Some("turn-1".into()),
        step: Some("step-1".into()),
        user: Some("user:ann".into()),
        method: method.map(Cow::Borrowed),
        reasoning: Some("because".into()),
        time: now(),
        content: content(hook, "4111 1111"),
    }
}

/// Content of a hook's kind with a text in it.
fn content(hook: Hook, text: &str) -> Content<'static> {
    let text = text.to_owned();
    match hook {
        Hook::AgentTrigger | Hook::Message(_) => Content::Parts(vec![
            Part { body: PartBody::Text(text), metadata: Some(json!({"lang": "en"})) },
            Part { body: PartBody::Data(json!({"a": [1, null]})), metadata: None },
            Part {
                body: PartBody::File(File {
                    name: Some("a.txt".to_owned()),
                    mime_type: None,
                    place: json!({"uri": "file:///a.txt"}),
                }),
                metadata: None,
            },
        ]),
        Hook::ToolCallRequest => arguments(json!({"subject": "Refund", "body": text, "count": 2, "nothing": null})),
        Hook::ToolCallResult => Content::Result { value: Cow::Owned(json!(["one", text])), is_error: false },
        Hook::MemoryContextRetrieval | Hook::MemoryStore => Content::Memory(vec!["one".to_owned(), text]),
        Hook::KnowledgeRetrieval => Content::Knowledge {
            query: Some("refunds".to_owned()),
            keywords: vec!["refund".to_owned()],
            results: vec![Finding {
                id: "doc-1".to_owned(),
                content: text,
                mime_type: Some("text/plain".to_owned()),
                metadata: Some(json!({"page": 1})),
            }],
        },
        Hook::Mcp(toolgate_model::guard::Direction::Outbound) => message(json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "send_email", "arguments": {"body": text}},
        })),
        Hook::Mcp(_) => message(json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"text": text}]}})),
        _ => message(json!({"jsonrpc": "2.0", "id": 7, "params": {"id": "task-1", "note": text}})),
    }
}

fn arguments(value: Value) -> Content<'static> {
    let Value::Object(members) = value else { panic!("arguments are an object") };
    Content::Arguments(Cow::Owned(members))
}

fn message(value: Value) -> Content<'static> {
    Content::Message(Cow::Owned(value))
}

fn without(object: &Value, names: &[&str]) -> Value {
    let members: Map<_, _> = object.as_object().unwrap().clone();
    Value::Object(members.into_iter().filter(|(name, _)| !names.contains(&name.as_str())).collect())
}
