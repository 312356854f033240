//! The audit log: reading, proofs, export.

use std::sync::Arc;

use axum::Json;
use axum::body::Body as ResponseBody;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::authority::audit::Proof;
use toolgate_gate::ports::ledger::{EventFilter, LogHead, LoggedEvent};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::audit_export::broken_line;
use toolgate_model::context::ContextId;
use toolgate_model::hook::RunId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::text::check_identifier;
use toolgate_model::time::Timestamp;

use super::error::Denied;
use super::progress::LINES;
use super::shapes;
use crate::accepted;
use crate::caller::{Asked, Identified};
use crate::parameters::page;
use crate::router::App;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    r#type: Option<String>,
    run_id: Option<RunId>,
    tool: Option<String>,
    actor: Option<PrincipalId>,
    agent_id: Option<PrincipalId>,
    intent_id: Option<ContextId>,
    task_id: Option<ContextId>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: Option<u32>,
    cursor: Option<String>,
}

/// `sequence` (and `size`) for inclusion, `first` (and `second`) for consistency.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProofQuery {
    sequence: Option<u64>,
    size: Option<u64>,
    first: Option<u64>,
    second: Option<u64>,
}

pub(super) async fn events(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<EventQuery>,
) -> Result<Json<Value>, Denied> {
    let request = page(query.limit, query.cursor)?;
    if query.r#type.as_deref().is_some_and(|kind| check_identifier(kind).is_err()) {
        let reason = "`type` must be the type of an event, for example grant.created";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "type").into());
    }
    if query.tool.as_deref().is_some_and(|tool| check_identifier(tool).is_err()) {
        let reason = "`tool` must be a tool with its service, for example stripe.charges.create";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "tool").into());
    }
    let filter = EventFilter {
        kinds: query.r#type.into_iter().collect(),
        run: query.run_id.map(|run| run.as_str().to_owned()),
        tool: query.tool,
        actor: query.actor,
        agent: query.agent_id,
        intent: query.intent_id,
        task: query.task_id,
        since: query.since,
        until: query.until,
    };
    let found = app.gate.audit.events(&caller, filter, request).await?;
    Ok(Json(shapes::page("events", found, |event| shape(&event))))
}

pub(super) async fn head(State(app): State<Arc<App>>, Identified(caller): Identified) -> Result<Json<Value>, Denied> {
    let head = app.gate.audit.log_head(&caller).await?;
    Ok(Json(Value::Object(head_shape(&head, &app))))
}

pub(super) async fn proof(
    State(app): State<Arc<App>>,
    Asked(caller, query): Asked<ProofQuery>,
) -> Result<Json<Value>, Denied> {
    match query {
        ProofQuery { sequence: Some(sequence), size, first: None, second: None } => {
            let proof = app.gate.audit.prove_inclusion(&caller, sequence, size).await?;
            Ok(Json(proof_shape("inclusion", json!({"sequence": sequence, "size": proof.size}), &proof, &app)))
        }
        ProofQuery { sequence: None, size: None, first: Some(first), second } => {
            let proof = app.gate.audit.prove_consistency(&caller, first, second).await?;
            Ok(Json(proof_shape("consistency", json!({"first": first, "second": proof.size}), &proof, &app)))
        }
        _ => {
            let reason =
                "ask with `sequence` (and `size`) for inclusion, or with `first` (and `second`) for consistency";
            Err(Refusal::new(Code::InvalidField, reason).into())
        }
    }
}

/// The whole log as JSON lines that verify offline. A fault on the way ends it with a line that says why instead of the end
/// line, so that the file does not verify.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Identified(caller): Identified,
) -> Result<Response, Denied> {
    let (export, header_line) = app.gate.audit.begin_export(&caller).await?;
    let begun = stream::once(async move { Ok::<_, std::io::Error>(Bytes::from(header_line)) });
    let rest = stream::unfold(Some(export), move |export| {
        let app = Arc::clone(&app);
        async move {
            let mut export = export?;
            match app.gate.audit.continue_export(&mut export).await {
                Ok(Some(lines)) => Some((Ok(Bytes::from(lines)), Some(export))),
                Ok(None) => None,
                Err(refusal) => {
                    tracing::error!(%refusal, "an export of the audit log broke off");
                    Some((Ok(Bytes::from(broken_line(refusal.reason()))), None))
                }
            }
        }
    });
    let body = ResponseBody::from_stream(futures_util::StreamExt::chain(begun, rest));
    let kind = if accepted::only_plain_text(&headers, LINES) { accepted::PLAIN_TEXT } else { LINES };
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

fn shape(event: &LoggedEvent) -> Value {
    // What is stored is JSON by construction; were it not, the text itself is the honest answer.
    let mut shape = serde_json::from_str(&event.canonical).unwrap_or_else(|_| json!({"damaged": event.canonical}));
    if let Value::Object(members) = &mut shape {
        members.insert("sequence".to_owned(), json!(event.sequence));
    }
    shape
}

fn head_shape(head: &LogHead, app: &App) -> Map<String, Value> {
    let mut shape = Map::new();
    shape.insert("tenant_id".to_owned(), json!(head.head.tenant));
    shape.insert("size".to_owned(), json!(head.head.size));
    shape.insert("root_hash".to_owned(), json!(head.head.root.to_string()));
    shape.insert("timestamp".to_owned(), json!(head.head.time));
    shape.insert("checkpoint".to_owned(), json!(head.checkpoint));
    shape.insert("public_key".to_owned(), json!(app.gate.audit.audit_public_key()));
    shape
}

fn proof_shape(kind: &str, about: Value, proof: &Proof, app: &App) -> Value {
    let hashes: Vec<String> = proof.hashes.iter().map(ToString::to_string).collect();
    json!({"kind": kind, "about": about, "hashes": hashes, "head": head_shape(&proof.head, app)})
}
