//! The endpoint: one body, with one message or a batch of them, each processed separately and in order.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;
use toolgate_dialect::aos::{self, Incoming, Message};
use toolgate_dialect::jsonrpc::RpcError;
use toolgate_gate::refusal::{Code, Refusal};

use super::asking::Asking;
use super::question::question;
use super::response::{decision, hook_response};
use crate::body;
use crate::router::App;

/// The maximum number of messages in a batch.
const BATCH_LIMIT: usize = 100;

pub(super) async fn serve(State(app): State<Arc<App>>, asking: Asking, request: Request) -> Response {
    match read(&app, &asking, request).await {
        Ok(incoming) => respond_to_all(&app, asking, incoming).await,
        Err(error) => {
            app.metrics.hook_not_understood();
            Json(aos::write_error(None, &error)).into_response()
        }
    }
}

/// Reads the body, whatever it is declared as.
async fn read(app: &App, asking: &Asking, request: Request) -> Result<Incoming, RpcError> {
    if let Err(refusal) = &asking.query {
        return Err(RpcError::invalid_request(refusal.reason()));
    }
    let bytes = body::read(request, app.max_body).await.map_err(|refusal| match refusal.code() {
        Code::BodyTooLarge => RpcError::invalid_request(refusal.reason()),
        Code::TooManyInFlight | Code::Overloaded => RpcError::internal(refusal.reason()),
        _ => RpcError::parse_error(refusal.reason()),
    })?;
    match aos::read(&bytes, app.gate.clock.now())? {
        Incoming::Batch(messages) if messages.len() > BATCH_LIMIT => {
            Err(RpcError::invalid_request(format!("a batch has at most {BATCH_LIMIT} messages")))
        }
        incoming => Ok(incoming),
    }
}

async fn respond_to_all(app: &App, mut asking: Asking, incoming: Incoming) -> Response {
    let messages = match incoming {
        Incoming::Single(message) => {
            return match respond(app, &asking, Ok(()), message).await {
                Some(response) => Json(response).into_response(),
                None => StatusCode::NO_CONTENT.into_response(),
            };
        }
        Incoming::Batch(messages) => messages,
    };
    let mut responses = Vec::with_capacity(messages.len());
    // One after the other: the effects of a message count for those that follow it.
    for (number, message) in messages.into_iter().enumerate() {
        let mut standing = Ok(());
        if number > 0 {
            // A question may have waited for a person for long.
            match app.gate.authenticator.identify_again(&asking.caller).await {
                Ok(caller) => asking.caller = caller,
                Err(refusal) => standing = Err(refusal),
            }
        }
        responses.extend(respond(app, &asking, standing, message).await);
    }
    // Only notifications: there is no response.
    if responses.is_empty() { StatusCode::NO_CONTENT.into_response() } else { Json(responses).into_response() }
}

/// The response to one message; `None` for a notification. If the caller's key has ended in the meantime, hooks are
/// denied.
async fn respond(app: &App, asking: &Asking, standing: Result<(), Refusal>, message: Message) -> Option<Value> {
    let asked = match message {
        Message::Hook(asked) => asked,
        Message::Ping(ping) => return Some(aos::write_pong(&ping.id, app.gate.clock.now(), None)),
        Message::Notification => return None,
        Message::Invalid { id, error } => {
            app.metrics.hook_not_understood();
            return Some(aos::write_error(id.as_ref(), &error));
        }
    };
    let profile = app.hooks.of(asking.caller.id());
    let question = match question(&asked, asking, profile) {
        Ok(question) => question,
        Err(error) => {
            app.metrics.hook_not_understood();
            return Some(aos::write_error(Some(&asked.id), &error));
        }
    };
    let outcome = match standing {
        Ok(()) => app.gate.hooks.decide_hook(asking.caller.clone(), question).await,
        Err(refusal) => Err(refusal),
    };
    let response = hook_response(&asked, outcome, profile.form);
    app.metrics.hook_decided(asked.event.hook, decision(&response));
    Some(response)
}
