//! `toolgate approvals match`: evaluates prefixes on command lines, without a gate.

use std::io::{self, BufRead, Read};

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_approval::shell::{Coverage, Prefix, Surroundings, covered};
use toolgate_model::strict_json;

use crate::command::Failure;
use crate::output::{self, Report};

const MAX_LINE: u64 = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    command: String,
    prefixes: Vec<String>,
}

pub(super) fn run() -> Result<Report, Failure> {
    decide_lines(&mut io::stdin().lock())?;
    // Each line was printed already.
    Ok(Report::new(Value::Null, ""))
}

fn decide_lines(input: &mut impl BufRead) -> Result<(), Failure> {
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::io("standard input", error))? == 0 {
            return Ok(());
        }
        let whole = line.ends_with(b"\n") || u64::try_from(line.len()).is_ok_and(|length| length <= MAX_LINE);
        let decision = if whole {
            decide(&line)
        } else {
            input.skip_until(b'\n').map_err(|error| Failure::io("standard input", error))?;
            refused(format!("the line is longer than {MAX_LINE} bytes; send a shorter one"))
        };
        output::print(&decision.to_string()).map_err(|error| Failure::io("standard output", error))?;
    }
}

fn decide(line: &[u8]) -> Value {
    let value = match strict_json::parse(line) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) => return refused("the line is not a JSON object; send `command` and `prefixes`".to_owned()),
        Err(error) => return refused(format!("could not parse the line: {error}")),
    };
    let question: Question = match serde_json::from_value(value) {
        Ok(question) => question,
        Err(error) => return refused(format!("the line is invalid: {error}; send `command` and `prefixes`")),
    };
    let mut prefixes = Vec::new();
    let mut objections = Vec::new();
    for text in &question.prefixes {
        match Prefix::parse(text) {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => objections.push(format!("; a prefix was ignored: {error}")),
        }
    }
    let Coverage { approve, why, .. } = covered(&question.command, &prefixes, Surroundings::UNKNOWN);
    json!({"approve": approve, "why": format!("{why}{}", objections.concat())})
}

fn refused(why: String) -> Value {
    json!({"approve": false, "why": why})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approves(line: &str) -> bool {
        let decision = decide(line.as_bytes());
        assert!(!decision["why"].as_str().unwrap().is_empty(), "{line}");
        decision["approve"].as_bool().unwrap()
    }

    #[test]
    fn a_line_is_judged_by_its_own_prefixes() {
        assert!(approves(r#"{"command": "cargo build && cargo test", "prefixes": ["cargo "]}"#));
        assert!(approves(r#"{"command": "cargo build | grep x", "prefixes": ["grep", "cargo "]}"#));
        assert!(!approves(r#"{"command": "cargo build", "prefixes": []}"#));
    }

    #[test]
    fn a_prefix_that_is_refused_counts_for_nothing_and_is_named() {
        assert!(!approves(r#"{"command": "bash -c x", "prefixes": ["bash "]}"#));
        let decision = decide(br#"{"command": "cargo build", "prefixes": ["bash ", "cargo "]}"#);
        assert_eq!(decision["approve"], true);
        assert!(decision["why"].as_str().unwrap().contains("`bash` is a shell"), "{decision}");
    }

    #[test]
    fn a_line_that_is_no_question_is_answered_with_no() {
        for line in [
            "",
            "\n",
            "{",
            "null",
            "[]",
            r#"["cargo", ["cargo"]]"#,
            r#"{"command": "cargo"}"#,
            r#"{"command": "cargo", "prefixes": "cargo"}"#,
            r#"{"command": "cargo", "prefixes": ["cargo"], "force": true}"#,
            r#"{"command": "cargo", "command": "evil", "prefixes": ["cargo"]}"#,
            r#"{"command": 1, "prefixes": ["cargo"]}"#,
            r#"{"command": "cargo", "prefixes": ["cargo"]} x"#,
        ] {
            assert!(!approves(line), "{line}");
        }
        assert_eq!(decide(b"\xff")["approve"], false);
    }
}
