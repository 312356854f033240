//! What policies would have changed: reports of shadow mode, and simulations of a draft.

use std::io::IsTerminal;

use serde_json::{Value, json};
use toolgate_api::policies::{
    Reevaluation, ShadowReport, ShadowRule, SimulatePolicies, Simulation, SimulationRequest, SimulationResponse,
    SimulationStep, VerdictChange,
};
use toolgate_model::time::Timestamp;

use crate::client::{Client, ClientError, Refused, refused};
use crate::output::{self, Report, clean, plain, table, table_of};

pub(super) fn shadow(since: Timestamp, report: &ShadowReport) -> Report {
    let count = |rule: &ShadowRule, verdict: &str| rule.verdicts.get(verdict).copied().unwrap_or(0);
    let row = |rule: &ShadowRule| {
        json!({
            "policy": rule.policy_id, "change": rule.would_change, "deny": count(rule, "deny"),
            "ask": count(rule, "ask"), "modify": count(rule, "modify"),
        })
    };
    let rows: Vec<Value> = report.rules.iter().map(row).collect();
    let mut text = format!("{} decisions since {since}.\n", report.decisions);
    if rows.is_empty() {
        text.push_str("No rule in shadow mode would have applied.\n");
    } else {
        let columns =
            [("RULE", "policy"), ("WOULD CHANGE", "change"), ("DENY", "deny"), ("ASK", "ask"), ("MODIFY", "modify")];
        text.push_str(&format!("\n{}", table(&rows, &columns)));
    }
    for rule in report.rules.iter().filter(|rule| !rule.examples.is_empty()) {
        let columns = [
            ("TIME", "timestamp"),
            ("CALL", "invocation_id"),
            ("AGENT", "agent_id"),
            ("WHAT", "subject"),
            ("WAS", "effective"),
            ("WOULD BE", "would_be"),
        ];
        let examples = table_of(&rule.examples, &columns);
        text.push_str(&format!("\nLatest for {}:\n{examples}", clean(&rule.policy_id)));
    }
    if report.truncated {
        text.push_str("\nThe log has more events than were read; use a later --since to see the rest.\n");
    }
    Report::new(report, text)
}

/// Simulates a draft, and reports progress at a terminal.
pub(super) async fn simulate(client: &Client, body: &SimulationRequest) -> Result<Simulation, ClientError> {
    let mut steps = client.to::<SimulatePolicies>().body(body).lines().await?;
    let watched = std::io::stderr().is_terminal();
    while let Some(step) = steps.next().await? {
        match step {
            SimulationStep::Progress { reached, size, calls, changed } if watched => {
                output::say(&format!("toolgate: {calls} calls evaluated, {changed} changed; event {reached} of {size}"))
            }
            SimulationStep::Progress { .. } => {}
            SimulationStep::Answered { status, body } => match *body {
                SimulationResponse::Done(simulation) => return Ok(simulation),
                SimulationResponse::Refused(body) => return Err(refused(status, Refused::Request(*body))),
            },
        }
    }
    Err(client.broken_off("the outcome of the simulation is missing"))
}

pub(super) fn simulation(since: Timestamp, simulation: &Simulation) -> Report {
    let row = |change: &VerdictChange| {
        json!({
            "time": change.timestamp, "call": change.invocation_id, "agent": change.agent_id, "what": change.subject,
            "was": change.was, "after": change.after.verdict, "because": because(&change.after),
        })
    };
    let rows: Vec<Value> = simulation.changes.iter().map(row).collect();
    let mut text = format!(
        "{} calls since {since}: {} with another verdict, {} undecidable.\n",
        simulation.calls, simulation.changed, simulation.undecidable
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
    if simulation.truncated {
        text.push_str("\nOnly the first ones are listed; use a later --since to see others.\n");
    }
    Report::new(simulation, text)
}

/// The deciding rules, and what they read that was not recorded.
fn because(judged: &Reevaluation) -> String {
    let rules = plain(&json!(judged.policies));
    match judged.missing.as_slice() {
        [] => rules,
        missing => format!("{rules}; not recorded: {}", plain(&json!(missing))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

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
        let text = shadow(since(), &read(json!({"decisions": 9, "rules": [rule], "truncated": true}))).text;
        assert_eq!(
            text,
            "9 decisions since 2026-03-01T10:00:00.000+00:00.\n\n\
             RULE       WOULD CHANGE  DENY  ASK  MODIFY\n\
             exec-asks  1             0     3    0\n\n\
             Latest for exec-asks:\n\
             TIME                           CALL   AGENT  WHAT        WAS    WOULD BE\n\
             2026-03-02T00:00:00.000+00:00  inv_1  coder  shell.Bash  allow  ask\n\n\
             The log has more events than were read; use a later --since to see the rest.\n"
        );
        let nothing = shadow(since(), &read(json!({"decisions": 0, "rules": [], "truncated": false}))).text;
        assert!(nothing.ends_with("No rule in shadow mode would have applied.\n"), "{nothing}");
    }

    #[test]
    fn what_cannot_be_known_is_said_and_not_guessed() {
        let change = |after: Value| {
            json!({
                "sequence": 1, "invocation_id": "inv_1", "timestamp": "T", "agent_id": "coder", "subject": "mail.send",
                "before": "allow", "was": "allow", "denied_with": null, "after": after,
            })
        };
        let changes = [
            change(json!({"verdict": "deny", "policies": ["no-mail"], "missing": []})),
            change(json!({"verdict": "undecidable", "policies": ["big"], "missing": ["arguments.amount"]})),
        ];
        let answer = json!({"calls": 5, "changed": 1, "undecidable": 1, "changes": changes, "truncated": false});
        let text = simulation(since(), &read(answer)).text;
        assert_eq!(
            text,
            "5 calls since 2026-03-01T10:00:00.000+00:00: 1 with another verdict, 1 undecidable.\n\n\
             TIME  CALL   AGENT  WHAT       WAS    WOULD BE     BY\n\
             T     inv_1  coder  mail.send  allow  deny         no-mail\n\
             T     inv_1  coder  mail.send  allow  undecidable  big; not recorded: arguments.amount\n"
        );
    }
}
