//! Endpoints for operators: liveness, readiness, metrics, and the API documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::document::{merge, replace_content};
use crate::endpoint::endpoints;
use crate::reply::{ErrorCode, Okay};
use crate::schemas::Schemas;

endpoints! {
    tag "operations" = "For operators. Needs no key and reveals nothing about tenants.";

    /// Show what this is, for people
    ShowPage = GET "/" as "show_page" {
        reply: OK String = "A page.",
        errors: [TooMany],
        open: true,
        amend: describe_page,
    }

    /// Show which part of OpenIntent is served
    ShowOpenIntentDiscovery = GET "/.well-known/openintent.json" as "show_openintent_discovery" {
        reply: OK Discovery = "The discovery document.",
        errors: [TooMany],
        open: true,
    }

    /// Show whether the process is alive
    ShowHealth = GET "/healthz" as "show_health" {
        reply: OK Health = "It is alive.",
        open: true,
    }

    /// Show whether the ledger accepts writes and the key provider seals
    ShowReadiness = GET "/readyz" as "show_readiness" {
        reply: OK Readiness = "It is ready.",
        open: true,
        amend: describe_readiness,
    }

    /// Show the counters for Prometheus
    ShowMetrics = GET "/metrics" as "show_metrics" {
        reply: OK String = "The counters.",
        open: true,
        amend: describe_metrics,
    }

    /// Show this document
    ShowOpenApi = GET "/openapi.json" as "show_openapi" {
        reply: OK Map<String, Value> = "The document.",
        errors: [TooMany],
        open: true,
    }
}

fn describe_page(operation: &mut Value, _: &mut Schemas) {
    replace_content(operation, json!({"text/html": {"schema": {"type": "string"}}}));
}

fn describe_metrics(operation: &mut Value, _: &mut Schemas) {
    let plain = json!({"type": "string", "description": "The same, if the client accepts only this type."});
    let content = json!({
        "application/openmetrics-text": {"schema": {"type": "string"}},
        "text/plain": {"schema": plain},
    });
    replace_content(operation, content);
}

fn describe_readiness(operation: &mut Value, schemas: &mut Schemas) {
    let content = json!({"application/json": {"schema": schemas.reply::<Readiness>()}});
    merge(operation, json!({"responses": {"503": {"description": "A component does not work.", "content": content}}}));
}

/// The discovery document of OpenIntent, in the shape that its reference server has.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Discovery {
    pub protocol: String,
    pub version: String,
    /// Only what is served here.
    pub capabilities: Vec<String>,
    pub rfcs: Vec<String>,
    pub open_api_url: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Health {
    pub status: Okay,
    pub version: String,
}

/// Whether it can work.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Readiness {
    pub status: ReadinessStatus,
    pub ledger: ReadinessPart,
    pub key_provider: ReadinessPart,
    pub tasks: ReadinessPart,
    pub shutdown: ReadinessPart,
    pub clock: ReadinessClock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ReadinessStatus {
    #[serde(rename = "ready")]
    Ready,
    #[serde(rename = "not ready")]
    NotReady,
}

/// Whether a part works, and why not.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReadinessPart {
    pub status: PartStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ErrorCode")]
    pub code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PartStatus {
    Ok,
    Failed,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ReadinessClock {
    pub status: ClockStatus,
}

/// A clock that was stepped is reported, and everything is served all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ClockStatus {
    Ok,
    Stepped,
}
