//! Calls that report on standard error while they wait for an approver.

use toolgate_api::detached::{DetachedCall, DetachedStatus, FetchResult};
use toolgate_api::tools::{AskedApproval, CallRequest, CallStep, InvokeTool, SucceededCall};

use crate::client::{Client, ClientError, call_outcome};
use crate::output::{self, Report, clean, plain};

/// Makes a call and waits for its result, however long an approver takes.
pub(super) async fn call(client: &Client, body: &CallRequest) -> Result<SucceededCall, ClientError> {
    let mut steps = client.to::<InvokeTool>().body(body).lines().await?;
    while let Some(step) = steps.next().await? {
        match step {
            CallStep::Asked { approval } => output::say(&asked(&approval)),
            CallStep::Answered { status, body } => return call_outcome(status, *body),
            _ => {}
        }
    }
    Err(client.broken_off("the outcome of the call is missing"))
}

/// Follows a detached call to its end.
pub(super) async fn follow(client: &Client, id: &str) -> Result<SucceededCall, ClientError> {
    let mut shown = String::new();
    loop {
        let mut steps = client.to::<FetchResult>().named(id).lines().await?;
        while let Some(step) = steps.next().await? {
            match step {
                CallStep::State { call } => {
                    let state = state(&call);
                    if state != shown {
                        output::say(&state);
                        shown = state;
                    }
                }
                CallStep::Answered { status, body } => return call_outcome(status, *body),
                // The gate is stopping; another process continues the call.
                CallStep::Interrupted => break,
                _ => {}
            }
        }
    }
}

/// An accepted detached call: only its id goes to standard output.
pub(super) fn accepted(call: &DetachedCall) -> Report {
    let id = call.invocation_id;
    let aside = format!("accepted; fetch the result with `toolgate invocation result {id}`\n");
    Report::new(call, format!("{id}\n")).with_aside(aside)
}

fn state(call: &DetachedCall) -> String {
    match (call.status, call.approval_ids.last()) {
        (DetachedStatus::Waiting, Some(approval)) => {
            format!("toolgate: the call waits for approval {approval}; decide it with `toolgate approvals`")
        }
        (status, _) => format!("toolgate: the call is {}", plain(&serde_json::json!(status))),
    }
}

fn asked(approval: &AskedApproval) -> String {
    let (id, until) = match approval {
        AskedApproval::Whole(approval) => (approval.id, format!(" until {}", approval.expires_at)),
        AskedApproval::Brief(approval) => (approval.id, String::new()),
    };
    clean(&format!("toolgate: the call waits for approval {id}{until}; decide it with `toolgate approvals`"))
}

#[cfg(test)]
mod tests {
    use toolgate_api::tools::BriefApproval;
    use toolgate_model::id::ApprovalId;

    use super::*;

    #[test]
    fn a_caller_that_waits_is_told_for_which_approval() {
        let id = ApprovalId::parse("appr_01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        let shown = asked(&AskedApproval::Brief(BriefApproval { id, tool: "mail.send\u{1b}[2J".to_owned() }));
        assert!(shown.contains("appr_01ARZ3NDEKTSV4RRFFQ69G5FAV") && !shown.contains('\u{1b}'), "{shown}");
    }
}
