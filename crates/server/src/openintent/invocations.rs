//! The records that stay of calls.

use serde_json::{Map, Value};
use toolgate_api::invocations::{
    Invocation, InvocationPage, InvocationQuery, ListInvocations, ListInvocationsOfGrant, ListInvocationsOfIntent,
    ListInvocationsOfTask, ReportInvocation, ReportedStatus, ShowInvocation, ShownInvocation,
};
use toolgate_api::parameters::Limit;
use toolgate_api::reply::NextCursor;
use toolgate_gate::Caller;
use toolgate_gate::authority::invocations::Report;
use toolgate_gate::call::DetachedView;
use toolgate_gate::ports::ledger::InvocationFilter;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Cost;
use toolgate_model::id::GrantId;
use toolgate_model::invocation::InvocationStatus;
use toolgate_model::text::Line;

use super::detached;
use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::{id, page};
use crate::router::App;

/// The default number of invocations per page of a grant.
const USUAL_OF_GRANT: Limit = Limit(50);

pub(super) async fn list(request: TypedRequest<ListInvocations>) -> Result<InvocationPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    listed(&app, &caller, query, InvocationFilter::default()).await
}

pub(super) async fn of_intent(request: TypedRequest<ListInvocationsOfIntent>) -> Result<InvocationPage, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let within = InvocationFilter { intent: Some(path), ..InvocationFilter::default() };
    listed(&app, &caller, query.0, within).await
}

pub(super) async fn of_task(request: TypedRequest<ListInvocationsOfTask>) -> Result<InvocationPage, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let within = InvocationFilter { task: Some(path), ..InvocationFilter::default() };
    listed(&app, &caller, query.0, within).await
}

/// The SDK's list: the invocations of a grant as a bare array.
pub(super) async fn of_grant(request: TypedRequest<ListInvocationsOfGrant>) -> Result<Vec<Invocation>, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let mut query = query.0;
    let within = InvocationFilter { grant: Some(path), ..InvocationFilter::default() };
    let request = page(query.limit.or(Some(USUAL_OF_GRANT)), query.cursor.take())?;
    let found = app.gate.administration.invocations(&caller, filter(query, within)?, request).await?;
    Ok(found.items.into_iter().map(Invocation::from).collect())
}

pub(super) async fn show(request: TypedRequest<ShowInvocation>) -> Result<ShownInvocation, Denied> {
    let TypedRequest { app, caller, path: id, .. } = request;
    let invocation = match app.gate.administration.invocation(&caller, id).await {
        Ok(invocation) => invocation,
        // A detached call has a record once it was admitted or refused.
        Err(missing) => match app.gate.detached.detached_call(&caller, id).await {
            Ok(DetachedView::Open(call)) => return Ok(ShownInvocation::Detached(Box::new(detached::shown(&call)))),
            // It ended between the two reads.
            Ok(DetachedView::Ended(_)) => app.gate.administration.invocation(&caller, id).await?,
            Err(_) => return Err(missing.into()),
        },
    };
    let decisions = app.gate.administration.invocation_decisions(&caller, &invocation).await?;
    let hook_decisions = decisions.iter().map(decision).collect();
    Ok(ShownInvocation::Recorded(Box::new(Invocation { hook_decisions, ..Invocation::from(invocation) })))
}

pub(super) async fn report(request: TypedRequest<ReportInvocation>) -> Result<Invocation, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let report = Report {
        grant: id(&body.grant_id)?,
        agent: body.agent_id,
        service: body.service,
        tool: body.tool,
        parameters: body.parameters.unwrap_or_default(),
        status: match body.status {
            None | Some(ReportedStatus::Success) => InvocationStatus::Success,
            Some(ReportedStatus::Denied) => InvocationStatus::Denied,
            Some(ReportedStatus::Error | ReportedStatus::Timeout) => InvocationStatus::Error,
        },
        error: error_text(body.error.as_ref())?,
        cost: cost(body.cost.as_ref())?,
        duration_ms: body.duration_ms.map(u64::from),
        idempotency_key: body.idempotency_key,
        context: body.context.unwrap_or_default(),
    };
    Ok(app.gate.administration.report_invocation(&caller, report).await?.into())
}

async fn listed(
    app: &App,
    caller: &Caller,
    mut query: InvocationQuery,
    within: InvocationFilter,
) -> Result<InvocationPage, Denied> {
    let request = page(query.limit, query.cursor.take())?;
    let found = app.gate.administration.invocations(caller, filter(query, within)?, request).await?;
    let invocations = found.items.into_iter().map(Invocation::from).collect();
    Ok(InvocationPage { invocations, next_cursor: NextCursor(found.next) })
}

/// The filter of the query, within the one of the path.
fn filter(query: InvocationQuery, within: InvocationFilter) -> Result<InvocationFilter, Refusal> {
    let twice = |name: &str| {
        Err(Refusal::new(Code::InvalidField, format!("`{name}` is already in the path; omit it")).with("path", name))
    };
    match &query {
        InvocationQuery { intent_id: Some(_), .. } if within.intent.is_some() => return twice("intent_id"),
        InvocationQuery { task_id: Some(_), .. } if within.task.is_some() => return twice("task_id"),
        InvocationQuery { grant_id: Some(_), .. } if within.grant.is_some() => return twice("grant_id"),
        _ => {}
    }
    let grant = query.grant_id.as_deref().map(id::<GrantId>).transpose()?;
    Ok(InvocationFilter {
        agent: query.agent_id,
        grant: grant.or(within.grant),
        service: query.service,
        tool: query.tool.map(|tool| tool.as_str().to_owned()),
        status: query.status,
        intent: query.intent_id.or(within.intent),
        task: query.task_id.or(within.task),
        idempotency_key: query.idempotency_key,
        since: query.since,
        until: query.until,
        vault_owner: None,
    })
}

/// The parts of a decision that belong to its call: the guardians, verdicts, rules and consequences.
fn decision(data: &Value) -> Map<String, Value> {
    let kept =
        ["hook", "dialect", "effective", "guardians", "policy_version", "approval_id", "hash_before", "hash_after"];
    kept.iter().filter_map(|name| Some(((*name).to_owned(), data.get(*name)?.clone()))).collect()
}

/// The SDK sends a string; of a structured error the message is used.
fn error_text(error: Option<&Value>) -> Result<Option<String>, Refusal> {
    let text = match error {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Object(members)) => members.get("message").and_then(Value::as_str),
        Some(_) => None,
    };
    match text.map(Line::parse) {
        Some(Ok(line)) => Ok(Some(line.as_str().to_owned())),
        _ => Err(wrong("error", "must be a line of text, or an object with one in `message`")),
    }
}

fn cost(cost: Option<&Value>) -> Result<Option<Cost>, Refusal> {
    let dollars = match cost {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(members)) => match members.get("estimated_cost_usd") {
            None | Some(Value::Null) => return Ok(None),
            Some(dollars) => dollars.as_f64(),
        },
        Some(dollars) => dollars.as_f64(),
    };
    let cost = dollars.and_then(Cost::from_dollars);
    cost.map(Some)
        .ok_or_else(|| wrong("cost", "must be an amount in US dollars, or an object with one in `estimated_cost_usd`"))
}

fn wrong(name: &str, reason: &str) -> Refusal {
    Refusal::new(Code::InvalidField, format!("`{name}` {reason}")).with("path", name)
}
