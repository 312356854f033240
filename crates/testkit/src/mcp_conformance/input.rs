//! The tools of the fixture that need input of the client: in several rounds in the modern era, by requests to the client in
//! the legacy one.

use serde_json::{Map, Value, json};

use super::tools::{CAPABILITIES, tool};
use super::{Outcome, invalid, members, text};

/// The tools of an era.
pub(super) fn listed(modern: bool) -> Vec<Value> {
    let names: &[&str] = match modern {
        true => &[
            "input_required_result_elicitation",
            "input_required_result_sampling",
            "input_required_result_list_roots",
            "input_required_result_request_state",
            "input_required_result_multiple_inputs",
            "input_required_result_multi_round",
            "input_required_result_tampered_state",
            "input_required_result_capabilities",
            "streaming_elicitation",
        ],
        false => &["elicitation_sep1034_defaults", "elicitation_sep1330_enums"],
    };
    let nothing = json!({"type": "object"});
    let mut tools: Vec<Value> = names.iter().map(|name| tool(name, "Needs input.", &nothing)).collect();
    if !modern {
        let with = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        tools.push(tool("sampling", "Has a model generate a message.", &with("prompt")));
        tools.push(tool("elicitation", "Needs input.", &with("message")));
    }
    tools
}

/// Calls a tool of the modern era; `None` for one that is not here.
pub(super) fn call(params: &Value) -> Option<Outcome> {
    let name = params["name"].as_str()?;
    let responses = members(params, "inputResponses");
    let state = params["requestState"].as_str();
    let outcome = match name {
        "input_required_result_elicitation" | "streaming_elicitation" => match responses.get("user_name") {
            Some(response) if response["content"]["name"].is_string() => done(&responses),
            _ => required(json!({"user_name": form("What is your name?", "name", "string")}), None),
        },
        "input_required_result_sampling" if responses.contains_key("capital_question") => done(&responses),
        "input_required_result_sampling" => {
            required(json!({"capital_question": sampling("What is the capital of France?")}), None)
        }
        "input_required_result_list_roots" if responses.contains_key("client_roots") => done(&responses),
        "input_required_result_list_roots" => required(json!({"client_roots": roots()}), None),
        "input_required_result_request_state" | "input_required_result_tampered_state" => match state {
            Some("state of the server") if responses.contains_key("confirm") => done(&responses),
            Some(_) => invalid("the state is not one of this server", json!({})),
            None => required(json!({"confirm": form("Please confirm", "ok", "boolean")}), Some("state of the server")),
        },
        "input_required_result_multiple_inputs" if responses.len() >= 3 && state == Some("all") => done(&responses),
        "input_required_result_multiple_inputs" => {
            let requests = json!({
                "user_name": form("What is your name?", "name", "string"),
                "greeting": sampling("Generate a greeting"),
                "client_roots": roots()
            });
            required(requests, Some("all"))
        }
        "input_required_result_multi_round" => match state {
            None => required(json!({"step1": form("Step 1: What is your name?", "name", "string")}), Some("one")),
            Some("one") if responses.contains_key("step1") => {
                required(json!({"step2": form("Step 2: What is your favorite color?", "color", "string")}), Some("two"))
            }
            Some("two") if responses.contains_key("step2") => done(&responses),
            Some(_) => invalid("the state is not one of this server", json!({})),
        },
        "input_required_result_capabilities" => {
            let can = members(&params["_meta"], CAPABILITIES);
            let mut requests = Map::new();
            if can.contains_key("elicitation") {
                requests.insert("name".to_owned(), form("What is your name?", "name", "string"));
            }
            if can.contains_key("sampling") {
                requests.insert("greeting".to_owned(), sampling("Generate a greeting"));
            }
            required(Value::Object(requests), None)
        }
        _ => return None,
    };
    Some(outcome)
}

/// The prompt of the modern era that needs input; `None` for another one.
pub(super) fn prompt(params: &Value) -> Option<Outcome> {
    if params["name"] != "input_required_result_prompt" {
        return None;
    }
    Some(match members(params, "inputResponses").get("user_context") {
        Some(response) => {
            let content = json!({"type": "text", "text": response["content"].to_string()});
            Outcome::Result(json!({"messages": [{"role": "user", "content": content}]}))
        }
        None => {
            required(json!({"user_context": form("What context should the prompt use?", "context", "string")}), None)
        }
    })
}

/// Calls a tool of the legacy era; `None` for one that is not here.
pub(super) fn ask(params: &Value) -> Option<Outcome> {
    let arguments = &params["arguments"];
    let (method, params) = match params["name"].as_str()? {
        "sampling" => ("sampling/createMessage", sampling_params(arguments["prompt"].as_str().unwrap_or_default())),
        "elicitation" => {
            let properties = json!({"username": {"type": "string"}, "email": {"type": "string"}});
            let schema = json!({"type": "object", "properties": properties, "required": ["username", "email"]});
            ("elicitation/create", json!({"message": arguments["message"], "requestedSchema": schema}))
        }
        "elicitation_sep1034_defaults" => ("elicitation/create", elicitation(&defaults())),
        "elicitation_sep1330_enums" => ("elicitation/create", elicitation(&enums())),
        _ => return None,
    };
    let result = |response: &Value| match response.get("result") {
        Some(result) => text(&format!("The client responded {result}")),
        None => {
            let mut failed = text(&format!("The client did not respond: {}", response["error"]["message"]));
            failed["isError"] = json!(true);
            failed
        }
    };
    Some(Outcome::Asked { method, params, result })
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string", "description": "User status", "enum": ["active", "inactive", "pending"],
            "default": "active"
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": true}
    })
}

fn enums() -> Value {
    let titled = |names: [&str; 3]| {
        let options = [("value1", names[0]), ("value2", names[1]), ("value3", names[2])];
        json!(options.map(|(value, title)| json!({"const": value, "title": title})))
    };
    json!({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])}}
    })
}

fn elicitation(properties: &Value) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": []});
    json!({"message": "Please review the form", "requestedSchema": schema})
}

fn required(requests: Value, state: Option<&str>) -> Outcome {
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    Outcome::Result(result)
}

fn done(responses: &Map<String, Value>) -> Outcome {
    Outcome::Result(text(&format!("The client responded {}", json!(responses))))
}

fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

fn sampling(prompt: &str) -> Value {
    json!({"method": "sampling/createMessage", "params": sampling_params(prompt)})
}

fn sampling_params(prompt: &str) -> Value {
    let content = json!({"type": "text", "text": prompt});
    json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100})
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}
