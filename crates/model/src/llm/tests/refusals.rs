//! What may not be sent.

use super::*;

fn refused(api: &str, more: Value, request: Value) -> Option<String> {
    let mut whole = json!({"model": "m"});
    whole.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
    step(api, more).check(&whole).err().map(|error| error.path)
}

#[test]
fn tools_of_the_provider_need_a_definition_that_has_them() {
    for (api, request) in [
        ("responses", json!({"tools": [{"type": "mcp", "server_url": "https://evil.test", "authorization": "k"}]})),
        ("responses", json!({"tools": [{"type": "web_search_2025_08_26"}]})),
        ("responses", json!({"tools": [{"type": "function", "name": "f"}, {"type": "code_interpreter"}]})),
        ("responses", json!({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]})),
        ("responses", json!({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "file_search"}]}]})),
        ("chat", json!({"web_search_options": {}})),
        ("messages", json!({"tools": [{"type": "web_fetch_20260318", "name": "web_fetch"}]})),
        ("messages", json!({"tools": [{"type": "code_execution_20260521", "name": "x"}]})),
        ("messages", json!({"tools": [{"type": "functional", "name": "x"}]})),
    ] {
        assert!(refused(api, json!({}), request.clone()).is_some(), "{api} {request}");
    }
    for (api, request) in [
        (
            "responses",
            json!({"tools": [{"type": "function"}, {"type": "custom"}, {"type": "local_shell"},
            {"type": "shell", "environment": {"type": "local"}}, {"type": "computer_use_preview"}]}),
        ),
        ("chat", json!({"tools": [{"type": "function", "function": {"name": "f"}}]})),
        (
            "messages",
            json!({"tools": [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "e"}, {"type": "memory_20250818", "name": "memory"}]}),
        ),
    ] {
        assert_eq!(refused(api, json!({}), request.clone()), None, "{api} {request}");
    }
    let allowed = json!({"hosted_tools": ["web_search"]});
    assert_eq!(refused("responses", allowed.clone(), json!({"tools": [{"type": "web_search"}]})), None);
    assert_eq!(
        refused("messages", allowed.clone(), json!({"tools": [{"type": "web_search_20260318", "name": "w"}]})),
        None
    );
    assert!(refused("messages", allowed, json!({"tools": [{"type": "web_fetch_20260318", "name": "w"}]})).is_some());
}

#[test]
fn nothing_of_the_provider_is_shared_between_callers() {
    for (api, request) in [
        ("responses", json!({"background": true})),
        ("responses", json!({"previous_response_id": "resp_1"})),
        ("responses", json!({"conversation": "conv_1"})),
        ("responses", json!({"prompt": {"id": "pmpt_1"}})),
        ("responses", json!({"store": true})),
        ("chat", json!({"store": true})),
        ("messages", json!({"container": "c"})),
        ("responses", json!({"input": [{"type": "item_reference", "id": "msg_1"}]})),
        ("responses", json!({"input": [{"id": "msg_1"}]})),
        ("responses", json!({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]})),
        ("chat", json!({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]})),
        (
            "messages",
            json!({"messages": [{"role": "user", "content": [{"type": "document", "source":
            {"type": "file", "file_id": "f"}}]}]}),
        ),
        (
            "messages",
            json!({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]}),
        ),
    ] {
        assert!(refused(api, json!({"fetched_urls": true}), request.clone()).is_some(), "{api} {request}");
    }
    assert_eq!(
        refused("responses", json!({}), json!({"store": false, "background": false, "conversation": null})),
        None
    );
}

#[test]
fn addresses_are_fetched_by_the_provider_only_where_an_operator_says_so() {
    let picture = |url: &str| {
        json!({"messages": [{"role": "user", "content":
        [{"type": "image_url", "image_url": {"url": url}}]}]})
    };
    assert!(refused("chat", json!({}), picture("https://internal.test/a.png")).is_some());
    assert_eq!(refused("chat", json!({}), picture("data:image/png;base64,AA==")), None);
    assert_eq!(refused("chat", json!({"fetched_urls": true}), picture("https://a.test/a.png")), None);
    let input = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    assert!(
        refused("responses", json!({}), input(json!({"type": "input_image", "image_url": "https://a.test"}))).is_some()
    );
    assert!(
        refused("responses", json!({}), input(json!({"type": "input_file", "file_url": "https://a.test"}))).is_some()
    );
    let source = json!({"messages": [{"role": "user", "content": [{"type": "image", "source":
        {"type": "url", "url": "https://a.test"}}]}]});
    assert!(refused("messages", json!({}), source).is_some());
}

#[test]
fn unknown_members_choices_models_tiers_and_betas_are_refused() {
    assert_eq!(refused("chat", json!({}), json!({"base_url": "https://evil.test"})), Some("/base_url".to_owned()));
    assert_eq!(refused("chat", json!({"members": ["moderation"]}), json!({"moderation": {}})), None);
    assert_eq!(refused("chat", json!({}), json!({"n": 5})), Some("/n".to_owned()));
    assert_eq!(refused("chat", json!({"max_choices": 5}), json!({"n": 5})), None);
    assert_eq!(refused("chat", json!({"models": ["n"]}), json!({})), Some("/model".to_owned()));
    let priced = json!({"prices": {"*": {"input": 1}}});
    assert_eq!(refused("chat", priced, json!({"service_tier": "priority"})), Some("/service_tier".to_owned()));
    assert_eq!(refused("messages", json!({}), json!({"anthropic_beta": "x"})), Some("/anthropic_beta".to_owned()));
    let betas = json!({"betas": ["thinking-*"]});
    assert_eq!(refused("messages", betas, json!({"anthropic_beta": "thinking-2026, thinking-2027"})), None);
    assert!(step("chat", json!({})).check(&json!({"messages": []})).is_err(), "a request names a model");
}

#[test]
fn a_definition_is_written_as_it_is_read() {
    let all = json!({"betas": ["a-*"], "hosted_tools": ["web_search"], "members": ["m"], "models": ["x"],
        "fetched_urls": true, "max_choices": 2, "default_output_tokens": 10,
        "fail_over": ["other", {"service": "third", "models": {"x": "y"}}], "prices": {"x": {"input": "1.5", "output": "2"}}});
    let read = step("chat", all);
    assert_eq!(Step::from_json(&read.to_json(), "step").unwrap(), read);
    for wrong in [
        json!({"api": "chat", "kind": "model", "unknown": 1}),
        json!({"kind": "model"}),
        json!({"kind": "model", "api": "completions"}),
        json!({"kind": "model", "api": "chat", "max_choices": 0}),
        json!({"kind": "model", "api": "chat", "fail_over": [{"models": {}}]}),
    ] {
        assert!(Step::from_json(&wrong, "step").is_err(), "{wrong}");
    }
}
