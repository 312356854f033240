//! The commands of a command line with what is known of each, so that an approver sees at once what is new.

use toolgate_gate::ports::approver::{Covered, Part, PartState, RiskLevel};
use toolgate_model::approval::{Approval, Category, StandingApproval};

use crate::arguments::command_line;
use crate::coverage::{is_for, of_approval, prefix};
use crate::place::Directory;
use crate::risk::{Finding, of_command};
use crate::shell::{Objection, PlainCommand, Prefix, Word, judge, read};
use toolgate_model::visible::visible;

/// The commands of the call's command line; empty if it has none. The standing approvals are assumed to be active and
/// the agent's own.
pub fn parts(approval: &Approval, standing: &[StandingApproval]) -> Vec<Part> {
    let line = approval.arguments.as_ref().and_then(command_line).filter(|_| approval.category == Category::Exec);
    let (Some(line), Some(arguments)) = (line, &approval.arguments) else { return Vec::new() };
    let (session, action) = (approval.session.as_ref(), approval.action.as_ref());
    let call = Covered { tool: &approval.tool, external: approval.external, action, arguments, session };
    let here = standing.iter().filter(|one| is_for(one, &call));
    let prefixes: Vec<Prefix> = here.filter_map(prefix).collect();
    match read(line) {
        Ok(commands) => {
            let directory = Directory::of(session.and_then(|session| session.workspace.as_ref()));
            let judged = judge(&commands, &prefixes, of_approval(approval));
            commands.iter().zip(judged).map(|(command, judged)| part(command, judged, &prefixes, &directory)).collect()
        }
        Err(objection) => {
            vec![Part { text: visible(line), state: PartState::Risky, why: objection.to_string() }]
        }
    }
}

fn part(command: &PlainCommand, judged: Result<usize, Objection>, prefixes: &[Prefix], directory: &Directory) -> Part {
    let text = command.words.iter().map(spelled).collect::<Vec<_>>().join(" ");
    let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
    let risks: Vec<String> = of_command(&words, directory).into_iter().filter(is_high).map(|risk| risk.note).collect();
    let (state, why) = match judged.map(|place| prefixes.get(place)) {
        Ok(Some(prefix)) => (PartState::Granted, format!("covered by `{prefix}`")),
        Err(objection) if risks.is_empty() => (PartState::New, objection.to_string()),
        // INVARIANT: every index is that of a prefix; other approvals grant none.
        Ok(None) | Err(_) => (PartState::Risky, risks.join("; ")),
    };
    Part { text: visible(&text), state, why }
}

fn is_high(finding: &Finding) -> bool {
    finding.kind.level() == RiskLevel::High
}

/// Quotes a word so that the shell parses it to the same text.
fn spelled(word: &Word) -> String {
    if word.plain { word.text.clone() } else { format!("'{}'", word.text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use toolgate_model::approval::{Coverage, Reach, SessionName};

    use super::*;
    use crate::fixture::{BASH, command, prefix as words, session, standing};

    fn states(line: &str, standing: &[StandingApproval]) -> Vec<(String, PartState)> {
        parts(&command(line), standing).into_iter().map(|part| (part.text, part.state)).collect()
    }

    fn owned(states: &[(&str, PartState)]) -> Vec<(String, PartState)> {
        states.iter().map(|&(text, state)| (text.to_owned(), state)).collect()
    }

    #[test]
    fn each_command_is_granted_new_or_risky() {
        let given = [standing(1, BASH, words("cargo"))];
        assert_eq!(
            states("cargo build 2>&1 && ls 'a b' | wc -l; rm -r x", &given),
            owned(&[
                ("cargo build", PartState::Granted),
                ("ls 'a b'", PartState::New),
                ("wc -l", PartState::New),
                ("rm -r x", PartState::Risky),
            ])
        );
        let why: Vec<String> = parts(&command("cargo build; rm x"), &given).into_iter().map(|part| part.why).collect();
        assert_eq!(why, ["covered by `cargo`", "it deletes or overwrites something (`rm`)"]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_one_risky_part() {
        let parts = parts(&command("cargo build $(rm x)\u{200b}"), &[standing(1, BASH, words("cargo"))]);
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].text.as_str(), parts[0].state), ("cargo build $(rm x)\\u{200b}", PartState::Risky));
        assert!(parts[0].why.contains("U+200B"), "{}", parts[0].why);
    }

    #[test]
    fn a_granted_program_with_a_dangerous_option_is_not_granted() {
        assert_eq!(
            states("cargo --config x build", &[standing(1, BASH, words("cargo"))]),
            owned(&[("cargo --config x build", PartState::New)])
        );
    }

    #[test]
    fn only_what_reaches_this_call_is_granted() {
        let other = Reach::Session { owner: session().owner, name: SessionName::parse("s-2").unwrap() };
        let elsewhere = StandingApproval { reach: other, ..standing(1, BASH, words("cargo")) };
        for given in [elsewhere, standing(2, "other.Bash", words("cargo")), standing(3, BASH, Coverage::Prefix(vec![]))]
        {
            assert_eq!(states("cargo build", &[given]), owned(&[("cargo build", PartState::New)]));
        }
    }
}
