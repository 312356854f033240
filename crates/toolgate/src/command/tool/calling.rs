//! A call, with whoever makes it told why it takes so long where it waits for a person.

use http::StatusCode;
use serde_json::Value;

use crate::client::{Client, ClientError};
use crate::output::{self, at, clean};

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

fn asked(approval: &Value) -> String {
    let told = |name: &str| clean(at(approval, name).as_str().unwrap_or_default());
    format!(
        "toolgate: this call waits for a person until {}: {}; it is answered with `toolgate approvals`",
        told("expires_at"),
        told("id")
    )
}

fn answered(step: &Value) -> Result<Value, ClientError> {
    let body = at(step, "body").clone();
    if body.pointer("/error/code").is_none() {
        return Ok(body);
    }
    let status = at(step, "status").as_u64().and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    Err(ClientError::Refused { status: status.unwrap_or(StatusCode::BAD_GATEWAY), body: Box::new(body) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_with_an_error_is_a_refusal_with_its_status() {
        let refused =
            answered(&json!({"event": "answered", "status": 403, "body": {"error": {"code": "APPROVAL_DENIED"}}}));
        assert!(matches!(refused, Err(ClientError::Refused { status: StatusCode::FORBIDDEN, .. })));
        let done = answered(&json!({"event": "answered", "status": 200, "body": {"status": "success", "error": null}}));
        assert_eq!(done.unwrap()["status"], "success");
    }

    #[test]
    fn whoever_waits_is_told_for_what_without_being_shown_anything_a_terminal_obeys() {
        let told = asked(&json!({"id": "appr_1\u{1b}[2J", "expires_at": "2026-01-01T00:00:00.000+00:00"}));
        assert!(told.contains("appr_1") && !told.contains('\u{1b}'), "{told}");
    }
}
