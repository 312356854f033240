//! The log as events of this protocol: in pages, or as a stream.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use toolgate_api::openwop::events::{ListRunEvents, RunEventPage};
use toolgate_api::parameters::Limit;
use toolgate_gate::Caller;
use toolgate_gate::ports::ledger::{EventFilter, Freshness};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::hook::RETURNED;
use toolgate_model::openwop_event::stored_types;
use toolgate_model::text::check_identifier;

use super::error::Flat;
use super::reading::{Place, Reading};
use super::stream;
use crate::mount::TypedRequest;
use crate::parameters::page;
use crate::router::App;

pub(super) async fn list(request: TypedRequest<ListRunEvents>) -> Result<Response, Flat> {
    let TypedRequest { app, caller, query, headers, .. } = request;
    let filter = EventFilter {
        kinds: query.kind.as_deref().map(kinds).transpose()?.unwrap_or_default(),
        run: query.run.map(|run| run.as_str().to_owned()),
        tool: query.tool.map(tool_name).transpose()?,
        agent: query.agent,
        ..EventFilter::default()
    };
    let reading = Reading { filter, place: Place::Log(None) };
    respond(app, caller, reading, query.after.as_deref(), query.limit, &headers).await
}

/// The events in the requested form, after the last one that the client has seen.
pub(super) async fn respond(
    app: Arc<App>,
    caller: Caller,
    mut reading: Reading,
    after: Option<&str>,
    limit: Option<Limit>,
    headers: &HeaderMap,
) -> Result<Response, Flat> {
    let limit = page(limit, None::<String>)?.limit;
    // A resumed stream has the same URL as at first: the position is in the header.
    if let Some(seen) = last_event_id(headers)?.or(after) {
        reading.place = reading.place.behind(seen)?;
    }
    if wants_stream(headers) {
        return Ok(stream::open(app, caller, reading).await?);
    }
    let found = reading.page(&app, &caller, limit, Freshness::Newest).await?;
    let next = found.end().filter(|_| found.more).and_then(Place::cursor);
    let events = found.events.into_iter().map(|seen| seen.shown).collect();
    Ok(Json(RunEventPage { events, next_cursor: next }).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    })
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let value = headers.get("last-event-id").map(|value| value.to_str()).transpose();
    let value = value.map_err(|_| Refusal::new(Code::InvalidCursor, "Last-Event-ID is not plain text"))?;
    // A client that has seen no event may send an empty value.
    Ok(value.map(str::trim).filter(|value| !value.is_empty()))
}

/// The types in the log that are shown as this type.
fn kinds(shown: &str) -> Result<Vec<String>, Refusal> {
    if check_identifier(shown).is_err() {
        let reason = "`type` must be the type of an event, for example agent.toolCalled";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "type"));
    }
    stored_types(shown).ok_or_else(|| {
        let reason = format!("events of type {shown} are shown as {RETURNED}; filter by that type");
        Refusal::new(Code::InvalidField, reason).with("path", "type")
    })
}

fn tool_name(name: String) -> Result<String, Refusal> {
    if check_identifier(&name).is_err() {
        let reason = "`tool` must be the name of a tool with its service, for example stripe.charges.create";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "tool"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_stream_is_only_for_whoever_asks_for_one() {
        for (accept, stream) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.9", true),
            ("application/json", false),
            ("*/*", false),
            ("text/*", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(wants_stream(&headers), stream, "{accept}");
        }
        assert!(!wants_stream(&HeaderMap::new()));
    }

    #[test]
    fn what_is_never_shown_cannot_be_asked_for() {
        assert_eq!(kinds("agent.toolCalled").unwrap(), ["agent.toolCalled"]);
        assert!(kinds("tool.invoked").unwrap_err().reason().contains("agent.toolReturned"));
        assert!(kinds("no type").is_err());
    }
}
