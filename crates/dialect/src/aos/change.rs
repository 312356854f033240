//! Applies a guardian's modification. A guardian may send the whole request or only the changed members of the payload.
//! Only the content is used; everything else must equal what was sent, because a guardian does not choose the agent,
//! the tool or the question.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_model::guard::{Content, Dialect, FailureClass, Hook, HookEvent};

use super::ask::ask;
use super::fields::Object;
use super::shape::{Shape, may_change, same_identity, shape};
use super::{mcp, outputs, payload};

/// The content of `event` as modified by `change`.
pub(crate) fn apply(change: &Value, id: &str, event: &HookEvent<'_>) -> Result<Content<'static>, FailureClass> {
    let bad = FailureClass::BadModify;
    let shape = shape(event.hook);
    // The context of AOS includes all of Joch's, so it serves for comparing with both.
    let sent = ask(event, id, Dialect::Aos).ok_or(bad)?;
    let sent_params = sent.get("params").and_then(Value::as_object).ok_or(bad)?;
    let sent_method = sent.get("method").and_then(Value::as_str);
    if !may_change(event.hook, sent_method) {
        return Err(bad);
    }
    let change = change.as_object().ok_or(bad)?;
    let whole = change.contains_key("method") && change.contains_key("params");
    let params = if whole { Some(whole_params(change, &sent, event.hook)?) } else { None };
    let (given, sent_payload) = match (&params, shape.holder) {
        (None, None) => (change, sent_params),
        (None, Some(holder)) => (change, object(sent_params, holder)?),
        (Some(params), None) => (params, sent_params),
        (Some(params), Some(holder)) => {
            compare(params, sent_params, &[holder], &["context"])?;
            (object(params, holder)?, object(sent_params, holder)?)
        }
    };
    let merged = merge(given, sent_payload, shape)?;
    let content = payload::read(event.hook, &Object::new(&merged, "")).map_err(|_| bad)?;
    settle(content, event)
}

/// The `params` of a whole request, which must be about the same event.
fn whole_params(change: &Map<String, Value>, sent: &Value, hook: Hook) -> Result<Map<String, Value>, FailureClass> {
    let sent = sent.as_object().ok_or(FailureClass::BadModify)?;
    compare(change, sent, &["params"], &["jsonrpc", "id", "method"])?;
    let params = object(change, "params")?;
    if let Hook::Mcp(_) = hook
        && mcp::is_bare(&Object::new(params, "params")).map_err(|_| FailureClass::BadModify)?
    {
        let message = Value::Object(mcp::unwrap(params));
        return Ok(mcp::rewrap(params, &Map::from_iter([("message".to_owned(), message)])));
    }
    Ok(params.clone())
}

/// Overlays the changed members on what was sent.
fn merge(
    given: &Map<String, Value>,
    sent: &Map<String, Value>,
    shape: Shape,
) -> Result<Map<String, Value>, FailureClass> {
    compare(given, sent, shape.content, shape.identity)?;
    let mut merged = sent.clone();
    let mut changed = false;
    for name in shape.content {
        let Some(value) = given.get(*name).filter(|value| !value.is_null()) else { continue };
        changed = true;
        match (merged.get_mut(*name), value) {
            // The outputs may be changed without repeating the failure flag.
            (Some(Value::Object(old)), Value::Object(new)) if *name == "result" => old.extend(new.clone()),
            _ => drop(merged.insert((*name).to_owned(), value.clone())),
        }
    }
    // A modification without any known member would be lost.
    if changed { Ok(merged) } else { Err(FailureClass::BadModify) }
}

/// Checks that all members except `content` equal what was sent.
fn compare(
    given: &Map<String, Value>,
    sent: &Map<String, Value>,
    content: &[&str],
    identity: &[&str],
) -> Result<(), FailureClass> {
    for (name, value) in given.iter().filter(|(name, _)| !content.contains(&name.as_str())) {
        if !repeats(value, sent.get(name)) {
            let is_identity = identity.contains(&name.as_str());
            return Err(if is_identity { FailureClass::IdentityChange } else { FailureClass::BadModify });
        }
    }
    Ok(())
}

/// Whether a value contains nothing but what was sent. It may omit members or set them to null, as typed programs do:
/// none of them is used.
fn repeats(given: &Value, sent: Option<&Value>) -> bool {
    match (given, sent) {
        (Value::Null, _) => true,
        (Value::Object(given), Some(Value::Object(sent))) => {
            given.iter().all(|(name, value)| repeats(value, sent.get(name)))
        }
        (given, sent) => Some(given) == sent,
    }
}

/// Checks the modified content against the content that was shown.
fn settle(content: Content<'static>, event: &HookEvent<'_>) -> Result<Content<'static>, FailureClass> {
    match (content, &event.content) {
        (Content::Result { value, is_error }, Content::Result { value: shown, .. }) => {
            let value = outputs::restore(value.into_owned(), shown).ok_or(FailureClass::BadModify)?;
            Ok(Content::Result { value: Cow::Owned(value), is_error })
        }
        (Content::Message(message), Content::Message(shown)) => {
            if same_identity(event.hook, shown, &message) {
                Ok(Content::Message(message))
            } else {
                Err(FailureClass::IdentityChange)
            }
        }
        (content, _) => Ok(content),
    }
}

fn object<'v>(members: &'v Map<String, Value>, name: &str) -> Result<&'v Map<String, Value>, FailureClass> {
    members.get(name).and_then(Value::as_object).ok_or(FailureClass::BadModify)
}
