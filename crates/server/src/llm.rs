//! Model providers at `/llm/{provider}`, in the APIs of OpenAI and Anthropic: their official clients work unchanged, with a
//! key of this gate. Each request is a call of the provider's tool for that API; nothing is decided here.
//!
//! What is served is listed: anything else below `/llm` is not there, whether the provider has it or not.

use axum::routing::{get, post};
use http::Method;
use toolgate_model::llm::Api;

use crate::router::Route;

mod attempt;
mod endpoint;
pub(crate) mod error;
mod events;
mod fail_over;
mod models;
mod request;
mod streaming;

/// Where providers are served.
pub(crate) const BEGINNING: &str = "/llm";

/// The routes of this protocol, which need a key.
pub fn routes() -> Vec<Route> {
    let calling = |path, api: Api| Route {
        method: Method::POST,
        path,
        handler: post(move |state, provider, request| endpoint::call(api, state, provider, request)),
    };
    vec![
        calling("/llm/{provider}/v1/chat/completions", Api::Chat),
        calling("/llm/{provider}/v1/embeddings", Api::Embeddings),
        calling("/llm/{provider}/v1/messages", Api::Messages),
        calling("/llm/{provider}/v1/messages/count_tokens", Api::CountTokens),
        calling("/llm/{provider}/v1/responses", Api::Responses),
        calling("/llm/{provider}/v1/responses/input_tokens", Api::InputTokens),
        Route { method: Method::GET, path: "/llm/{provider}/v1/models", handler: get(models::list) },
        Route { method: Method::GET, path: "/llm/{provider}/v1/models/{model}", handler: get(models::show) },
    ]
}

/// Whether a path belongs to this protocol.
pub(crate) fn speaks_for(path: &str) -> bool {
    path.strip_prefix(BEGINNING).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
