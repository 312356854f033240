//! The risks of one command, by its words.

use super::table::{PROGRAMS, RULES, Rule, SHELLS};
use super::{Finding, Kind};
use crate::coverage::runs_protected;
use crate::glance::{pieces, program_name};
use crate::place::{Directory, Place};

pub(crate) fn findings(words: &[String], directory: &Directory) -> Vec<Finding> {
    let Some((first, arguments)) = words.split_first() else { return Vec::new() };
    let program = program_name(first);
    let known = PROGRAMS.iter().filter(|(names, _)| is_one_of(&program, names));
    let mut findings: Vec<Finding> = known.map(|(_, kind)| kind.because(&program)).collect();
    findings.extend(
        RULES.iter().filter(|rule| applies(rule, &program, arguments)).map(|rule| rule.kind.because(rule.command)),
    );
    if program == "chmod" {
        findings.extend(arguments.iter().find(|mode| opens(mode)).map(|mode| Kind::Privilege.because(mode)));
    }
    if is_one_of(&program, SHELLS) && arguments.iter().all(|argument| argument.starts_with('-') && argument != "-c") {
        let note = format!("`{program}` executes its standard input");
        findings.push(Finding { kind: Kind::Hidden, note });
    }
    if program == "env" && arguments.is_empty() {
        findings.push(Kind::Secrets.because("env"));
    }
    let protected = runs_protected(words, directory);
    findings.extend(protected.map(|runs| Finding { kind: Kind::Settings, note: runs.to_string() }));
    for word in words {
        findings.extend(of_word(word, directory));
    }
    findings
}

fn of_word(word: &str, directory: &Directory) -> Vec<Finding> {
    let lower = word.to_lowercase();
    if lower.contains("/dev/tcp/") || lower.contains("/dev/udp/") {
        return vec![Kind::Network.because(word)];
    }
    if lower.contains("://") && !lower.contains("file://") {
        return vec![Kind::Network.because(word)];
    }
    if lower.contains("setuid") {
        return vec![Kind::Privilege.because(word)];
    }
    let mut findings = Vec::new();
    // A word without any of these is not a path.
    for piece in pieces(word).into_iter().filter(|piece| piece.contains(['/', '.', '_', '~'])) {
        let place = Place::of(piece, directory);
        if place.is_secret() {
            findings.push(Kind::Secrets.because(piece));
        }
        let leaves =
            piece.starts_with(['/', '~', '$']) || piece == ".." || piece.contains("../") || piece.contains("/..");
        if leaves && !place.is_inside() {
            findings.push(Kind::Outside.because(piece));
        }
    }
    findings
}

fn applies(rule: &Rule, program: &str, arguments: &[String]) -> bool {
    let mut words = rule.command.split(' ');
    words.next() == Some(program)
        && words.all(|word| arguments.iter().any(|argument| argument == word))
        && (rule.any.is_empty() || arguments.iter().any(|argument| is_one_of(argument, rule.any)))
}

/// Whether the word is in the list, or has one of the prefixes that end with `*`.
fn is_one_of(word: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|known| match known.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == known,
    })
}

/// Whether a mode makes a file world-writable, setuid or setgid.
fn opens(mode: &str) -> bool {
    let octal = (3..=5).contains(&mode.len()) && mode.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    if octal {
        let special =
            mode.len() > 3 && !mode.trim_start_matches('0').is_empty() && mode.trim_start_matches('0').len() > 3;
        return special || mode.ends_with(['2', '3', '6', '7']);
    }
    mode.split(',').any(|clause| {
        let Some((who, what)) = clause.split_once(['+', '=']) else { return false };
        what.contains('s')
            || (what.contains('w') && (who.contains(['o', 'a'])))
            || (what.contains('w') && who.is_empty())
    })
}
