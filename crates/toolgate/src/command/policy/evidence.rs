//! What policies would have changed: rules in shadow since some time, and a draft against the calls in the log.

use std::io::IsTerminal;

use serde_json::{Value, json};
use toolgate_model::time::Timestamp;

use crate::client::{Client, ClientError, answered};
use crate::output::{self, Report, at, plain, table};

/// What rules in shadow would have done.
pub(super) fn shadow(since: Timestamp, answer: Value) -> Report {
    let rules = list(&answer, "rules");
    let count = |rule: &Value, verdict: &str| at(rule, "verdicts").get(verdict).and_then(Value::as_u64).unwrap_or(0);
    let rows: Vec<Value> = rules
        .iter()
        .map(|rule| {
            json!({
                "policy": at(rule, "policy_id"), "change": at(rule, "would_change"),
                "deny": count(rule, "deny"), "ask": count(rule, "ask"), "modify": count(rule, "modify"),
            })
        })
        .collect();
    let mut text = format!("{} decisions since {since}.\n", plain(at(&answer, "decisions")));
    if rules.is_empty() {
        text.push_str("No rule in shadow would have said anything.\n");
    } else {
        let columns =
            [("RULE", "policy"), ("WOULD CHANGE", "change"), ("DENY", "deny"), ("ASK", "ask"), ("MODIFY", "modify")];
        text.push_str(&format!("\n{}", table(&rows, &columns)));
    }
    for rule in rules {
        let examples = list(rule, "examples");
        if !examples.is_empty() {
            let columns = [
                ("TIME", "timestamp"),
                ("CALL", "invocation_id"),
                ("AGENT", "agent_id"),
                ("WHAT", "subject"),
                ("WAS", "effective"),
                ("WOULD BE", "would_be"),
            ];
            text.push_str(&format!("\nThe newest of {}:\n{}", plain(at(rule, "policy_id")), table(examples, &columns)));
        }
    }
    text.push_str(truncated(&answer));
    Report::new(answer, text)
}

/// Has a draft simulated, and tells whoever waits at a terminal how far that has come.
pub(super) async fn simulate(client: &Client, body: &Value) -> Result<Value, ClientError> {
    let mut steps = client.change_in_steps("/api/v1/policies/simulate", body).await?;
    let watched = std::io::stderr().is_terminal();
    while let Some(step) = steps.next().await? {
        match at(&step, "event").as_str() {
            Some("progress") if watched => output::say(&format!("toolgate: {}", progress(&step))),
            Some("answered") => return answered(&step),
            _ => {}
        }
    }
    Err(client.broken_off("it did not say how the simulation ended"))
}

fn progress(step: &Value) -> String {
    let number = |name: &str| plain(at(step, name));
    format!(
        "{} calls judged, {} otherwise; at event {} of {}",
        number("calls"),
        number("changed"),
        number("reached"),
        number("size")
    )
}

/// What a draft would have changed.
pub(super) fn simulation(since: Timestamp, answer: Value) -> Report {
    let rows: Vec<Value> = list(&answer, "changes")
        .iter()
        .map(|change| {
            let after = at(change, "after");
            let was = at(change, "was").as_str().or(at(change, "before").as_str());
            json!({
                "time": at(change, "timestamp"), "call": at(change, "invocation_id"), "agent": at(change, "agent_id"),
                "what": at(change, "subject"), "was": was, "after": at(after, "verdict"),
                "because": because(after),
            })
        })
        .collect();
    let number = |name: &str| plain(at(&answer, name));
    let mut text = format!(
        "{} calls since {since}: {} would be judged otherwise, {} cannot be known.\n",
        number("calls"),
        number("changed"),
        number("undecidable")
    );
    if !rows.is_empty() {
        let columns = [
            ("TIME", "time"),
            ("CALL", "call"),
            ("AGENT", "agent"),
            ("WHAT", "what"),
            ("WAS", "was"),
            ("WOULD BE", "after"),
            ("BY", "because"),
        ];
        text.push_str(&format!("\n{}", table(&rows, &columns)));
    }
    if at(&answer, "truncated") == &Value::Bool(true) {
        text.push_str("\nOnly the first of them are listed; say a later --since to see others.\n");
    }
    Report::new(answer, text)
}

/// The rules that a judgement comes from, and what they would have to know.
fn because(judged: &Value) -> String {
    let rules = plain(at(judged, "policies"));
    match list(judged, "missing") {
        [] => rules,
        _ => format!("{rules}; not recorded: {}", plain(at(judged, "missing"))),
    }
}

fn truncated(answer: &Value) -> &'static str {
    let truncated = at(answer, "truncated") == &Value::Bool(true);
    if truncated { "\nThe log has more than was looked through; say a later --since to see the rest.\n" } else { "" }
}

fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    at(answer, name).as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since() -> Timestamp {
        Timestamp::parse("2026-03-01T10:00:00Z").unwrap()
    }

    #[test]
    fn a_rule_in_shadow_is_told_with_what_it_would_have_changed() {
        let example = json!({
            "sequence": 7, "invocation_id": "inv_1", "timestamp": "2026-03-02T00:00:00.000+00:00", "agent_id": "coder",
            "subject": "shell.Bash", "effective": "allow", "would_be": "ask",
        });
        let rule = json!({"policy_id": "exec-asks", "verdicts": {"ask": 3}, "would_change": 1, "examples": [example]});
        let text = shadow(since(), json!({"decisions": 9, "rules": [rule], "truncated": true})).text;
        assert_eq!(
            text,
            "9 decisions since 2026-03-01T10:00:00.000+00:00.\n\n\
             RULE       WOULD CHANGE  DENY  ASK  MODIFY\n\
             exec-asks  1             0     3    0\n\n\
             The newest of exec-asks:\n\
             TIME                           CALL   AGENT  WHAT        WAS    WOULD BE\n\
             2026-03-02T00:00:00.000+00:00  inv_1  coder  shell.Bash  allow  ask\n\n\
             The log has more than was looked through; say a later --since to see the rest.\n"
        );
        let nothing = shadow(since(), json!({"decisions": 0, "rules": [], "truncated": false})).text;
        assert!(nothing.ends_with("No rule in shadow would have said anything.\n"), "{nothing}");
    }

    #[test]
    fn what_cannot_be_known_is_said_and_not_guessed() {
        let change = |after: Value| {
            json!({
                "sequence": 1, "invocation_id": "inv_1", "timestamp": "T", "agent_id": "coder", "subject": "mail.send",
                "before": "allow", "after": after,
            })
        };
        let changes = [
            change(json!({"verdict": "deny", "policies": ["no-mail"], "missing": []})),
            change(json!({"verdict": "undecidable", "policies": ["big"], "missing": ["arguments.amount"]})),
        ];
        let answer = json!({"calls": 5, "changed": 1, "undecidable": 1, "changes": changes, "truncated": false});
        let text = simulation(since(), answer).text;
        assert_eq!(
            text,
            "5 calls since 2026-03-01T10:00:00.000+00:00: 1 would be judged otherwise, 1 cannot be known.\n\n\
             TIME  CALL   AGENT  WHAT       WAS    WOULD BE     BY\n\
             T     inv_1  coder  mail.send  allow  deny         no-mail\n\
             T     inv_1  coder  mail.send  allow  undecidable  big; not recorded: arguments.amount\n"
        );
    }
}
