//! MCP mappings are read strictly, belong to mounted servers only, and let no call set what belongs to the protocol.

use serde_json::{Value, json};

use super::*;
use crate::client_input::{InputOrigin, ServerState};
use crate::credential::ServiceName;
use crate::id::CredentialId;
use crate::service::ServiceDefinition;
use crate::time::Timestamp;

fn mounted(tool: Value) -> Value {
    json!({"service": "files", "version": "1", "source": "mcp", "tools": {"read": tool}})
}

fn read(mapping: Value) -> McpMapping {
    let definition = ServiceDefinition::from_json(&mounted(json!({"mcp": mapping}))).unwrap();
    assert_eq!(ServiceDefinition::from_json(&definition.to_json()).as_ref(), Ok(&definition));
    definition.tools.into_values().next().unwrap().mcp.unwrap()
}

fn refusal(definition: &Value) -> String {
    ServiceDefinition::from_json(definition).unwrap_err().to_string()
}

#[test]
fn a_mapping_reads_back_as_it_was_written() {
    let mapping = read(json!({"method": "tools/call", "name": "read_file"}));
    assert_eq!(mapping, McpMapping::of_tool("read_file"));
    let pinned = definition_hash(&json!({"name": "read_file"}));
    let full =
        json!({"method": "tools/call", "name": "a/b c", "definition_hash": pinned, "hidden_characters": "strip"});
    assert_eq!(read(full.clone()).to_json(), full);
    for (word, method) in McpMethod::WORDS.iter().filter(|(_, method)| *method != McpMethod::CallTool) {
        assert_eq!(read(json!({"method": word})), McpMapping::of_method(*method));
    }
}

#[test]
fn what_is_no_mapping_is_refused_by_its_path() {
    for (mapping, expected) in [
        (json!({"method": "tools/list"}), "`tools.read.mcp.method` must be one of tools/call, "),
        (json!({"name": "a"}), "`tools.read.mcp.method` is missing"),
        (json!({"method": "tools/call"}), "`tools.read.mcp.name` is missing: "),
        (json!({"method": "tools/call", "name": "a\nb"}), "`tools.read.mcp.name` must not contain "),
        (json!({"method": "prompts/get", "name": "a"}), "`tools.read.mcp.name` must not be set: "),
        (json!({"method": "tools/call", "name": "a", "pin": 1}), "`tools.read.mcp.pin` is unknown; "),
        (
            json!({"method": "tools/call", "name": "a", "definition_hash": "sha256:12"}),
            "`tools.read.mcp.definition_hash` must be sha256: ",
        ),
        (
            json!({"method": "tools/call", "name": "a", "hidden_characters": "hide"}),
            "`tools.read.mcp.hidden_characters` must be one of show, strip, keep",
        ),
    ] {
        let error = refusal(&mounted(json!({"mcp": mapping})));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn tools_of_mounted_servers_and_no_others_have_a_mapping() {
    let mapping = json!({"method": "tools/call", "name": "a"});
    let http = json!({"method": "GET", "path": "/a"});
    assert!(refusal(&mounted(json!({}))).starts_with("`tools.read.mcp` is missing: "));
    let both = mounted(json!({"mcp": mapping, "http": http}));
    assert!(refusal(&both).starts_with("`tools.read.http` must not be set "));
    let mut connector = mounted(json!({"mcp": mapping}));
    connector["source"] = json!("connector");
    assert!(refusal(&connector).starts_with("`tools.read.mcp` must not be set "));
}

fn message(mapping: &McpMapping, parameters: &Value) -> Result<Value, String> {
    let message = mapping.message(parameters.as_object().unwrap(), None)?;
    assert!(message.starts_with(mapping.method.opening().as_bytes()));
    Ok(serde_json::from_slice(&message).unwrap())
}

#[test]
fn the_parameters_of_a_tool_are_its_arguments_and_nothing_else_of_the_request() {
    let parameters = json!({"name": "other", "_meta": {"a": 1}, "arguments": {}, "\"": "\u{0}\"}"});
    let expected = json!({
        "jsonrpc": "2.0", "method": "tools/call", "params": {"name": "read \"file\"", "arguments": parameters}
    });
    assert_eq!(message(&McpMapping::of_tool("read \"file\""), &parameters), Ok(expected));
}

#[test]
fn other_methods_take_only_the_members_that_they_have() {
    for (word, method) in McpMethod::WORDS.iter().filter(|(_, method)| *method != McpMethod::CallTool) {
        let mapping = McpMapping::of_method(*method);
        let members = method.members().unwrap();
        let params: Map<String, Value> = members.iter().map(|&name| (name.to_owned(), json!("a"))).collect();
        let expected = json!({"jsonrpc": "2.0", "method": word, "params": params});
        assert_eq!(message(&mapping, &Value::Object(params)), Ok(expected));
        let expected = json!({"jsonrpc": "2.0", "method": word, "params": {}});
        assert_eq!(message(&mapping, &json!({})), Ok(expected));
        for unknown in ["_meta", "requestState", "method"] {
            assert_eq!(message(&mapping, &json!({unknown: 1})), Err(unknown.to_owned()));
        }
    }
}

#[test]
fn input_of_the_client_goes_beside_the_arguments_where_the_method_takes_any() {
    let origin = InputOrigin {
        service: ServiceName::parse("mounted").unwrap(),
        endpoint: None,
        credential: CredentialId::new(Timestamp::from_millis(1).unwrap(), [1; 10]),
        asked: vec!["who".to_owned()],
        state: Some(ServerState::new("s\"1".to_owned()).unwrap()),
    };
    let responses = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
    let responses = responses.as_object().cloned().unwrap();
    let input = ClientInput { responses: responses.clone(), origin: Some(origin), ..ClientInput::default() };
    for (word, method) in McpMethod::WORDS {
        let mapping = match method {
            McpMethod::CallTool => McpMapping::of_tool("a"),
            method => McpMapping::of_method(*method),
        };
        let message = mapping.message(&Map::new(), Some(&input)).unwrap();
        let message: Value = serde_json::from_slice(&message).unwrap();
        let (sent, state) = (message["params"].get("inputResponses"), message["params"].get("requestState"));
        match method.asks() {
            true => assert_eq!((sent, state), (Some(&json!(responses)), Some(&json!("s\"1"))), "{word}"),
            false => assert_eq!((sent, state), (None, None), "{word}"),
        }
    }
}

#[test]
fn the_hash_is_of_what_a_person_accepts() {
    let definition = json!({
        "name": "a", "title": "A", "description": "Reads.", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "icons": [{"src": "https://a.example/i"}]
    });
    let hash = definition_hash(&definition);
    assert!(hash.starts_with("sha256:") && hash.len() == 71);
    for member in PINNED {
        let mut changed = definition.clone();
        changed[member] = json!({"type": "object", "description": "other"});
        assert_ne!(definition_hash(&changed), hash, "{member}");
        changed.as_object_mut().unwrap().remove(member);
        assert_ne!(definition_hash(&changed), hash, "{member}");
    }
    let mut same = definition.clone();
    same["_meta"] = json!({"request": 7});
    assert_eq!(definition_hash(&same), hash);
}
