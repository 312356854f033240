//! What guardians are asked about a whole answer: its texts, and the tools that it calls.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::api::Api;
use crate::guard::{Content, Hook, Part, PartBody, Role};
use crate::step::{StepError, StepQuestion};
use crate::strict_json;

/// Fields with reasoning that compatible providers return.
pub(super) const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// What guardians are asked about an answer, in order.
pub(crate) fn questions(api: Api, answer: &Value) -> Result<Vec<StepQuestion>, StepError> {
    if !api.generates() || is_error(answer) {
        return Ok(Vec::new());
    }
    let list = |name: &str| {
        answer.get(name).and_then(Value::as_array).ok_or_else(|| unreadable(&format!("/{name}"), "a list"))
    };
    let mut found = Questions::default();
    match api {
        Api::Chat => {
            for (number, choice) in list("choices")?.iter().enumerate() {
                found.message(choice.get("message").unwrap_or(&Value::Null), &format!("/choices/{number}/message"))?;
            }
        }
        Api::Messages => {
            for (number, block) in list("content")?.iter().enumerate() {
                found.block(block, &format!("/content/{number}"))?;
            }
        }
        _ => {
            for (number, item) in list("output")?.iter().enumerate() {
                found.item(item, &format!("/output/{number}"))?;
            }
        }
    }
    Ok(found.0)
}

/// An error of the provider, or the record of an answer that was streamed and judged as it came.
fn is_error(answer: &Value) -> bool {
    let has = |name: &str| answer.get(name).is_some_and(|value| !value.is_null());
    (has("error") || has("streamed")) && !has("choices") && !has("content") && !has("output")
}

pub(super) fn unreadable(at: &str, wanted: &str) -> StepError {
    StepError::new(at, format!("{at} of the provider's answer cannot be checked: it must be {wanted}"))
}

#[derive(Default)]
pub(super) struct Questions(pub(super) Vec<StepQuestion>);

impl Questions {
    fn text(&mut self, at: String, text: &str, modifiable: bool) {
        if !text.trim().is_empty() {
            self.0.push(said(vec![at], text, modifiable));
        }
    }

    /// Something of which only the whole can be shown.
    fn data(&mut self, at: &str, value: &Value) {
        self.0.push(shown(at, value));
    }

    fn call(&mut self, call: Call<'_>) -> Result<(), StepError> {
        self.0.push(call.question()?);
        Ok(())
    }

    /// A message of a chat completion.
    fn message(&mut self, message: &Value, at: &str) -> Result<(), StepError> {
        for name in ["content", "refusal"].into_iter().chain(REASONING) {
            match message.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => self.text(format!("{at}/{name}"), text, true),
                Some(Value::Array(parts)) => {
                    for (number, part) in parts.iter().enumerate() {
                        let at = format!("{at}/{name}/{number}");
                        match part.get("text").and_then(Value::as_str) {
                            Some(text) => self.text(format!("{at}/text"), text, true),
                            None => self.data(&at, part),
                        }
                    }
                }
                Some(other) => self.data(&format!("{at}/{name}"), other),
            }
        }
        if let Some(audio) = message.get("audio").filter(|audio| !audio.is_null()) {
            self.data(&format!("{at}/audio"), audio);
        }
        if let Some(call) = message.get("function_call").filter(|call| !call.is_null()) {
            let name = string(call, "name");
            self.call(Call {
                id: None,
                name,
                at: &format!("{at}/function_call/arguments"),
                input: call.get("arguments"),
            })?;
        }
        let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (number, call) in calls.iter().enumerate() {
            let at = format!("{at}/tool_calls/{number}");
            let id = string(call, "id");
            match call.get("custom") {
                Some(custom) => {
                    let at = format!("{at}/custom/input");
                    self.call(Call { id, name: string(custom, "name"), at: &at, input: custom.get("input") })?;
                }
                None => {
                    let function = call.get("function").unwrap_or(&Value::Null);
                    let at = format!("{at}/function/arguments");
                    self.call(Call { id, name: string(function, "name"), at: &at, input: function.get("arguments") })?;
                }
            }
        }
        Ok(())
    }

    /// A block of Anthropic's messages.
    fn block(&mut self, block: &Value, at: &str) -> Result<(), StepError> {
        match string(block, "type") {
            Some("text") => self.text(format!("{at}/text"), string(block, "text").unwrap_or_default(), true),
            // It is signed: the provider takes it back only as it is.
            Some("thinking") => {
                self.text(format!("{at}/thinking"), string(block, "thinking").unwrap_or_default(), false);
            }
            Some("redacted_thinking") => {}
            Some("tool_use") => {
                let (id, name) = (string(block, "id"), string(block, "name"));
                self.call(Call { id, name, at: &format!("{at}/input"), input: block.get("input") })?;
            }
            _ => self.data(at, block),
        }
        Ok(())
    }

    /// An item of a response.
    pub(super) fn item(&mut self, item: &Value, at: &str) -> Result<(), StepError> {
        let kind = string(item, "type");
        let list = |name: &str| item.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let id = string(item, "call_id").or_else(|| string(item, "id"));
        match kind {
            Some("message") => {
                for (number, part) in list("content").iter().enumerate() {
                    let at = format!("{at}/content/{number}");
                    match (string(part, "type"), string(part, "text"), string(part, "refusal")) {
                        (Some("output_text"), Some(text), _) => self.text(format!("{at}/text"), text, true),
                        (Some("refusal"), _, Some(text)) => self.text(format!("{at}/refusal"), text, true),
                        _ => self.data(&at, part),
                    }
                }
            }
            // It may be signed or encrypted as a whole.
            Some("reasoning") => {
                for name in ["summary", "content"] {
                    for (number, part) in list(name).iter().enumerate() {
                        let at = format!("{at}/{name}/{number}/text");
                        self.text(at, string(part, "text").unwrap_or_default(), false);
                    }
                }
            }
            Some("function_call") => {
                let name = string(item, "name");
                self.call(Call { id, name, at: &format!("{at}/arguments"), input: item.get("arguments") })?;
            }
            Some("custom_tool_call") => {
                self.call(Call {
                    id,
                    name: string(item, "name"),
                    at: &format!("{at}/input"),
                    input: item.get("input"),
                })?;
            }
            Some(name @ ("local_shell_call" | "computer_call" | "shell_call")) => {
                self.call(Call { id, name: Some(name), at: &format!("{at}/action"), input: item.get("action") })?;
            }
            Some(name @ "apply_patch_call") => {
                self.call(Call { id, name: Some(name), at: &format!("{at}/operation"), input: item.get("operation") })?;
            }
            Some("compaction") => {}
            _ => self.data(at, item),
        }
        Ok(())
    }
}

/// The text of an answer.
pub(super) fn said(at: Vec<String>, text: &str, modifiable: bool) -> StepQuestion {
    let question = StepQuestion::new(Hook::Message(Role::Agent), Content::Parts(vec![Part::text(text)]), at);
    StepQuestion { modifiable, ..question }
}

/// A part of an answer that is not text.
pub(super) fn shown(at: &str, value: &Value) -> StepQuestion {
    let part = Part { body: PartBody::Data(value.clone()), metadata: None };
    let question = StepQuestion::new(Hook::Message(Role::Agent), Content::Parts(vec![part]), vec![at.to_owned()]);
    StepQuestion { modifiable: false, ..question }
}

/// The call of a tool that the client executes.
pub(super) struct Call<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    /// Where its input stands.
    pub(super) at: &'a str,
    pub(super) input: Option<&'a Value>,
}

impl Call<'_> {
    pub(super) fn question(&self) -> Result<StepQuestion, StepError> {
        let arguments = self.arguments().ok_or_else(|| {
            let tool: String = self.name.unwrap_or_default().chars().take(64).collect();
            StepError::new(self.at, format!("the model calls the tool `{tool}` with arguments that cannot be read"))
        })?;
        let question = StepQuestion::new(
            Hook::ToolCallRequest,
            Content::Arguments(Cow::Owned(arguments)),
            vec![self.at.to_owned()],
        );
        let (tool, execution) = (self.name.map(str::to_owned), self.id.map(str::to_owned));
        Ok(StepQuestion { tool, execution, ..question })
    }

    fn arguments(&self) -> Option<Map<String, Value>> {
        match self.input {
            Some(Value::Object(arguments)) => Some(arguments.clone()),
            // The free text of a custom tool.
            Some(Value::String(text)) if self.at.ends_with("/input") => json!({"input": text}).as_object().cloned(),
            Some(Value::String(text)) => read_arguments(text),
            _ => None,
        }
    }
}

/// The arguments of a tool from their JSON text; a tool without any may have none.
pub(super) fn read_arguments(text: &str) -> Option<Map<String, Value>> {
    if text.trim().is_empty() {
        return Some(Map::new());
    }
    match strict_json::parse(text.as_bytes()) {
        Ok(Value::Object(arguments)) => Some(arguments),
        _ => None,
    }
}

fn string<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
