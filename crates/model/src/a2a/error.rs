//! Errors on the wire, in the shapes of both bindings. The text of a refusal reaches people only if official clients keep
//! it, so that the shapes follow what they read.

use serde_json::{Map, Value, json};

/// The domain of the reasons of the protocol.
const DOMAIN: &str = "a2a-protocol.org";
/// The domain of our own.
const OWN_DOMAIN: &str = "toolgate";
/// The type of the detail with the reason.
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $code:literal $http:literal $status:literal $reason:literal,)+) => {
        /// What went wrong, as the protocol names it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorKind {
            $($(#[$doc])* $variant,)+
        }

        impl ErrorKind {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code in JSON-RPC.
            pub fn code(self) -> i64 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }

            /// The status of the HTTP response.
            pub fn http(self) -> u16 {
                match self {
                    $(Self::$variant => $http,)+
                }
            }

            /// The status in the body of that response.
            fn status(self) -> &'static str {
                match self {
                    $(Self::$variant => $status,)+
                }
            }

            /// The reason in the details.
            fn reason(self) -> &'static str {
                match self {
                    $(Self::$variant => $reason,)+
                }
            }
        }
    };
}

kinds! {
    ParseError = -32700 400 "INVALID_ARGUMENT" "PARSE_ERROR",
    InvalidRequest = -32600 400 "INVALID_ARGUMENT" "INVALID_REQUEST",
    MethodNotFound = -32601 404 "NOT_FOUND" "METHOD_NOT_FOUND",
    InvalidParams = -32602 400 "INVALID_ARGUMENT" "INVALID_PARAMS",
    Internal = -32603 500 "INTERNAL" "INTERNAL_ERROR",
    TaskNotFound = -32001 404 "NOT_FOUND" "TASK_NOT_FOUND",
    TaskNotCancelable = -32002 400 "FAILED_PRECONDITION" "TASK_NOT_CANCELABLE",
    PushNotificationNotSupported = -32003 400 "FAILED_PRECONDITION" "PUSH_NOTIFICATION_NOT_SUPPORTED",
    UnsupportedOperation = -32004 400 "FAILED_PRECONDITION" "UNSUPPORTED_OPERATION",
    ContentTypeNotSupported = -32005 400 "INVALID_ARGUMENT" "CONTENT_TYPE_NOT_SUPPORTED",
    InvalidAgentResponse = -32006 500 "INTERNAL" "INVALID_AGENT_RESPONSE",
    ExtendedAgentCardNotConfigured = -32007 400 "FAILED_PRECONDITION" "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ExtensionSupportRequired = -32008 400 "FAILED_PRECONDITION" "EXTENSION_SUPPORT_REQUIRED",
    VersionNotSupported = -32009 400 "FAILED_PRECONDITION" "VERSION_NOT_SUPPORTED",
    /// The gate does not allow it. The protocol has no code for that.
    Denied = -32050 403 "PERMISSION_DENIED" "POLICY_DENIED",
}

/// An error, of the gate or of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aError {
    code: i64,
    http: u16,
    message: String,
    /// Typed details; of an error of 0.3 whatever its agent sent.
    details: Value,
}

impl A2aError {
    /// An error of the gate, with details for programs.
    pub fn new(kind: ErrorKind, message: impl Into<String>, metadata: Map<String, Value>) -> Self {
        // In both bindings metadata are texts.
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let metadata: Map<String, Value> =
            metadata.into_iter().map(|(name, value)| (name, Value::String(text(value)))).collect();
        let info = |domain: &str, reason: &str| json!({"@type": ERROR_INFO, "reason": reason, "domain": domain, "metadata": metadata});
        let details = match kind {
            ErrorKind::Denied => json!([info(OWN_DOMAIN, kind.reason())]),
            _ => json!([info(DOMAIN, kind.reason())]),
        };
        Self { code: kind.code(), http: kind.http(), message: message.into(), details }
    }

    /// The error in a JSON-RPC response of an agent.
    pub fn of_json_rpc(error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(ErrorKind::Internal.code());
        let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == code);
        Self {
            code,
            http: kind.map_or(500, |kind| kind.http()),
            message: message_of(error),
            details: error.get("data").cloned().unwrap_or(Value::Null),
        }
    }

    /// The error in an HTTP response of an agent.
    pub fn of_http(status: u16, body: &Value) -> Self {
        let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
        let details = error.get("details").cloned().unwrap_or(Value::Null);
        let reasons = details.as_array().into_iter().flatten().filter_map(|detail| detail.get("reason")?.as_str());
        let known = reasons.filter_map(|reason| ErrorKind::ALL.iter().find(|kind| kind.reason() == reason)).next();
        let code = match (known, status) {
            (Some(kind), _) => kind.code(),
            (None, 400 | 422) => ErrorKind::InvalidParams.code(),
            (None, 404) => ErrorKind::TaskNotFound.code(),
            (None, 401 | 403) => ErrorKind::UnsupportedOperation.code(),
            (None, _) => ErrorKind::Internal.code(),
        };
        let http = if (400..600).contains(&status) { status } else { 500 };
        Self { code, http, message: message_of(error), details }
    }

    /// The status of the HTTP response in the HTTP binding. Over JSON-RPC errors travel with 200: official clients keep
    /// the text of no other.
    pub fn http(&self) -> u16 {
        self.http
    }

    pub fn code(&self) -> i64 {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The `error` of a JSON-RPC response.
    pub fn json_rpc(&self) -> Value {
        let mut error =
            Map::from_iter([("code".to_owned(), json!(self.code)), ("message".to_owned(), json!(self.message))]);
        if !self.details.is_null() {
            error.insert("data".to_owned(), self.details.clone());
        }
        Value::Object(error)
    }

    /// The body of an HTTP response.
    pub fn http_body(&self) -> Value {
        let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == self.code);
        let mut details = self.details.as_array().cloned().unwrap_or_default();
        if self.code == ErrorKind::Denied.code() {
            // Official clients read only the first reason, and only those of the protocol: without it the text is lost.
            let metadata = details.first().and_then(|info| info.get("metadata")).cloned().unwrap_or_else(|| json!({}));
            let reason = ErrorKind::UnsupportedOperation.reason();
            let known = json!({"@type": ERROR_INFO, "reason": reason, "domain": DOMAIN, "metadata": metadata});
            details.insert(0, known);
        }
        json!({"error": {
            "code": self.http,
            "status": kind.map_or("UNKNOWN", |kind| kind.status()),
            "message": self.message,
            "details": details,
        }})
    }
}

fn message_of(error: &Value) -> String {
    let told = ["message", "detail"].into_iter().find_map(|name| error.get(name)?.as_str());
    told.unwrap_or("the agent returned an error").to_owned()
}
