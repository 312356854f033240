//! The spans of a call: one for the call, and one for each of its stages, with the times that its record has.

use std::time::Duration;

use toolgate_gate::ports::telemetry::{FinishedAs, FinishedCall, TracedCall};
use toolgate_gate::refusal::Stage;
use toolgate_model::trace_context::SpanId;

use super::nanoseconds;
use super::protobuf::Message;
use super::resource::attribute;

/// The maximum length of an exported tool name, in characters.
const MAX_TOOL: usize = 200;

/// Field `spans` of `ScopeSpans`.
const SPANS: u64 = 2;
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
const ERROR: u64 = 2;

/// Spans as fields of `ScopeSpans`.
pub(super) fn encode(call: &FinishedCall<'_>, traced: &TracedCall) -> Vec<u8> {
    let mut spans = Message::default();
    let started = nanoseconds(call.started);
    let total = call.times.map_or(Duration::ZERO, toolgate_gate::call::StageTimes::total);
    spans.message(SPANS, |span| call_span(span, call, traced, (started, after(started, total))));
    for time in call.times.iter().flat_map(|times| times.stages()) {
        let begun = after(started, time.entered);
        spans.message(SPANS, |span| stage_span(span, time.stage, traced, (begun, after(begun, time.spent))));
    }
    spans.into_bytes()
}

fn call_span(span: &mut Message, call: &FinishedCall<'_>, traced: &TracedCall, times: (u64, u64)) {
    let tool: Option<String> = call.tool.map(|tool| tool.to_string().chars().take(MAX_TOOL).collect());
    // A name without a tool may be anything: it is an attribute, and not the name that backends group spans by.
    let found = tool.as_deref().filter(|_| call.tool.is_some_and(|tool| tool.service.is_some()));
    let name = found.map_or_else(|| "execute_tool".to_owned(), |tool| format!("execute_tool {tool}"));
    head(span, traced, traced.context.span, traced.parent, (&name, SERVER), times);
    let attributes = [
        ("gen_ai.operation.name", Some("execute_tool")),
        ("gen_ai.tool.name", tool.as_deref()),
        ("toolgate.call_id", Some(&*call.id.to_string())),
        ("toolgate.request_id", call.request.as_ref().map(|request| request.as_str())),
        ("toolgate.tenant", Some(call.tenant.as_str())),
        ("toolgate.agent", call.agent.map(|agent| agent.as_str())),
        ("toolgate.outcome", Some(call.outcome.as_str())),
        ("toolgate.stage", call.stage.map(Stage::as_str)),
        ("error.type", call.code),
    ];
    for (key, value) in attributes {
        if let Some(value) = value {
            attribute(span, 9, key, value);
        }
    }
    if !matches!(call.outcome, FinishedAs::Success | FinishedAs::Replayed) {
        span.message(15, |status| status.number(3, ERROR));
    }
}

fn stage_span(span: &mut Message, stage: Stage, traced: &TracedCall, times: (u64, u64)) {
    let kind = if stage == Stage::Execute { CLIENT } else { INTERNAL };
    let call = traced.context.span;
    let id = u64::from_be_bytes(*call.as_bytes()).wrapping_add(stage as u64 + 1).to_be_bytes();
    head(span, traced, SpanId::new(id).unwrap_or(call), Some(call), (stage.as_str(), kind), times);
}

fn head(
    span: &mut Message,
    traced: &TracedCall,
    id: SpanId,
    parent: Option<SpanId>,
    (name, kind): (&str, u64),
    (begun, ended): (u64, u64),
) {
    span.bytes(1, traced.context.trace.as_bytes());
    span.bytes(2, id.as_bytes());
    if let Some(state) = &traced.state {
        span.text(3, state);
    }
    if let Some(parent) = parent {
        span.bytes(4, parent.as_bytes());
    }
    span.text(5, name);
    span.number(6, kind);
    span.fixed64(7, begun);
    span.fixed64(8, ended);
    span.fixed32(16, u32::from(traced.context.sampled));
}

fn after(time: u64, duration: Duration) -> u64 {
    time.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
