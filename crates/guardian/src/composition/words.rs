//! What an agent is told about a guardian's no, and about a guardian that gave no verdict. The two read differently:
//! the second may pass by itself.

use std::time::Duration;

use toolgate_model::guard::{FailureClass, Hook};

/// A guardian said no.
pub(super) fn denial(guardian: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("guardian {guardian} said no: {reason}"),
        None => format!("guardian {guardian} said no"),
    }
}

/// A guardian gave no verdict that can be used, after this much time.
pub(super) fn failure(guardian: &str, class: FailureClass, timeout: Duration, hook: Hook) -> String {
    let consequence = match hook {
        Hook::ToolCallRequest => "the call was not run",
        Hook::ToolCallResult => "the result is withheld",
        _ => "nothing was passed on",
    };
    let (what, advice) = match class {
        FailureClass::Timeout => (format!("did not answer within {} ms", timeout.as_millis()), "; try again"),
        FailureClass::Busy => ("has too many questions under way".to_owned(), "; try again"),
        FailureClass::CircuitOpen => ("failed too often and is not asked for a while".to_owned(), "; try again later"),
        FailureClass::Connect | FailureClass::Tls => ("cannot be reached".to_owned(), "; try again later"),
        FailureClass::Oversize => ("cannot be asked about this much, or answered too much".to_owned(), ""),
        FailureClass::Refused => ("refuses to speak with this gate".to_owned(), ""),
        FailureClass::BadModify => ("asked for a change that cannot be made".to_owned(), ""),
        FailureClass::IdentityChange => ("asked for a change of what must not change".to_owned(), ""),
        FailureClass::ModifyNotAllowed => ("asked for a change and may not change anything".to_owned(), ""),
        FailureClass::Status
        | FailureClass::ContentType
        | FailureClass::Malformed
        | FailureClass::IdMismatch
        | FailureClass::GuardianError
        | FailureClass::UnknownDecision
        | FailureClass::IncompleteDecision => (format!("gave no verdict that can be used ({})", class.as_str()), ""),
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
            "guardian pii did not answer within 250 ms; the call was not run; try again"
        );
        assert_eq!(denial("pii", Some("no cards")), "guardian pii said no: no cards");
        assert_eq!(denial("pii", None), "guardian pii said no");
    }

    #[test]
    fn no_failure_reads_like_a_no_and_each_says_what_became_of_it() {
        for class in FailureClass::ALL {
            for (hook, consequence) in [
                (Hook::ToolCallRequest, "the call was not run"),
                (Hook::ToolCallResult, "the result is withheld"),
                (Hook::MemoryStore, "nothing was passed on"),
            ] {
                let text = failure("pii", class, Duration::from_secs(1), hook);
                assert!(!text.contains("said no") && text.contains(consequence), "{text}");
            }
        }
    }
}
