//! The messages for agents about a guardian's denial, and about a guardian that gave no decision. The wording differs,
//! because the second may be temporary.

use std::time::Duration;

use toolgate_model::guard::{FailureClass, Hook};

pub(super) fn denial(guardian: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("guardian {guardian} denied this: {reason}"),
        None => format!("guardian {guardian} denied this"),
    }
}

/// A guardian gave no usable decision within this time.
pub(super) fn failure(guardian: &str, class: FailureClass, timeout: Duration, hook: Hook) -> String {
    let consequence = match hook {
        Hook::ToolCallRequest => "the call was not executed",
        Hook::ToolCallResult => "the result is withheld",
        _ => "nothing was passed on",
    };
    let (what, advice) = match class {
        FailureClass::Timeout => (format!("did not respond within {} ms", timeout.as_millis()), "; try again"),
        FailureClass::Busy => ("has too many requests in flight".to_owned(), "; try again"),
        FailureClass::CircuitOpen => ("failed too often and is not asked for now".to_owned(), "; try again later"),
        FailureClass::Connect | FailureClass::Tls => ("could not be reached".to_owned(), "; try again later"),
        FailureClass::Oversize => ("got a request or sent a response above the size limit".to_owned(), ""),
        FailureClass::Refused => ("refused the request of this gate".to_owned(), ""),
        FailureClass::BadModify => ("sent a modification that cannot be applied".to_owned(), ""),
        FailureClass::IdentityChange => ("sent a modification of members that must not change".to_owned(), ""),
        FailureClass::ModifyNotAllowed => ("sent a modification and is not allowed to modify".to_owned(), ""),
        FailureClass::Status
        | FailureClass::ContentType
        | FailureClass::Malformed
        | FailureClass::IdMismatch
        | FailureClass::GuardianError
        | FailureClass::UnknownDecision
        | FailureClass::IncompleteDecision => (format!("gave no usable decision ({})", class.as_str()), ""),
    };
    format!("guardian {guardian} {what}; {consequence}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_reads_differently_from_a_no() {
        let timeout = Duration::from_millis(250);
        assert_eq!(
            failure("pii", FailureClass::Timeout, timeout, Hook::ToolCallRequest),
            "guardian pii did not respond within 250 ms; the call was not executed; try again"
        );
        assert_eq!(denial("pii", Some("no cards")), "guardian pii denied this: no cards");
        assert_eq!(denial("pii", None), "guardian pii denied this");
    }

    #[test]
    fn no_failure_reads_like_a_no_and_each_says_what_became_of_it() {
        for class in FailureClass::ALL {
            for (hook, consequence) in [
                (Hook::ToolCallRequest, "the call was not executed"),
                (Hook::ToolCallResult, "the result is withheld"),
                (Hook::MemoryStore, "nothing was passed on"),
            ] {
                let text = failure("pii", class, Duration::from_secs(1), hook);
                assert!(!text.contains("denied this") && text.contains(consequence), "{text}");
            }
        }
    }
}
