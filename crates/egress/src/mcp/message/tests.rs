//! Messages are written as the protocol says, and read strictly.

use serde_json::json;
use toolgate_model::trace_context::TraceParent;

use super::*;

fn traced() -> TracedCall {
    let context = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    TracedCall { context, parent: None, state: Some("vendor=\"1\"".into()), is_exported: true }
}

fn written(request: &Request<'_>, era: McpEra, traced: Option<&TracedCall>) -> Value {
    strict_json::parse(&request.write(7, era, traced)).unwrap()
}

#[test]
fn a_rendered_message_gets_its_id_and_meta() {
    let (mapping, arguments) = (McpMapping::of_tool("echo"), json!({"a": "}"}));
    let rendered = mapping.message(arguments.as_object().unwrap(), None).unwrap();
    let request = Request::rendered(&mapping, Cow::Owned(rendered), &arguments);
    assert_eq!(request.name.as_deref(), Some("echo"));
    let params = json!({"name": "echo", "arguments": {"a": "}"}});
    let legacy = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    assert_eq!(written(&request, McpEra::Legacy, None), legacy);
    let modern = written(&request, McpEra::Modern, Some(&traced()));
    assert_eq!((&modern["params"]["name"], &modern["params"]["arguments"]), (&params["name"], &params["arguments"]));
    assert_eq!(
        modern["params"]["_meta"],
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": {},
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=\"1\""
        })
    );
}

#[test]
fn a_request_without_parameters_is_valid_too() {
    for era in [McpEra::Legacy, McpEra::Modern] {
        let request = Request::list_tools(None);
        assert_eq!(written(&request, era, None)["method"], "tools/list");
        assert_eq!(written(&Request::list_tools(Some("a\"b")), era, Some(&traced()))["params"]["cursor"], "a\"b");
    }
    assert_eq!(
        written(&Request::initialize(InputCapabilities::default()), McpEra::Legacy, None)["params"]["protocolVersion"],
        "2025-11-25"
    );
    assert_eq!(serde_json::from_slice::<Value>(&cancelled(3)).unwrap()["params"]["requestId"], json!(3));
    let refused: Value = serde_json::from_slice(&refusal(&json!("a\"b"), "elicitation/create")).unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a\"b"), &json!(-32601)));
    let alive: Value = serde_json::from_slice(&refusal(&json!(1), "ping")).unwrap();
    assert_eq!(alive["result"], json!({}));
}

#[test]
fn an_observed_request_has_a_token_for_progress() {
    let mut request = Request::list_tools(None);
    request.observed = true;
    for era in [McpEra::Legacy, McpEra::Modern] {
        assert_eq!(written(&request, era, Some(&traced()))["params"]["_meta"]["progressToken"], 7);
    }
    let read = |params: Value| progress(json!({"method": PROGRESS, "params": params}).to_string().as_bytes());
    let (token, read_back) = read(json!({"progressToken": 7, "progress": 0.5, "message": "half"})).unwrap();
    assert_eq!((token, read_back.progress, read_back.message.as_deref()), (7, 0.5, Some("half")));
    assert_eq!(read(json!({"progressToken": "7", "progress": 1})), None);
}

#[test]
fn an_envelope_tells_what_a_message_is() {
    let of = |message: Value| Envelope::of(message.to_string().as_bytes());
    assert_eq!(of(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), Ok(Envelope::Response(Some(1))));
    assert_eq!(of(json!({"id": "x", "error": {}})), Ok(Envelope::Response(None)));
    assert_eq!(of(json!({"id": null, "error": {}})), Ok(Envelope::Response(None)));
    let request = Envelope::Request { id: json!("a"), method: "ping".to_owned() };
    assert_eq!(of(json!({"id": "a", "method": "ping"})), Ok(request));
    let notification = Envelope::Notification { method: "notifications/message".to_owned() };
    assert_eq!(of(json!({"method": "notifications/message", "params": {}})), Ok(notification));
    for malformed in [json!({}), json!([]), json!({"id": 1}), json!({"id": [], "method": "a"})] {
        assert_eq!(of(malformed), Err(Malformed));
    }
    assert_eq!(Envelope::of(br#"{"id":1,"id":2,"result":{}}"#), Err(Malformed));
}

#[test]
fn only_the_response_to_the_request_is_taken() {
    let read = |text: &str| response(text.as_bytes(), 7);
    assert!(matches!(read(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#), Ok(Ok(result)) if result["a"] == 1));
    assert!(matches!(read(r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#), Ok(Ok(_))));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a"}}"#),
        Ok(Err(RpcError { code: -32700, .. }))
    ));
    for (text, expected) in [
        (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, "has the id of another request"),
        (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, "has the id of another request"),
        (r#"{"jsonrpc":"2.0","id":8,"error":{"code":1}}"#, "has the id of another request"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "has the id of another request"),
        (r#"{"id":7,"result":{}}"#, "is not a JSON-RPC 2.0 message"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1}}"#, "has neither a result nor an error"),
        (r#"{"jsonrpc":"2.0","id":7,"result":[]}"#, "has neither a result nor an error"),
        (r#"{"jsonrpc":"2.0","id":7,"error":{}}"#, "has an error without a code"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}"#, "has the same key twice"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{}"#, "is not valid JSON"),
        ("[]", "is not a JSON-RPC message"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
