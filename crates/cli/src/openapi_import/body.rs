//! Request bodies: selects a media type, and converts the members of the body to parameters.

use serde_json::{Value, json};

use super::Import;
use super::finding::Kind;
use super::inputs::{Goes, Input, Inputs};
use super::reference::{Part, below};

use self::members::{Members, Rest};

mod members;

const FORM: &str = "application/x-www-form-urlencoded";

/// What a body adds to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    None,
    Json,
    Form,
}

impl<'a> Import<'a> {
    /// Reads the body of an operation. `allowed` says whether its method can have one at all.
    pub(super) fn request_body(
        &mut self,
        body: Option<Part<'a>>,
        allowed: bool,
        inputs: &mut Inputs,
    ) -> Result<BodyKind, String> {
        let Some(body) = body else { return Ok(BodyKind::None) };
        let pointer = body.pointer.clone();
        let body = self.resolve(body).map_err(|reason| format!("could not read its body: {reason}"))?;
        self.known_members(&body, &["content", "description", "required"]);
        if body.text("description").is_some_and(|text| !text.is_empty()) {
            self.findings.add(Kind::BodyKeyword, &below(&body.pointer, "description"), "description");
        }
        let content = body.get("content").map(|content| content.members()).unwrap_or_default();
        let Some((kind, chosen)) = choose(&content) else {
            for (media_type, part) in &content {
                self.findings.add(Kind::MediaType, &part.pointer, *media_type);
            }
            let listed: Vec<&str> = content.iter().map(|(media_type, _)| *media_type).collect();
            if body.is("required") || listed.is_empty() || !is_empty_allowed(&content) {
                return Err(format!("its body is {}, which is not supported", listed.join(" or ")));
            }
            return Ok(BodyKind::None);
        };
        for (media_type, part) in &content {
            if part.pointer != chosen.pointer {
                self.findings.add(Kind::MediaType, &part.pointer, *media_type);
            } else if media_type.contains('*') {
                self.findings.add(Kind::MediaTypeAssumed, &part.pointer, *media_type);
            }
        }
        self.media_type_extras(&chosen);
        let members = match chosen.get("schema") {
            Some(schema) => self.body_members(&schema, &mut inputs.references, 0),
            None => Ok(Members { rest: Rest::Open(Value::Bool(true)), ..Members::default() }),
        }?;
        if !allowed {
            // Some documents have empty bodies for operations without one.
            self.findings.add(Kind::Body, &pointer, "the method cannot have a body");
            return match members.required.is_empty() && members.alternatives.is_empty() {
                true => Ok(BodyKind::None),
                false => Err("it requires a body, but its method cannot have one".to_owned()),
            };
        }
        if !body.is("required") && !members.required.is_empty() {
            self.findings.add(Kind::BodyRequired, &pointer, "its required members are required");
        }
        self.place(members, kind, inputs);
        Ok(kind)
    }

    /// Makes parameters of the members.
    fn place(&mut self, members: Members, kind: BodyKind, inputs: &mut Inputs) {
        let mut names = std::collections::BTreeMap::new();
        let rest = members.rest.into_schema();
        for (member, (schema, pointer)) in members.properties {
            if schema == Value::Bool(false) {
                // Excludes the name if the body allows further members.
                if rest.is_some() {
                    inputs.forbid(member);
                }
                continue;
            }
            let nested = schema.get("type").is_some_and(|kinds| {
                let is = |kind: &Value| kind == "array" || kind == "object";
                is(kinds) || kinds.as_array().is_some_and(|kinds| kinds.iter().any(is))
            });
            if nested && kind == BodyKind::Form {
                self.findings.add(Kind::FormBrackets, &pointer, member.as_str());
            }
            let required = members.required.contains(&member);
            let (name, wire_name, goes, divider) = (&*member, &*member, Goes::Body, None);
            let input = Input { name, wire_name, goes, divider, schema, required, pointer: &pointer };
            let name = self.add_input(inputs, input);
            names.insert(member, name);
        }
        for member in members.required.iter().filter(|member| !names.contains_key(*member)) {
            let note = format!("{member} is required but not described");
            let schema = rest.clone().unwrap_or_else(|| json!({}));
            self.findings.add(Kind::ParameterAdded, &members.pointer, note);
            let (goes, divider, required, pointer) = (Goes::Body, None, true, &members.pointer);
            let input = Input { name: member, wire_name: member, goes, divider, schema, required, pointer };
            self.add_input(inputs, input);
        }
        inputs.rest = rest;
        let renamed = |member: &String| names.get(member).unwrap_or(member).clone();
        for choice in members.alternatives {
            let choice = choice.iter().map(|required| required.iter().map(renamed).collect()).collect();
            inputs.alternatives.push(choice);
        }
    }

    /// The members of a media type other than its schema.
    pub(super) fn media_type_extras(&mut self, media_type: &Part<'a>) {
        self.known_members(media_type, &["encoding", "example", "examples", "schema"]);
        for name in ["example", "examples"] {
            if let Some(example) = media_type.get(name) {
                self.findings.add(Kind::Example, &example.pointer, name);
            }
        }
        for (name, encoding) in media_type.get("encoding").map(|encoding| encoding.members()).unwrap_or_default() {
            // This is the default here.
            let is_brackets = encoding.text("style") == Some("deepObject") && encoding.members().iter().all(is_deep);
            if !is_brackets {
                self.findings.add(Kind::Encoding, &encoding.pointer, name);
            }
        }
    }
}

/// The media type that is sent: JSON before forms before anything.
fn choose<'a>(content: &[(&'a str, Part<'a>)]) -> Option<(BodyKind, Part<'a>)> {
    let essence = |media_type: &str| media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let wanted = [
        ("application/json", BodyKind::Json),
        (FORM, BodyKind::Form),
        ("*/*", BodyKind::Json),
        ("application/*", BodyKind::Json),
    ];
    wanted.into_iter().find_map(|(name, kind)| {
        let (_, part) = content.iter().find(|(media_type, _)| essence(media_type) == name)?;
        Some((kind, part.clone()))
    })
}

/// Whether an operation makes sense without its body: not when the body is a file or a text.
fn is_empty_allowed(content: &[(&str, Part<'_>)]) -> bool {
    content.iter().all(|(_, part)| {
        let schema = part.get("schema");
        schema.is_some_and(|schema| schema.get("required").is_none() && schema.text("type") == Some("object"))
    })
}

fn is_deep((name, part): &(&str, Part<'_>)) -> bool {
    match *name {
        "style" => true,
        "explode" => part.value == &Value::Bool(true),
        _ => false,
    }
}
