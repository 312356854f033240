//! What guardians are asked about requests and whole answers, and what is sent.

use super::*;

fn asked(api: &str, request: &Value) -> Vec<String> {
    step(api, json!({})).of_request(request).unwrap().iter().map(brief).collect()
}

#[test]
fn the_first_request_of_a_conversation_starts_the_agent_and_every_later_one_shows_its_history_again() {
    let first = json!({"model": "m", "messages": [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
    ]});
    assert_eq!(
        asked("chat", &first),
        ["system_message: be brief", "agent_trigger: hello|<file>", "user_message: hello|<file>",]
    );
    let later = json!({"model": "m", "messages": [
        {"role": "user", "content": "one"}, {"role": "user", "content": "two"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "user", "content": "three"},
    ]});
    assert_eq!(
        asked("chat", &later),
        ["user_message: one|two", "user_message: three", "tool_call_result: look#c1 \"found\" false",]
    );
}

#[test]
fn a_turn_of_the_model_at_the_end_hides_nothing() {
    let prefilled = json!({"model": "m", "messages": [
        {"role": "user", "content": "hello"}, {"role": "assistant", "content": "Well,"},
    ]});
    assert_eq!(asked("messages", &prefilled), ["agent_trigger: hello", "user_message: hello"]);
}

#[test]
fn texts_and_results_of_all_forms_are_found() {
    let messages = json!({"model": "m", "system": [{"type": "text", "text": "be brief"}], "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "read"},
            {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "page"}},
            {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "hit"}]},
        ]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "is_error": true, "content": [{"type": "text", "text": "no"}]},
        ]},
    ]});
    assert_eq!(
        asked("messages", &messages),
        [
            "system_message: be brief",
            "user_message: read|t|page|hit",
            format!("tool_call_result: look#c1 {} true", json!([{"type": "text", "text": "no"}])).as_str(),
        ]
    );
    let responses = json!({"model": "m", "instructions": "be brief", "input": [
        {"role": "user", "content": "hello"},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]});
    assert_eq!(
        asked("responses", &responses),
        ["system_message: be brief", "user_message: hello", "tool_call_result: look#c1 \"found\" false",]
    );
    assert_eq!(asked("responses", &json!({"input": "hello"})), ["agent_trigger: hello", "user_message: hello"]);
    assert_eq!(asked("input_tokens", &json!({"input": "hello"})), ["user_message: hello"]);
    assert_eq!(asked("embeddings", &json!({"input": ["a", "b"]})), ["user_message: a|b"]);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for (api, request) in [
        ("chat", json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]})),
        ("chat", json!({"messages": [{"role": "ghost", "content": "x"}]})),
        ("chat", json!({})),
        ("messages", json!({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]})),
        ("responses", json!({"input": [{"type": "program", "code": "x"}]})),
        ("embeddings", json!({"input": [[1, 2]]})),
    ] {
        assert!(step(api, json!({})).of_request(&request).is_err(), "{api} {request}");
    }
}

#[test]
fn modified_texts_and_results_stand_where_the_originals_stood() {
    let step = step("messages", json!({}));
    let mut request = json!({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "mail ann@example.org"}, {"type": "image", "source": {"type": "base64", "data": "AA"}},
        {"type": "tool_result", "tool_use_id": "c1", "content": "ann@example.org"},
    ]}]});
    for question in step.of_request(&request.clone()).unwrap() {
        let masked = question.content.to_json().to_string().replace("ann@example.org", "[MASKED]");
        let content = question.content.with_json(serde_json::from_str(&masked).unwrap()).unwrap();
        step.replace(&mut request, &question, content).unwrap();
    }
    let text = request.to_string();
    assert!(!text.contains("ann@example.org") && text.contains("mail [MASKED]"), "{text}");
    assert_eq!(request["messages"][0]["content"][2]["content"], "[MASKED]");
    assert_eq!(request["messages"][0]["content"][1]["source"]["data"], "AA");
}

#[test]
fn the_texts_and_calls_of_whole_answers_are_found_and_modified() {
    let chat = json!({"choices": [{"index": 0, "logprobs": {"content": [{"token": "Hello."}]}, "message": {
    "role": "assistant", "content": "Hello.", "reasoning_content": "hm", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
        {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
    ]}}]});
    let messages = json!({"content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Hello."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
    ]});
    let responses = json!({"output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\":1}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "run", "input": "ls"},
        {"type": "local_shell_call", "call_id": "c3", "action": {"command": ["ls"]}},
        {"type": "web_search_call", "id": "w"},
    ]});
    let look = "tool_call_request: look#c1 {\"at\":1}";
    let run = "tool_call_request: run#c2 {\"input\":\"ls\"}";
    let of = |api: &str, answer: &Value| -> Vec<String> {
        step(api, json!({})).of_response(&json!({}), answer).unwrap().iter().map(brief).collect()
    };
    assert_eq!(of("chat", &chat), ["agent_response: Hello.", "agent_response: hm", look, run]);
    assert_eq!(of("messages", &messages), ["agent_response: hm", "agent_response: Hello.", look]);
    assert_eq!(
        of("responses", &responses),
        [
            "agent_response: hm",
            "agent_response: Hello.",
            look,
            run,
            "tool_call_request: local_shell_call#c3 {\"command\":[\"ls\"]}",
            format!("agent_response: <{}>", json!({"type": "web_search_call", "id": "w"})).as_str(),
        ]
    );
    for (api, mut answer) in [("chat", chat), ("messages", messages), ("responses", responses)] {
        let step = step(api, json!({}));
        for question in step.of_response(&json!({}), &answer.clone()).unwrap() {
            let content = match &question.content {
                Content::Parts(_) => agent("[MASKED]"),
                _ => Content::Arguments(std::borrow::Cow::Owned(json!({"input": "pwd"}).as_object().unwrap().clone())),
            };
            let replaced = step.replace(&mut answer, &question, content);
            assert_eq!(replaced.is_ok(), question.modifiable, "{api} {question:?}");
        }
        let text = answer.to_string();
        assert!(!text.contains("Hello.") && text.contains("pwd"), "{api} {text}");
    }
}

#[test]
fn a_call_whose_arguments_cannot_be_read_and_an_answer_of_another_form_are_errors() {
    let call = |arguments: &str| {
        json!({"choices": [{"message": {"tool_calls": [
        {"id": "c", "function": {"name": "look", "arguments": arguments}}]}}]})
    };
    let chat = step("chat", json!({}));
    for arguments in ["{", "[]", "{\"a\":1,\"a\":2}"] {
        assert!(chat.of_response(&json!({}), &call(arguments)).is_err(), "{arguments}");
    }
    assert_eq!(chat.of_response(&json!({}), &call("")).unwrap().len(), 1);
    assert!(chat.of_response(&json!({}), &json!({"text": "hello"})).is_err());
    assert!(chat.of_response(&json!({}), &json!({"error": {"message": "no"}})).unwrap().is_empty());
}

#[test]
fn nothing_is_kept_at_the_provider_and_a_stream_tells_its_usage() {
    let sent = |api: &str, request: Value| step(api, json!({"default_output_tokens": 99})).sent(&request).into_owned();
    assert_eq!(
        sent("responses", json!({"input": "x", "max_output_tokens": 5})),
        json!({"input": "x", "max_output_tokens": 5, "store": false})
    );
    assert_eq!(
        sent("chat", json!({"stream": true, "max_tokens": 5, "stream_options": {"include_obfuscation": false}})),
        json!({"stream": true, "max_tokens": 5, "stream_options": {"include_obfuscation": false, "include_usage": true}})
    );
    assert_eq!(sent("chat", json!({"messages": []})), json!({"messages": [], "max_completion_tokens": 99}));
    assert_eq!(sent("messages", json!({"max_tokens": 5})), json!({"max_tokens": 5}));
}
