//! Events of calls.

use super::*;
use crate::constraint::Cost;
use crate::descriptor::ToolId;
use crate::hook::{CallTrace, ToolCalled, ToolReturned, Transport};
use crate::id::SessionId;
use crate::invocation::{Invocation, InvocationStatus};

fn tool_invoked(invocation: &Invocation, returned: Option<ToolReturned>) -> EventPayload {
    EventPayload::ToolInvoked(Box::new(ToolInvoked {
        invocation_id: invocation.id,
        grant_id: invocation.grant,
        service: invocation.service.clone(),
        tool: invocation.tool.clone(),
        parameters_summary: Arc::clone(&invocation.parameters),
        arguments_hash: invocation.arguments_hash.clone(),
        status: invocation.status,
        error_code: invocation.error.as_ref().map(|error| error.code.clone()),
        http_status: invocation.http_status,
        duration_ms: invocation.duration_ms,
        cost: invocation.cost.into(),
        cost_basis: None,
        request_fingerprint: invocation.fingerprint.clone(),
        reported: invocation.reported,
        returned,
        trace_id: None,
    }))
}

pub(super) fn calls() -> Vec<EventPayload> {
    let call = invocation();
    let other = Invocation {
        grant: None,
        service: None,
        status: InvocationStatus::Error,
        error: Some(crate::invocation::InvocationError { code: "SERVICE_ERROR".to_owned(), reason: "no".to_owned() }),
        parameters: Arc::default(),
        fingerprint: None,
        http_status: None,
        cost: None,
        cost_basis: None,
        duration_ms: None,
        trace: CallTrace { transport: Transport::Native, ..CallTrace::default() },
        ..invocation()
    };
    let reported = Invocation { reported: true, cost: Cost::from_dollars(3.0), ..invocation() };
    let called = |call: &Invocation, inputs| EventPayload::AgentToolCalled(Box::new(ToolCalled::of(call, inputs)));
    let denied = |call: &Invocation, returned| {
        EventPayload::ToolDenied(Box::new(ToolDenied {
            invocation_id: call.id,
            grant_id: call.grant,
            service: call.service.clone(),
            tool: call.tool.clone(),
            arguments_hash: call.arguments_hash.clone(),
            stage: "authorize".into(),
            error_code: "GRANT_NOT_FOUND".to_owned(),
            reason: "there is no grant for `charges.create`\u{7f}\u{1}".to_owned(),
            returned: Some(returned),
            trace_id: None,
        }))
    };
    let failed = |duration| ToolReturned::error(&other, "SERVICE_ERROR", "the \"service\" failed".to_owned(), duration);
    let session = SessionId::new(at(3), [4; 10]);
    let closed = |outcome| {
        let tool_id = "connector:a.b".to_owned();
        EventPayload::ToolSessionClosed(ToolSessionClosed { outcome, session_id: session, tool_id })
    };
    let codes = BTreeMap::from([("GRANT_REVOKED".to_owned(), 3), ("RATE_LIMITED".to_owned(), 9_007_199_254_740_993)]);
    vec![
        called(&call, None),
        called(&other, Some(json!({"z": 1, "\u{20ac}": [true, {"b": 1.0, "a": 18_446_744_073_709_551_615_u64}]}))),
        tool_invoked(&call, Some(ToolReturned::ok(&call, 12))),
        tool_invoked(&other, Some(failed(Some(7)))),
        tool_invoked(&Invocation { status: InvocationStatus::Unknown, ..other.clone() }, Some(failed(None))),
        tool_invoked(&reported, None),
        denied(&call, ToolReturned::forbidden(&call)),
        denied(&other, ToolReturned::rate_limited(&other)),
        EventPayload::CallDetached(CallDetached {
            invocation_id: call.id,
            tool: "stripe.charges.create".to_owned(),
            arguments_hash: call.arguments_hash.to_string(),
        }),
        EventPayload::AuthorizationDecided(AuthorizationDecided {
            principal: principal("billing"),
            action: "tools:invoke".into(),
            allowed: false,
            resource: "stripe.charges.create".to_owned(),
            reason: "GRANT_NOT_FOUND".to_owned(),
        }),
        EventPayload::ToolDenialsCounted(ToolDenialsCounted::new(principal("billing"), codes, at(1), at(2))),
        EventPayload::ToolForbidden(ToolForbidden::at_load(
            Some(&principal("ab")),
            &ToolId::parse("connector:stripe.charges.create").unwrap(),
        )),
        EventPayload::ToolForbidden(ToolForbidden::at_load(None, &ToolId::parse("connector:stripe.refunds").unwrap())),
        EventPayload::ToolSessionOpened(ToolSessionOpened { session_id: session, tool_id: "connector:a.b".to_owned() }),
        closed(SessionOutcome::Completed),
        closed(SessionOutcome::Failed),
    ]
}
