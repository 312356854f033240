//! Writes our responses, with the members of AOS and those of Joch side by side. A modification that cannot be
//! expressed becomes a denial and is never dropped.

use serde_json::{Map, Value, json};
use toolgate_model::guard::{Content, PolicyRef, VerdictKind};
use toolgate_model::time::Timestamp;

use super::request::{Form, HookQuestion};
use super::shape::{may_change, same_identity, shape};
use super::{VERSION, mcp, payload};
use crate::jsonrpc::{self, Id, RpcError};

/// The code of a denial because the hook, or its form, cannot express the modification.
const MODIFY_UNSUPPORTED: &str = "modify_unsupported";

/// The code of a denial because the call needs an approval first.
const APPROVAL_REQUIRED: &str = "approval_required";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModifiedForm {
    /// The whole request, modified.
    #[default]
    Whole,
    /// Only the modified members of the payload.
    Fragment,
}

#[derive(Debug, Clone)]
pub struct Response<'a> {
    /// Allow, modify or deny; AOS has no ask, which is sent as a denial.
    pub kind: VerdictKind,
    /// A sentence for the agent and the user.
    pub reason: &'a str,
    /// Machine-readable reasons.
    pub codes: &'a [&'a str],
    /// The rule that decided.
    pub policy: Option<&'a PolicyRef>,
    /// Additional data.
    pub data: Option<Value>,
    /// The modified content.
    pub content: Option<&'a Content<'a>>,
    pub form: ModifiedForm,
}

/// Writes the response to a question.
pub fn write(question: &HookQuestion, response: &Response<'_>) -> Value {
    let change = response.content.map(|content| change(question, content, response.form));
    let mut codes = response.codes.to_vec();
    let mut add = |code| {
        if !codes.contains(&code) {
            codes.push(code);
        }
    };
    let (decision, modified) = match (response.kind, change) {
        (VerdictKind::Deny, _) => ("deny", None),
        (VerdictKind::Ask, _) => {
            add(APPROVAL_REQUIRED);
            ("deny", None)
        }
        (VerdictKind::Allow, None) => ("allow", None),
        (VerdictKind::Allow | VerdictKind::Modify, Some(Some(modified))) => ("modify", Some(modified)),
        (VerdictKind::Allow, Some(None)) | (VerdictKind::Modify, None | Some(None)) => {
            add(MODIFY_UNSUPPORTED);
            ("deny", None)
        }
    };
    let mut result = Map::new();
    let mut put = |name: &str, value: Value| result.insert(name.to_owned(), value);
    put("decision", json!(decision));
    for name in ["message", "reason", "reasoning"] {
        put(name, json!(response.reason));
    }
    if !codes.is_empty() {
        put("reasonCode", json!(codes));
    }
    if let Some(policy) = response.policy {
        put("policyId", json!(policy.id));
        put("policyVersion", json!(policy.version));
    }
    if let Some(data) = &response.data {
        put("data", data.clone());
    }
    if let Some(modified) = modified {
        put("modifiedRequest", Value::Object(modified));
    }
    jsonrpc::success(&question.id, Value::Object(result))
}

/// Writes an error; `None` if the id could not be read.
pub fn write_error(id: Option<&Id>, error: &RpcError) -> Value {
    jsonrpc::failure(id, error)
}

/// Writes the response to a ping.
pub fn write_pong(id: &Id, now: Timestamp, metadata: Option<Value>) -> Value {
    let mut result = json!({"status": "connected", "version": VERSION, "timestamp": now});
    if let (Some(metadata), Value::Object(members)) = (metadata, &mut result) {
        members.insert("metadata".to_owned(), metadata);
    }
    jsonrpc::success(id, result)
}

/// The modification as `modifiedRequest`; `None` if it cannot be expressed.
fn change(question: &HookQuestion, content: &Content<'_>, modified_form: ModifiedForm) -> Option<Map<String, Value>> {
    let HookQuestion { event, request, form, .. } = question;
    if !may_change(event.hook, event.method.as_deref()) {
        return None;
    }
    if let (Content::Message(before), Content::Message(after)) = (&event.content, content)
        && !same_identity(event.hook, before, after)
    {
        return None;
    }
    let mut whole = request.clone();
    let sent = payload_of(&mut whole, question)?;
    let members = payload::write(event.hook, content, Some(sent))?;
    if modified_form == ModifiedForm::Fragment {
        let changed = members.iter().filter(|(name, value)| sent.get(name.as_str()) != Some(*value));
        let changed: Map<String, Value> = changed.map(|(name, value)| (name.clone(), value.clone())).collect();
        return Some(if changed.is_empty() { members } else { changed });
    }
    if *form == Form::BareMessage {
        let message = members.get("message")?.as_object()?;
        *sent = mcp::rewrap(sent, message);
    } else {
        sent.extend(members);
    }
    Some(whole)
}

/// The payload in a request.
fn payload_of<'v>(request: &'v mut Map<String, Value>, question: &HookQuestion) -> Option<&'v mut Map<String, Value>> {
    if question.form == Form::BesideId {
        return Some(request);
    }
    let params = request.get_mut("params")?.as_object_mut()?;
    match (question.form, shape(question.event.hook).holder) {
        (Form::Usual, Some(holder)) => params.get_mut(holder)?.as_object_mut(),
        _ => Some(params),
    }
}
