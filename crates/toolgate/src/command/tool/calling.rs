//! A call, with whoever makes it told why it takes so long where it waits for a person.

use serde_json::Value;

use crate::client::{Client, ClientError, answered};
use crate::output::{self, Report, at, clean, plain};

/// Makes a call and waits for its answer, for as long as a person may take.
pub(super) async fn call(client: &Client, body: &Value) -> Result<Value, ClientError> {
    let mut steps = client.change_in_steps("/api/v1/tools/invoke", body).await?;
    while let Some(step) = steps.next().await? {
        match at(&step, "event").as_str() {
            Some("asked") => output::say(&asked(at(&step, "approval"))),
            Some("answered") => return answered(&step),
            _ => {}
        }
    }
    Err(client.broken_off("it did not say how the call ended"))
}

/// Follows a detached call to its end.
pub(super) async fn follow(client: &Client, path: &str) -> Result<Value, ClientError> {
    let mut shown = String::new();
    loop {
        let mut steps = client.follow_steps(path).await?;
        while let Some(step) = steps.next().await? {
            match at(&step, "event").as_str() {
                Some("state") => {
                    let state = state(at(&step, "call"));
                    if state != shown {
                        output::say(&state);
                        shown = state;
                    }
                }
                Some("answered") => return answered(&step),
                // The gate stops; the one that takes its place knows as much.
                Some("interrupted") => break,
                _ => {}
            }
        }
    }
}

/// A detached call that was accepted: its id alone on standard output.
pub(super) fn accepted(call: Value) -> Report {
    let id = plain(at(&call, "invocation_id"));
    let aside = format!("accepted; its result is fetched with `toolgate invocation result {id}`\n");
    Report::new(call, format!("{id}\n")).with_aside(aside)
}

fn state(call: &Value) -> String {
    let shown = |name: &str| clean(at(call, name).as_str().unwrap_or_default());
    let approvals = at(call, "approval_ids").as_array().and_then(|ids| ids.last()).and_then(Value::as_str);
    match (shown("status").as_str(), approvals) {
        ("waiting", Some(approval)) => {
            format!(
                "toolgate: this call waits for a person: {}; it is decided with `toolgate approvals`",
                clean(approval)
            )
        }
        (status, _) => format!("toolgate: this call is {status}"),
    }
}

fn asked(approval: &Value) -> String {
    let shown = |name: &str| clean(at(approval, name).as_str().unwrap_or_default());
    format!(
        "toolgate: this call waits for a person until {}: {}; it is answered with `toolgate approvals`",
        shown("expires_at"),
        shown("id")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_waits_is_told_for_what_without_being_shown_anything_a_terminal_obeys() {
        let shown = asked(&json!({"id": "appr_1\u{1b}[2J", "expires_at": "2026-01-01T00:00:00.000+00:00"}));
        assert!(shown.contains("appr_1") && !shown.contains('\u{1b}'), "{shown}");
    }
}
