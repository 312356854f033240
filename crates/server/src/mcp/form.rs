//! What a request is a call of: a tool, a resource or a prompt. They differ in how what came of the call is written. That a tool
//! was refused is a result, which the model reads; that a resource was is an error, because there is no result to put it in.

use serde_json::{Map, Value, json};
use toolgate_gate::call::{CallResult, Denial};
use toolgate_model::credential::ServiceName;

use super::call::TOOL_CALL;
use super::discover::cached;
use super::era::Era;
use super::forward::{LIFETIME, names};
use super::reply::RpcError;
use super::result;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    Tool,
    Resource {
        /// As the client named it.
        uri: String,
        service: ServiceName,
        /// Whether the client named the service.
        is_qualified: bool,
    },
    Prompt,
}

impl Form {
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Tool => TOOL_CALL,
            Self::Resource { .. } => "resources/read",
            Self::Prompt => "prompts/get",
        }
    }

    /// The result of a call that has ended.
    pub(super) fn written(
        &self,
        era: Era,
        outcome: Result<CallResult, Denial>,
    ) -> Result<Map<String, Value>, RpcError> {
        match self {
            Self::Tool => result::of_outcome(outcome),
            Self::Prompt => members(outcome),
            Self::Resource { uri, service, is_qualified } => {
                let mut found = members(outcome).map_err(|error| about(error, uri))?;
                // A client that reads a URI of the server gets that one in the error.
                if let (true, Some(Value::Array(contents))) = (is_qualified, found.get_mut("contents")) {
                    contents.iter_mut().for_each(|content| names::rename(content, "uri", service));
                }
                if era.is_modern() {
                    cached(&mut found, LIFETIME);
                }
                Ok(found)
            }
        }
    }

    /// The error where there is no result, with these members for programs.
    pub(super) fn unfinished(
        &self,
        reason: String,
        details: Map<String, Value>,
    ) -> Result<Map<String, Value>, RpcError> {
        if *self != Self::Tool {
            return Err(RpcError { data: Some(Value::Object(details)), ..RpcError::internal(reason) });
        }
        let mut members = result::error_result(&reason);
        for (name, value) in details {
            result::set_meta(&mut members, &format!("toolgate/{name}"), value);
        }
        Ok(members)
    }
}

/// The members of a result that is the response itself.
pub(super) fn members(outcome: Result<CallResult, Denial>) -> Result<Map<String, Value>, RpcError> {
    match outcome {
        Ok(result) if result.outcome.error.is_none() => match result.outcome.result {
            Some(Value::Object(members)) => Ok(members),
            _ => Err(RpcError::internal("the mounted server returned no object")),
        },
        Ok(result) => {
            let code = refused_by_server(result.outcome.result.as_ref());
            let failure = result::failure(Ok(result));
            Err(RpcError { code: code.unwrap_or(failure.code), ..failure })
        }
        denied => Err(result::failure(denied)),
    }
}

/// The code of a server's error that says that the request is wrong, and not the server.
fn refused_by_server(result: Option<&Value>) -> Option<i64> {
    let code = result?.get("error")?.get("code")?.as_i64()?;
    // The second is what a missing resource had before 2026-07-28.
    matches!(code, -32602 | -32002).then_some(-32602)
}

/// Names the resource that the client has asked for in the error of a server that does not have it.
fn about(error: RpcError, uri: &str) -> RpcError {
    let is_wrong = error.code == RpcError::invalid_params("").code;
    if is_wrong { RpcError { data: Some(json!({"uri": uri})), ..error } } else { error }
}
