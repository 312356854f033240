//! Responses: the success status codes, and the schema of the first success in JSON.

use serde_json::{Map, Value, json};

use super::Import;
use super::finding::Kind;
use super::reference::{Part, below};
use super::schema::{Direction, References};

/// The limit for the schema of a result, in bytes of JSON. It is shown to callers and not enforced; results of large services
/// refer to nearly all of their schemas.
const RETURNS_LIMIT: usize = 24 * 1024;

#[derive(Debug, Default)]
pub(super) struct ResponseSummary {
    /// Success codes and classes; empty if the document has none.
    pub(super) success: Vec<Value>,
    pub(super) returns: Option<Value>,
    pub(super) pointer: String,
}

impl<'a> Import<'a> {
    pub(super) fn summary(&mut self, responses: Option<Part<'a>>) -> ResponseSummary {
        let mut summary = ResponseSummary::default();
        let Some(responses) = responses else { return summary };
        let mut successes = Vec::new();
        for (status, part) in responses.members() {
            match success(status) {
                Some(code) => {
                    summary.success.push(code);
                    successes.push((status, part));
                }
                None if status.starts_with("x-") => self.findings.add(Kind::Extension, &part.pointer, status),
                None => self.findings.add(Kind::ErrorResponse, &part.pointer, status),
            }
        }
        for (status, part) in successes {
            let pointer = part.pointer.clone();
            match self.resolve(part) {
                Ok(part) => self.success(status, &part, &mut summary),
                Err(reason) => self.findings.add(Kind::OtherResponse, &pointer, reason),
            }
        }
        summary
    }

    fn success(&mut self, status: &str, part: &Part<'a>, summary: &mut ResponseSummary) {
        self.known_members(part, &["content", "description", "headers", "links"]);
        for (kind, member) in [(Kind::ResponseHeader, "headers"), (Kind::Link, "links")] {
            for (name, below) in part.get(member).map(|members| members.members()).unwrap_or_default() {
                self.findings.add(kind, &below.pointer, name);
            }
        }
        let content = part.get("content").map(|content| content.members()).unwrap_or_default();
        let json = content.iter().position(|(media_type, _)| is_json(media_type));
        for (position, (media_type, below)) in content.iter().enumerate() {
            if Some(position) != json {
                self.findings.add(Kind::ResponseMediaType, &below.pointer, *media_type);
            }
        }
        let described = json.and_then(|position| content.get(position)).map(|(_, media_type)| media_type);
        if let Some(media_type) = described {
            self.media_type_extras(media_type);
        }
        let Some(schema) = described.and_then(|media_type| media_type.get("schema")) else {
            self.lose_description(part);
            return;
        };
        if !self.keeps_returns || summary.returns.is_some() {
            let kind = if self.keeps_returns { Kind::OtherResponse } else { Kind::ResponseSchema };
            self.findings.add(kind, &schema.pointer, status);
            self.lose_description(part);
            return;
        }
        summary.returns = self.returns(&schema, part);
        summary.pointer = schema.pointer;
    }

    /// The schema of a result, unless it is trivial or too large.
    fn returns(&mut self, schema: &Part<'a>, response: &Part<'a>) -> Option<Value> {
        let mut references = References::new();
        let mut members = match self.schema(schema, Direction::Response, &mut references) {
            Value::Object(members) => members,
            // A schema that accepts everything or nothing is not useful.
            _ => Map::new(),
        };
        match response.get("description") {
            Some(description) if !members.contains_key("description") => {
                members.insert("description".to_owned(), description.value.clone());
            }
            _ => self.lose_description(response),
        }
        let own_size = Value::Object(members.clone()).to_string().len();
        let definitions = self.definitions(Direction::Response, references, RETURNS_LIMIT.saturating_sub(own_size));
        match definitions {
            Ok(_) if own_size > RETURNS_LIMIT => self.too_large(schema, own_size),
            Err(size) => self.too_large(schema, own_size + size),
            Ok(definitions) => {
                if !definitions.is_empty() {
                    members.insert("$defs".to_owned(), Value::Object(definitions));
                }
                Some(Value::Object(members))
            }
        }
    }

    fn lose_description(&mut self, response: &Part<'a>) {
        if let Some(text) = response.text("description").filter(|text| !text.is_empty()) {
            self.findings.add(Kind::ResponseDescription, &below(&response.pointer, "description"), text);
        }
    }

    fn too_large(&mut self, schema: &Part<'a>, size: usize) -> Option<Value> {
        let note = format!("it has {size} bytes with its references; the limit is {RETURNS_LIMIT}");
        self.findings.add(Kind::ResponseSchema, &schema.pointer, note);
        None
    }
}

/// A code or class of success, as definitions write it.
fn success(status: &str) -> Option<Value> {
    if status.eq_ignore_ascii_case("2xx") {
        return Some(json!("2xx"));
    }
    let code = status.parse::<u16>().ok().filter(|code| (200..300).contains(code))?;
    Some(json!(code))
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(essence.as_str(), "application/json" | "text/json" | "*/*" | "application/*") || essence.ends_with("+json")
}
