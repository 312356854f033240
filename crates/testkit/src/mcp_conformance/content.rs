//! The resources, prompts and completions of the fixture.

use serde_json::{Value, json};

use super::{Outcome, invalid};

pub(super) const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

pub(super) fn method(method: &str, params: &Value) -> Outcome {
    match method {
        "resources/list" => {
            let resource = |name: &str, kind: &str| json!({"uri": format!("test://{name}"), "name": name, "description": "For tests.", "mimeType": kind});
            let listed = [
                resource("static-text", "text/plain"),
                resource("static-binary", "image/png"),
                resource("watched-resource", "text/plain"),
            ];
            Outcome::Result(json!({"resources": listed}))
        }
        "resources/templates/list" => Outcome::Result(json!({"resourceTemplates": [{
            "uriTemplate": "test://template/{id}/data", "name": "template", "description": "For tests.",
            "mimeType": "application/json"
        }]})),
        "resources/read" => resource(params["uri"].as_str().unwrap_or_default()),
        "prompts/list" => {
            let prompt = |(name, arguments): (&str, &[&str])| {
                let arguments: Vec<Value> =
                    arguments.iter().map(|argument| json!({"name": argument, "required": true})).collect();
                json!({"name": name, "description": "For tests.", "arguments": arguments})
            };
            Outcome::Result(json!({"prompts": PROMPTS.map(prompt)}))
        }
        "prompts/get" => prompt(params),
        "completion/complete" => {
            Outcome::Result(json!({"completion": {"values": ["test1", "test2"], "total": 2, "hasMore": false}}))
        }
        _ => Outcome::Error { code: -32_601, message: "no such method", data: json!({}) },
    }
}

const PROMPTS: [(&str, &[&str]); 5] = [
    ("simple_prompt", &[]),
    ("prompt_with_arguments", &["arg1", "arg2"]),
    ("prompt_with_embedded_resource", &["resourceUri"]),
    ("prompt_with_image", &[]),
    ("input_required_result_prompt", &[]),
];

fn resource(uri: &str) -> Outcome {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text" | "test://watched-resource", _) => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": IMAGE}),
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
        (_, None) => return invalid("no such resource", json!({"uri": uri})),
    };
    Outcome::Result(json!({"contents": [content]}))
}

pub(super) fn prompt(params: &Value) -> Outcome {
    let arguments = &params["arguments"];
    let message = |content: Value| json!({"role": "user", "content": content});
    let said = |text: &str| message(json!({"type": "text", "text": text}));
    let messages = match params["name"].as_str().unwrap_or_default() {
        "simple_prompt" => vec![said("This is a simple prompt for testing.")],
        "prompt_with_arguments" => {
            let (first, second) = (&arguments["arg1"], &arguments["arg2"]);
            vec![said(&format!("Prompt with arguments: arg1={first}, arg2={second}"))]
        }
        "prompt_with_embedded_resource" => {
            let embedded = embedded(arguments["resourceUri"].as_str().unwrap_or_default());
            vec![message(embedded), said("Please process the embedded resource above.")]
        }
        "prompt_with_image" => {
            let image = json!({"type": "image", "data": IMAGE, "mimeType": "image/png"});
            vec![message(image), said("Please analyze the image above.")]
        }
        _ => return invalid("no such prompt", json!({})),
    };
    Outcome::Result(json!({"messages": messages}))
}

/// A resource within a result.
pub(super) fn embedded(uri: &str) -> Value {
    let resource = json!({"uri": uri, "mimeType": "text/plain", "text": "This is an embedded resource content."});
    json!({"type": "resource", "resource": resource})
}
