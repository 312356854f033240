//! The audit log: reading, proofs, export.

use std::sync::Arc;

use axum::body::Body as ResponseBody;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, header};
use serde_json::{Value, json};
use toolgate_api::audit::{EventPage, ListEvents, LogHead, Proof, ProofKind, ProofQuery, Prove, Proven, ShowLogHead};
use toolgate_api::reply::NextCursor;
use toolgate_gate::authority::audit;
use toolgate_gate::ports::ledger::{self, EventFilter, LoggedEvent};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::audit_export::broken_line;
use toolgate_model::text::check_identifier;

use super::error::Denied;
use super::progress::LINES;
use crate::accepted;
use crate::caller::Identified;
use crate::mount::TypedRequest;
use crate::parameters::page;
use crate::router::App;

pub(super) async fn events(request: TypedRequest<ListEvents>) -> Result<EventPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let request = page(query.limit, query.cursor)?;
    if query.kind.as_deref().is_some_and(|kind| check_identifier(kind).is_err()) {
        let reason = "`type` must be the type of an event, for example grant.created";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "type").into());
    }
    if query.tool.as_deref().is_some_and(|tool| check_identifier(tool).is_err()) {
        let reason = "`tool` must be a tool with its service, for example stripe.charges.create";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "tool").into());
    }
    let filter = EventFilter {
        kinds: query.kind.into_iter().collect(),
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
    Ok(EventPage { events: found.items.iter().map(event).collect(), next_cursor: NextCursor(found.next) })
}

pub(super) async fn head(request: TypedRequest<ShowLogHead>) -> Result<LogHead, Denied> {
    let TypedRequest { app, caller, .. } = request;
    Ok(log_head(app.gate.audit.log_head(&caller).await?, &app))
}

pub(super) async fn proof(request: TypedRequest<Prove>) -> Result<Proof, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    match query {
        ProofQuery { sequence: Some(sequence), size, first: None, second: None } => {
            let proof = app.gate.audit.prove_inclusion(&caller, sequence, size).await?;
            let about = Proven::Inclusion { sequence, size: proof.size };
            Ok(proven(ProofKind::Inclusion, about, proof, &app))
        }
        ProofQuery { sequence: None, size: None, first: Some(first), second } => {
            let proof = app.gate.audit.prove_consistency(&caller, first, second).await?;
            let about = Proven::Consistency { first, second: proof.size };
            Ok(proven(ProofKind::Consistency, about, proof, &app))
        }
        _ => {
            let reason =
                "ask with `sequence` (and `size`) for inclusion, or with `first` (and `second`) for consistency";
            Err(Refusal::new(Code::InvalidField, reason).into())
        }
    }
}

/// The whole log as JSON lines that verify offline. An error ends it with a line that says why instead of the end line,
/// so that the file does not verify.
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
                    tracing::error!(%refusal, "an export of the audit log failed");
                    Some((Ok(Bytes::from(broken_line(refusal.reason()))), None))
                }
            }
        }
    });
    let body = ResponseBody::from_stream(futures_util::StreamExt::chain(begun, rest));
    let kind = if accepted::only_plain_text(&headers, LINES) { accepted::PLAIN_TEXT } else { LINES };
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

fn event(event: &LoggedEvent) -> Value {
    // Stored events are JSON by construction; if one is not, the text itself is returned.
    let mut shape = serde_json::from_str(&event.canonical).unwrap_or_else(|_| json!({"damaged": event.canonical}));
    if let Value::Object(members) = &mut shape {
        members.insert("sequence".to_owned(), json!(event.sequence));
    }
    shape
}

fn log_head(head: ledger::LogHead, app: &App) -> LogHead {
    LogHead {
        tenant_id: head.head.tenant,
        size: head.head.size,
        root_hash: head.head.root.to_string(),
        timestamp: head.head.time,
        checkpoint: head.checkpoint,
        public_key: app.gate.audit.audit_public_key(),
    }
}

fn proven(kind: ProofKind, about: Proven, proof: audit::Proof, app: &App) -> Proof {
    let hashes = proof.hashes.iter().map(ToString::to_string).collect();
    Proof { kind, about, hashes, head: log_head(proof.head, app) }
}
