//! The parts of a message: text, file or data.

use serde_json::{Map, Value, json};
use toolgate_model::guard::{File, Part, PartBody};

use super::fields::{InvalidMember, List, Object};

/// Reads a list of parts. A part without a kind is recognized by its members.
pub(crate) fn read(parts: &List<'_>) -> Result<Vec<Part>, InvalidMember> {
    parts.objects().map(|part| read_part(&part?)).collect()
}

pub(crate) fn write(parts: &[Part]) -> Value {
    parts.iter().map(write_part).collect()
}

/// Reads a part that must be text.
pub(crate) fn read_text(part: &Object<'_>) -> Result<String, InvalidMember> {
    match kind(part)? {
        "text" => Ok(part.text("text")?.to_owned()),
        _ => Err(part.invalid_member("kind", "must be \"text\"")),
    }
}

pub(crate) fn write_text(text: &str) -> Value {
    json!({"kind": "text", "text": text})
}

fn kind<'v>(part: &Object<'v>) -> Result<&'v str, InvalidMember> {
    if let Some(kind) = part.optional_text("kind")? {
        return Ok(kind);
    }
    let found = ["text", "file", "data"].into_iter().find(|kind| part.has(kind));
    found.ok_or_else(|| part.invalid_member("kind", "is missing"))
}

fn read_part(part: &Object<'_>) -> Result<Part, InvalidMember> {
    let body = match kind(part)? {
        "text" => PartBody::Text(part.text("text")?.to_owned()),
        // `null` is valid data.
        "data" => {
            PartBody::Data(part.members().get("data").ok_or_else(|| part.invalid_member("data", "is missing"))?.clone())
        }
        "file" => PartBody::File(read_file(&part.object("file")?)?),
        _ => return Err(part.invalid_member("kind", "must be \"text\", \"file\" or \"data\"")),
    };
    Ok(Part { body, metadata: part.get("metadata").cloned() })
}

/// Bytes or URI of a file are kept together with its other members, so that a guardian sees all of it.
fn read_file(file: &Object<'_>) -> Result<File, InvalidMember> {
    let place: Map<String, Value> = file
        .members()
        .iter()
        .filter(|(name, value)| !matches!(name.as_str(), "name" | "mimeType") && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if place.is_empty() {
        return Err(file.invalid_member("uri", "is missing; send `bytes` or `uri`"));
    }
    Ok(File {
        name: file.optional_text("name")?.map(str::to_owned),
        mime_type: file.optional_text("mimeType")?.map(str::to_owned),
        place: Value::Object(place),
    })
}

fn write_part(part: &Part) -> Value {
    let mut members = Map::new();
    let (kind, body) = match &part.body {
        PartBody::Text(text) => ("text", json!(text)),
        PartBody::Data(data) => ("data", data.clone()),
        PartBody::File(file) => ("file", write_file(file)),
    };
    members.insert("kind".to_owned(), json!(kind));
    members.insert(kind.to_owned(), body);
    if let Some(metadata) = &part.metadata {
        members.insert("metadata".to_owned(), metadata.clone());
    }
    Value::Object(members)
}

fn write_file(file: &File) -> Value {
    let mut members = match &file.place {
        Value::Object(place) => place.clone(),
        place => Map::from_iter([("uri".to_owned(), place.clone())]),
    };
    for (name, text) in [("name", &file.name), ("mimeType", &file.mime_type)] {
        if let Some(text) = text {
            members.insert(name.to_owned(), json!(text));
        }
    }
    Value::Object(members)
}
