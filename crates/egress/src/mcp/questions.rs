//! Requests and log messages that a server of the legacy era sends while it carries out a call, for the client of that
//! call: as far as the client can be asked, without secrets and hidden characters, and not without end.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};
use toolgate_gate::ports::client_link::{ClientLink, Unanswered};
use toolgate_model::client_input::{self, InputCapabilities};
use toolgate_model::redaction::Redactor;
use toolgate_model::service::HiddenCharacters;
use toolgate_model::strict_json;

use super::message;
use super::result::reveal;

/// How often a server may ask during one call.
const QUESTIONS: usize = 16;
/// How many log messages of one call are passed on, and how long each may be, in bytes.
const LOGS: usize = 256;
const LOG_LIMIT: usize = 16 * 1024;

/// Why a call ended whose client was still asked when its time was over.
pub(crate) const UNANSWERED: &str = "the time for this call was over before its client responded to a question of the server; the \
                                     tool may have run: respond sooner, or raise the credential's timeout";

/// The client of one call, for its server.
pub(crate) struct Questions<'a> {
    client: &'a dyn ClientLink,
    rule: HiddenCharacters,
    asked: AtomicUsize,
    /// Whether the client was asked for something that it has not responded to.
    open: AtomicBool,
    logged: AtomicUsize,
}

impl<'a> Questions<'a> {
    pub(crate) fn new(client: &'a dyn ClientLink, rule: HiddenCharacters) -> Self {
        Self { client, rule, asked: AtomicUsize::new(0), open: AtomicBool::new(false), logged: AtomicUsize::new(0) }
    }

    /// What the server may ask for.
    pub(crate) fn capabilities(&self) -> InputCapabilities {
        self.client.capabilities()
    }

    /// Whether the client has not responded to the last question.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// The response to a request of the server.
    pub(crate) async fn response(
        &self,
        request: &[u8],
        (id, method): (&Value, &str),
        redactor: &Redactor,
        deadline: Instant,
    ) -> Vec<u8> {
        let is_question = matches!(method, client_input::ELICIT | client_input::SAMPLE | client_input::LIST_ROOTS);
        if !is_question {
            return message::refusal(id, method);
        }
        let params = match self.params(request, redactor) {
            Ok(params) => params,
            Err(reason) => return message::error(id, -32602, reason),
        };
        match client_input::needs_of(method, &params) {
            Ok(needs) if !self.capabilities().covers(needs) => return message::refusal(id, method),
            Ok(_) => {}
            Err(reason) => return message::error(id, -32602, reason),
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
            return message::error(id, -32603, "the server has asked as often as it may during one call");
        }
        self.open.store(true, Ordering::Relaxed);
        let responded = timeout_at(deadline, self.client.ask(method, params)).await;
        self.open.store(responded.is_err(), Ordering::Relaxed);
        match responded {
            Ok(Ok(result)) => message::result(id, &result),
            Ok(Err(Unanswered::Refused { code })) => message::error(id, code, "the client refused the request"),
            Ok(Err(Unanswered::Denied { .. })) => message::error(id, -32603, "the request was not passed on"),
            Ok(Err(Unanswered::Unreachable)) | Err(_) => message::error(id, -32603, "the client did not respond"),
        }
    }

    /// What the client sends for all that a modern server asks for at once; `None` where it does not.
    pub(crate) async fn gather(&self, requests: &Map<String, Value>, deadline: Instant) -> Option<Map<String, Value>> {
        let mut responses = Map::new();
        for (key, request) in requests {
            if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
                return None;
            }
            let params = request.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
            let method = request.get("method").and_then(Value::as_str)?;
            let result = timeout_at(deadline, self.client.ask(method, params)).await.ok()?.ok()?;
            responses.insert(key.clone(), Value::Object(result));
        }
        Some(responses)
    }

    /// Passes a log message on.
    pub(crate) fn log(&self, notification: &[u8], redactor: &Redactor) {
        if notification.len() > LOG_LIMIT || self.logged.fetch_add(1, Ordering::Relaxed) >= LOGS {
            return;
        }
        if let Ok(params) = self.params(notification, redactor) {
            self.client.log(params);
        }
    }

    fn params(&self, message: &[u8], redactor: &Redactor) -> Result<Map<String, Value>, &'static str> {
        let unreadable = "the parameters cannot be read";
        let mut message = strict_json::parse(message).map_err(|_| unreadable)?;
        let mut params = match message.get_mut("params").map(Value::take) {
            None => return Ok(Map::new()),
            Some(params @ Value::Object(_)) => params,
            Some(_) => return Err(unreadable),
        };
        redactor.redact_json(&mut params);
        reveal(&mut params, self.rule)?;
        match params {
            Value::Object(mut params) => {
                // That of the connection with the server.
                params.remove("_meta");
                Ok(params)
            }
            _ => Err(unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use async_trait::async_trait;
    use serde_json::json;
    use toolgate_model::secret::{Material, Secret};

    use super::*;
    use crate::time::now;

    #[derive(Debug, Default)]
    struct Client {
        heard: Mutex<Vec<Value>>,
        result: Option<Unanswered>,
    }

    #[async_trait]
    impl ClientLink for Client {
        fn capabilities(&self) -> InputCapabilities {
            InputCapabilities::of(Some(&json!({"elicitation": {}})))
        }

        async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Map<String, Value>, Unanswered> {
            self.heard.lock().unwrap().push(json!({"method": method, "params": params}));
            match &self.result {
                Some(unanswered) => Err(unanswered.clone()),
                None => Ok(Map::from_iter([("action".to_owned(), json!("decline"))])),
            }
        }

        fn log(&self, params: Map<String, Value>) {
            self.heard.lock().unwrap().push(json!(params));
        }
    }

    fn redactor() -> Redactor {
        let mut material = Material::new();
        material.insert("token".to_owned(), Secret::new("sk_live_of_the_mount".to_owned()));
        Redactor::new(&material)
    }

    fn form(message: &str) -> Value {
        json!({"message": message, "requestedSchema": {"type": "object", "properties": {"name": {}}}})
    }

    async fn asked(questions: &Questions<'_>, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params}).to_string();
        let deadline = now() + Duration::from_secs(60);
        let response = questions.response(request.as_bytes(), (&json!("q"), method), &redactor(), deadline).await;
        let response: Value = serde_json::from_slice(&response).unwrap();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!("q")));
        response
    }

    #[tokio::test]
    async fn a_client_is_asked_what_it_can_be_asked_without_secrets_and_hidden_characters() {
        let client = Client::default();
        let questions = Questions::new(&client, HiddenCharacters::Show);
        let response = asked(&questions, "elicitation/create", form("sk_live_of_the_mount\u{200b}?")).await;
        assert_eq!(response["result"], json!({"action": "decline"}));
        let heard = client.heard.lock().unwrap().clone();
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0]["params"]["message"], "[REDACTED]<U+200B>?");
        assert_eq!(asked(&questions, "ping", json!({})).await["result"], json!({}));
    }

    #[tokio::test]
    async fn a_client_is_not_asked_for_what_it_has_not_declared_nor_for_the_unfit() {
        let client = Client::default();
        let questions = Questions::new(&client, HiddenCharacters::Show);
        for (method, params, code) in [
            ("sampling/createMessage", json!({"messages": []}), -32601),
            ("roots/list", json!({}), -32601),
            ("tools/call", json!({}), -32601),
            ("elicitation/create", json!({"mode": "url", "message": "Open.", "url": "https://a.example"}), -32601),
            ("elicitation/create", json!({"mode": "url", "message": "Open.", "url": "javascript:a"}), -32602),
            ("elicitation/create", json!([]), -32602),
        ] {
            assert_eq!(asked(&questions, method, params).await["error"]["code"], code, "{method}");
        }
        assert!(client.heard.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_server_asks_and_logs_only_so_often_during_one_call() {
        let client = Client::default();
        let questions = Questions::new(&client, HiddenCharacters::Show);
        for number in 0..2 * QUESTIONS {
            let response = asked(&questions, "elicitation/create", form("Who?")).await;
            assert_eq!(response.get("result").is_some(), number < QUESTIONS, "{number}");
        }
        client.heard.lock().unwrap().clear();
        let log =
            json!({"method": "notifications/message", "params": {"level": "info", "data": "sk_live_of_the_mount"}});
        for _ in 0..2 * LOGS {
            questions.log(log.to_string().as_bytes(), &redactor());
        }
        let heard = client.heard.lock().unwrap().clone();
        assert_eq!((heard.len(), &heard[0]["data"]), (LOGS, &json!("[REDACTED]")));
    }

    #[tokio::test]
    async fn a_client_that_gives_no_result_is_an_error_for_the_server() {
        for (unanswered, code) in [
            (Unanswered::Refused { code: -1 }, -1),
            (Unanswered::Denied { reason: "sensitive".to_owned() }, -32603),
            (Unanswered::Unreachable, -32603),
        ] {
            let client = Client { result: Some(unanswered), ..Client::default() };
            let response =
                asked(&Questions::new(&client, HiddenCharacters::Show), "elicitation/create", form("Who?")).await;
            assert_eq!(response["error"]["code"], code);
            assert!(!response.to_string().contains("sensitive"), "{response}");
        }
    }
}
