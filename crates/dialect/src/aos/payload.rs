//! The payload of each hook: reads it into content and writes it from content.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolgate_model::guard::{Content, Finding, Hook};

use super::fields::{InvalidMember, Object};
use super::{inputs, outputs, parts};

pub(crate) fn read(hook: Hook, payload: &Object<'_>) -> Result<Content<'static>, InvalidMember> {
    let message = |name: &str| -> Result<Content<'static>, InvalidMember> {
        Ok(Content::Message(Cow::Owned(Value::Object(payload.object(name)?.members().clone()))))
    };
    match hook {
        Hook::AgentTrigger | Hook::Message(_) => Ok(Content::Parts(parts::read(&payload.list("content")?)?)),
        Hook::ToolCallRequest => Ok(Content::Arguments(Cow::Owned(inputs::read(payload)?))),
        Hook::ToolCallResult => {
            let result = payload.object("result")?;
            let value = Cow::Owned(outputs::read(&result.list("outputs")?)?);
            Ok(Content::Result { value, is_error: result.flag("isError")?.unwrap_or(false) })
        }
        Hook::MemoryContextRetrieval | Hook::MemoryStore => Ok(Content::Memory(payload.list("memory")?.texts()?)),
        Hook::KnowledgeRetrieval => Ok(Content::Knowledge {
            query: payload.optional_text("query")?.map(str::to_owned),
            keywords: payload.optional_list("keywords")?.map(|list| list.texts()).transpose()?.unwrap_or_default(),
            results: payload.list("results")?.objects().map(|found| read_finding(&found?)).collect::<Result<_, _>>()?,
        }),
        Hook::Mcp(_) => message("message"),
        Hook::A2aSend
        | Hook::A2aStream
        | Hook::A2aCancel
        | Hook::A2aGetTask
        | Hook::A2aNotificationConfig
        | Hook::A2aOther => message("payload"),
    }
}

/// Writes content as members of the payload, in the form of what was sent; `None` if the content is not of the hook's
/// kind.
pub(crate) fn write(
    hook: Hook,
    content: &Content<'_>,
    sent: Option<&Map<String, Value>>,
) -> Option<Map<String, Value>> {
    let one = |name: &str, value: Value| Some(Map::from_iter([(name.to_owned(), value)]));
    match (hook, content) {
        (Hook::AgentTrigger | Hook::Message(_), Content::Parts(list)) => one("content", parts::write(list)),
        (Hook::ToolCallRequest, Content::Arguments(arguments)) => {
            one("inputs", inputs::write(sent.and_then(|sent| sent.get("inputs")), arguments))
        }
        (Hook::ToolCallResult, Content::Result { value, is_error }) => {
            let mut result = match sent.and_then(|sent| sent.get("result")) {
                Some(Value::Object(result)) => result.clone(),
                _ => Map::new(),
            };
            result.insert("outputs".to_owned(), outputs::write(value));
            result.insert("isError".to_owned(), json!(is_error));
            one("result", Value::Object(result))
        }
        (Hook::MemoryContextRetrieval | Hook::MemoryStore, Content::Memory(entries)) => one("memory", json!(entries)),
        (Hook::KnowledgeRetrieval, Content::Knowledge { query, keywords, results }) => {
            let had = |name: &str| sent.is_some_and(|sent| sent.contains_key(name));
            let mut members = Map::new();
            // A member that was sent and removed is written as empty, so that a fragment removes it too.
            if query.is_some() || had("query") {
                members.insert("query".to_owned(), json!(query.as_deref().unwrap_or_default()));
            }
            if !keywords.is_empty() || had("keywords") {
                members.insert("keywords".to_owned(), json!(keywords));
            }
            members.insert("results".to_owned(), results.iter().map(write_finding).collect());
            Some(members)
        }
        (Hook::Mcp(_), Content::Message(message)) if message.is_object() => {
            one("message", message.clone().into_owned())
        }
        (
            Hook::A2aSend
            | Hook::A2aStream
            | Hook::A2aCancel
            | Hook::A2aGetTask
            | Hook::A2aNotificationConfig
            | Hook::A2aOther,
            Content::Message(message),
        ) if message.is_object() => one("payload", message.clone().into_owned()),
        _ => None,
    }
}

fn read_finding(found: &Object<'_>) -> Result<Finding, InvalidMember> {
    Ok(Finding {
        id: found.text("id")?.to_owned(),
        content: found.text("content")?.to_owned(),
        mime_type: found.optional_text("mimeType")?.map(str::to_owned),
        metadata: found.get("metadata").cloned(),
    })
}

fn write_finding(finding: &Finding) -> Value {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(finding.id));
    members.insert("content".to_owned(), json!(finding.content));
    if let Some(mime_type) = &finding.mime_type {
        members.insert("mimeType".to_owned(), json!(mime_type));
    }
    if let Some(metadata) = &finding.metadata {
        members.insert("metadata".to_owned(), metadata.clone());
    }
    Value::Object(members)
}
