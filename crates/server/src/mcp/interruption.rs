//! A call that must wait for an approver, where the client can open a page for its user: the call is interrupted with a link
//! to the approval, and continues when the client sends it again with the state that it was given. Only an approver can
//! decide on the page; opening it decides nothing.

use serde_json::{Map, Value, json};
use toolgate_gate::call::{DetachedView, call_digest};
use toolgate_gate::ports::ledger::DetachedState;
use toolgate_gate::refusal::Refusal;
use toolgate_model::continuation::{Bound, is_sealed};
use toolgate_model::id::InvocationId;

use super::call::Context;
use super::input::Sent;
use super::reply::RpcError;
use crate::shutdown::Phase;

/// The one thing that the client is asked for.
const INPUT: &str = "approval";

/// What a client sends to go on with a call that was interrupted for an approval.
pub(super) struct Continued {
    state: String,
    /// Whether its user did not want to open the page.
    pub(super) is_declined: bool,
}

impl Continued {
    pub(super) fn of(sent: &Sent) -> Option<Self> {
        let state = sent.state.clone().filter(|state| !is_sealed(state))?;
        let action = sent.responses.get(INPUT).and_then(|response| response.get("action")).and_then(Value::as_str);
        Some(Self { state, is_declined: matches!(action, Some("decline" | "cancel")) })
    }

    /// The call that is to go on: one of this caller, with the same arguments, whose result was not fetched yet.
    pub(super) async fn call(
        &self,
        context: &Context,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<InvocationId, RpcError> {
        let app = &context.app;
        let digest = call_digest(tool, arguments);
        let bound = bound(context, context.form.method(), &digest);
        let call = app.gate.continuations.read(bound, app.gate.clock.now(), &self.state);
        let call = call.ok_or_else(RpcError::unknown_state)?;
        app.gate.detached.detached_call(&context.caller, call).await.map_err(|_| RpcError::unknown_state())?;
        Ok(call)
    }
}

/// The digest that an interruption is bound to; `None` where calls are not interrupted for this client.
pub(super) fn digest(context: &Context, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
    let can =
        context.era.is_modern() && context.capabilities.input.url && context.app.mcp.settings.public_url.is_some();
    can.then(|| call_digest(tool, arguments))
}

/// Interrupts a call; `None` where there is nothing to be asked.
pub(super) async fn interrupted(
    context: &Context,
    call: InvocationId,
    digest: &str,
) -> Result<Option<Map<String, Value>>, Refusal> {
    let app = &context.app;
    let Some(public_url) = &app.mcp.settings.public_url else { return Ok(None) };
    let Some(approval) = asked(context, call).await? else { return Ok(None) };
    let (link, until) = app.gate.approvals.create_approval_link(&context.caller, approval).await?;
    let url = format!("{public_url}/approvals/open/{}", link.expose());
    let message = format!("A person must approve this call ({approval}). Open the page as an approver.");
    let input = json!({"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}});
    let state = app.gate.continuations.write(bound(context, context.form.method(), digest), call, until);
    Ok(Some(Map::from_iter([
        ("resultType".to_owned(), json!("input_required")),
        ("inputRequests".to_owned(), json!({INPUT: input})),
        ("requestState".to_owned(), json!(state)),
    ])))
}

/// What a continuation for this caller is bound to.
pub(super) fn bound<'a>(context: &'a Context, method: &'a str, digest: &'a str) -> Bound<'a> {
    Bound { tenant: context.caller.tenant(), principal: context.caller.id(), method, digest }
}

/// The approval that a call waits for, once it does.
async fn asked(context: &Context, call: InvocationId) -> Result<Option<toolgate_model::id::ApprovalId>, Refusal> {
    let reader = &context.app.gate.detached;
    let mut follower = reader.follow_detached(call);
    loop {
        match reader.detached_call(&context.caller, call).await? {
            DetachedView::Open(open) if open.state == DetachedState::Ready => {}
            DetachedView::Open(open) if open.state == DetachedState::Waiting => {
                return Ok(open.asked.last().map(|asked| asked.approval));
            }
            DetachedView::Open(_) | DetachedView::Ended(_) => return Ok(None),
        }
        tokio::select! {
            () = follower.changed() => {}
            _ = context.app.shutdown.after(Phase::LameDuck) => return Ok(None),
            () = context.presence.clone().gone() => return Ok(None),
        }
    }
}
