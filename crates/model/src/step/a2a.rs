//! A call that sends a message to another agent, or asks about one of its tasks.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use self::events::Events;
use super::{StepError, StepQuestion, StepStream, StreamEvent, StreamMode};
use crate::a2a::{Binding, Named, Operation, Version, member, named_in_request, named_in_result, same_identity};
use crate::guard::{Content, Hook};
use crate::service::reading::{Fields, refuse, text};
use crate::service::{DefinitionError, RenderedBody, RenderedRequest};
use crate::strict_json;
use crate::text::check_line;

mod events;

#[cfg(test)]
mod tests;

/// The id of every request: there is one in each HTTP request.
const ID: u64 = 1;
/// The longest tenant of an interface, in bytes.
const TENANT_LIMIT: usize = 256;

/// A call that sends a message to another agent, or asks about one of its tasks.
///
/// Its parameters are those of the operation in the version of its interface. Its result is what came over the interface:
/// a whole JSON-RPC response, or the body of an HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct A2aStep {
    pub operation: Operation,
    pub binding: Binding,
    pub version: Version,
    /// The tenant that the agent's interface names for its callers.
    pub tenant: Option<String>,
}

impl A2aStep {
    pub(super) fn from_json(value: &Value, path: &str) -> Result<Self, DefinitionError> {
        let fields = Fields::of(value, path, &["binding", "kind", "operation", "tenant", "version"])?;
        let operation = fields.need("operation", |value, path| {
            let operation = Operation::parse(text(value, path)?).filter(|operation| !operation.is_push());
            let reason = "must be card, cancel, get, list, send, stream or subscribe";
            operation.ok_or_else(|| refuse(path, reason))
        })?;
        let binding = fields.need("binding", |value, path| {
            Binding::parse(text(value, path)?).ok_or_else(|| refuse(path, "must be JSONRPC or HTTP+JSON"))
        })?;
        let version = fields.need("version", |value, path| {
            let version = text(value, path)?;
            let known = Version::ALL.into_iter().find(|known| known.as_str() == version);
            known.ok_or_else(|| refuse(path, "must be 1.0 or 0.3"))
        })?;
        let tenant = fields.read("tenant", |value, path| {
            let tenant = text(value, path)?;
            check_line(tenant, TENANT_LIMIT).map_err(|error| refuse(path, error.to_string()))?;
            Ok(tenant.to_owned())
        })?;
        if operation.method(version).is_none() {
            return Err(refuse(&fields.at("operation"), "is not one of version 0.3"));
        }
        Ok(Self { operation, binding, version, tenant })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::from_iter([
            ("kind".to_owned(), json!("a2a")),
            ("operation".to_owned(), json!(self.operation.as_str())),
            ("binding".to_owned(), json!(self.binding.as_str())),
            ("version".to_owned(), json!(self.version.as_str())),
        ]);
        members.extend(self.tenant.as_ref().map(|tenant| ("tenant".to_owned(), json!(tenant))));
        Value::Object(members)
    }

    /// Refuses what may not be sent: ids that are none, tenants, and configurations of push notifications, which would let
    /// the agent send what it likes past the gate.
    pub(super) fn check(&self, parameters: &Value) -> Result<(), StepError> {
        self.named(parameters)?;
        let Some(members) = parameters.as_object() else { return Err(StepError::new("", "must be an object")) };
        let is_set = |value: &Value| !matches!(value, Value::Null) && value.as_str() != Some("");
        if let Some((name, _)) = member::all(members, "tenant").find(|(_, value)| is_set(value)) {
            let reason = "must be left out: the gate names the tenant that the agent gives its callers";
            return Err(StepError::new(format!("/{name}"), reason));
        }
        for (name, configuration) in member::all(members, "configuration") {
            let names = configuration.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            if let Some((push, _)) =
                names.into_iter().find(|(name, _)| member::plain(name).contains("pushnotification"))
            {
                let reason = "must be left out: push notifications do not pass this gate";
                return Err(StepError::new(format!("/{name}/{push}"), reason));
            }
        }
        Ok(())
    }

    /// The tasks and contexts that a request names. The caller must own all of them.
    pub fn named(&self, parameters: &Value) -> Result<Named, StepError> {
        named_in_request(self.operation, parameters)
    }

    /// The tasks and contexts that a result names, which belong to the caller from then on. An error for what is no response
    /// of an agent. An error of the agent names nothing.
    pub fn named_by(&self, result: &Value) -> Result<Named, StepError> {
        match self.body(result)? {
            Some(body) => named_in_result(body),
            None => Ok(Named::default()),
        }
    }

    /// The same for an event of a stream.
    pub fn named_by_event(&self, event: &StreamEvent) -> Result<Named, StepError> {
        let unreadable = || StepError::new("", "the agent streams an event that is not JSON");
        match strict_json::parse(event.data.as_bytes()) {
            Ok(data) if data.get("jsonrpc").is_some() => {
                data.get("result").map_or_else(|| Ok(Named::default()), named_in_result)
            }
            Ok(data) => named_in_result(&data),
            Err(_) if event.name.as_deref() == Some("error") => Ok(Named::default()),
            Err(_) => Err(unreadable()),
        }
    }

    /// What an agent returned, without its envelope; `None` for an error.
    fn body<'a>(&self, result: &'a Value) -> Result<Option<&'a Value>, StepError> {
        let invalid = |reason: &str| StepError::new("", format!("the agent's response {reason}"));
        let members = result.as_object().ok_or_else(|| invalid("is no object"))?;
        if self.binding == Binding::HttpJson {
            // How the gate shows a body that is not JSON.
            let is_raw = members.len() == 2 && members.contains_key("content_type");
            return if is_raw { Err(invalid("is not JSON")) } else { Ok(Some(result)) };
        }
        match (members.get("result"), members.get("error").filter(|error| !error.is_null())) {
            (Some(body), None) => Ok(Some(body)),
            (None | Some(Value::Null), Some(Value::Object(_))) => Ok(None),
            _ => Err(invalid("has neither a result nor an error")),
        }
    }

    /// Keeps those tasks of a list whose ids are among these, and counts again. How many there are elsewhere is not told.
    pub fn keep_tasks(&self, result: &mut Value, is_owned: impl Fn(&str) -> bool) {
        let list = match self.binding {
            Binding::HttpJson => Some(result),
            Binding::JsonRpc => result.get_mut("result"),
        };
        let Some(list) = list.filter(|_| self.operation == Operation::List) else { return };
        let mut kept = 0;
        if let Some(Value::Array(tasks)) = member::find_mut(list, "tasks") {
            tasks.retain(|task| task.get("id").and_then(Value::as_str).is_some_and(&is_owned));
            kept = tasks.len();
        }
        for counted in ["totalsize", "pagesize"] {
            if let Some(count) = member::find_mut(list, counted) {
                let shown = if counted == "pagesize" { count.as_u64().unwrap_or(0) } else { 0 };
                *count = json!(shown.max(u64::try_from(kept).unwrap_or(u64::MAX)));
            }
        }
    }

    /// What is sent: over JSON-RPC the parameters in their envelope.
    pub(super) fn sent<'a>(&self, parameters: &'a Value) -> Cow<'a, Value> {
        if self.binding == Binding::HttpJson {
            return Cow::Borrowed(parameters);
        }
        let mut params = parameters.clone();
        if let (Some(tenant), Some(members)) = (&self.tenant, params.as_object_mut()) {
            members.retain(|name, _| !member::is(name, "tenant"));
            members.insert("tenant".to_owned(), json!(tenant));
        }
        Cow::Owned(self.envelope(params))
    }

    fn envelope(&self, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": ID, "method": self.method(), "params": params})
    }

    fn method(&self) -> &'static str {
        // INVARIANT: `from_json` takes no operation without a method in its version.
        self.operation.method(self.version).unwrap_or(self.operation.guardian_name())
    }

    pub(super) fn request_hooks(&self) -> &'static [Hook] {
        hooks(self.operation)
    }

    pub(super) fn response_hooks(&self) -> &'static [Hook] {
        hooks(self.operation)
    }

    pub(super) fn of_request(&self, parameters: &Value) -> Result<Vec<StepQuestion>, StepError> {
        let message = self.envelope(parameters.clone());
        Ok(vec![self.question(message, self.operation.request_modifiable())])
    }

    pub(super) fn of_response(&self, _parameters: &Value, result: &Value) -> Result<Vec<StepQuestion>, StepError> {
        Ok(vec![self.question(self.response(result.clone()), self.operation.response_modifiable())])
    }

    fn question(&self, message: Value, modifiable: bool) -> StepQuestion {
        StepQuestion {
            method: Some(self.operation.guardian_name().to_owned()),
            modifiable,
            ..StepQuestion::new(self.operation.hook(), Content::Message(Cow::Owned(message)), Vec::new())
        }
    }

    /// A result, or an event of a stream, as a message of the protocol.
    fn response(&self, body: Value) -> Value {
        if self.binding == Binding::JsonRpc { body } else { json!({"jsonrpc": "2.0", "id": ID, "result": body}) }
    }

    pub(super) fn replace(
        &self,
        document: &mut Value,
        question: &StepQuestion,
        content: Content<'static>,
    ) -> Result<(), StepError> {
        let (Content::Message(before), Content::Message(after)) = (&question.content, content) else {
            return Err(StepError::new("", "a guardian replaced a message between agents by other content"));
        };
        let mut after = after.into_owned();
        if !same_identity(before, &after) {
            let reason = "a guardian changed what identifies a message between agents: its method, ids, role or state";
            return Err(StepError::new("", reason));
        }
        let is_request = before.get("method").is_some();
        let part = match (is_request, self.binding) {
            (true, _) => after.get_mut("params"),
            (false, Binding::HttpJson) => after.get_mut("result"),
            (false, Binding::JsonRpc) => Some(&mut after),
        };
        let part = part.ok_or_else(|| StepError::new("", "a guardian removed the content of a message"))?;
        *document = part.take();
        Ok(())
    }

    pub(super) fn stream(&self, _parameters: &Value, mode: StreamMode) -> StepStream {
        StepStream::new(Events::new(self.clone(), mode))
    }

    /// The request that cancels the task of a stream that was cut, from the request that opened it: cutting a stream does
    /// not stop the work.
    pub fn cancelling(&self, opened: &RenderedRequest, task: &str) -> Option<RenderedRequest> {
        if !self.operation.streams() || task.is_empty() {
            return None;
        }
        let cancel = Self { operation: Operation::Cancel, ..self.clone() };
        let (mut url, body) = match self.binding {
            Binding::JsonRpc => (opened.url.clone(), cancel.sent(&json!({"id": task})).into_owned()),
            Binding::HttpJson => {
                let path = opened.url.path();
                let base = match self.operation {
                    Operation::Stream => path.strip_suffix("/message:stream")?,
                    _ => path.rsplit_once("/tasks/")?.0,
                };
                let mut url = opened.url.clone();
                url.set_path(base);
                url.path_segments_mut().ok()?.pop_if_empty().extend(["tasks", &format!("{task}:cancel")]);
                (url, json!({}))
            }
        };
        url.set_query(None);
        Some(RenderedRequest {
            method: crate::service::HttpMethod::Post,
            url,
            headers: opened.headers.clone(),
            body: Some(RenderedBody { content_type: "application/json".into(), bytes: body.to_string().into_bytes() }),
        })
    }
}

/// Each operation has one hook, in both directions.
fn hooks(operation: Operation) -> &'static [Hook] {
    match operation.hook() {
        Hook::A2aSend => &[Hook::A2aSend],
        Hook::A2aStream => &[Hook::A2aStream],
        Hook::A2aCancel => &[Hook::A2aCancel],
        Hook::A2aGetTask => &[Hook::A2aGetTask],
        Hook::A2aNotificationConfig => &[Hook::A2aNotificationConfig],
        _ => &[Hook::A2aOther],
    }
}
