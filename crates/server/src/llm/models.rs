//! The models of a provider: those that the caller may use, from its grants. The provider is not asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use serde_json::{Value, json};
use toolgate_gate::ports::ledger::Freshness;
use toolgate_gate::refusal::Refusal;
use toolgate_model::credential::ServiceName;
use toolgate_model::llm::Vendor;

use super::error::{Failure, vendor_of};
use crate::caller;
use crate::router::App;

pub(super) async fn list(State(app): State<Arc<App>>, Path(provider): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let vendor = vendor_of(parts.uri.path(), &parts.headers);
    match usable(&app, &provider, parts).await {
        Ok(models) => Json(listed(&models, &provider, vendor)).into_response(),
        Err(failure) => failure.response(vendor),
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path((provider, model)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let vendor = vendor_of(parts.uri.path(), &parts.headers);
    match usable(&app, &provider, parts).await {
        Ok(models) if models.contains(&model) => Json(shown(&model, &provider, vendor)).into_response(),
        Ok(_) => Failure::not_there().response(vendor),
        Err(failure) => failure.response(vendor),
    }
}

async fn usable(app: &App, provider: &str, mut parts: Parts) -> Result<BTreeSet<String>, Failure> {
    let refused = |refusal: Refusal| Failure::of_refusal(&refusal, None);
    let (caller, agent) = caller::identify(&mut parts, app, Freshness::Newest).await.map_err(refused)?;
    if agent.is_some_and(|agent| agent != *caller.id()) {
        return Err(Failure::not_there());
    }
    let provider = ServiceName::parse(provider).map_err(|_| Failure::not_there())?;
    let models = app.gate.administration.usable_models(&caller, &provider).await.map_err(refused)?;
    models.ok_or_else(Failure::not_there)
}

fn listed(models: &BTreeSet<String>, provider: &str, vendor: Vendor) -> Value {
    let data: Vec<Value> = models.iter().map(|model| shown(model, provider, vendor)).collect();
    match vendor {
        Vendor::OpenAi => json!({"object": "list", "data": data}),
        Vendor::Anthropic => {
            json!({"data": data, "has_more": false, "first_id": models.first(), "last_id": models.last()})
        }
    }
}

fn shown(model: &str, provider: &str, vendor: Vendor) -> Value {
    match vendor {
        Vendor::OpenAi => json!({"id": model, "object": "model", "created": 0, "owned_by": provider}),
        Vendor::Anthropic => {
            json!({"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"})
        }
    }
}
