//! Assesses the risk of a call by fixed, documented rules. It shows approvers where to look; it decides nothing.

mod command;
mod kind;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value;
use toolgate_gate::ports::approver::{Risk, RiskLevel};
use toolgate_model::approval::{Approval, Category};

pub(crate) use self::command::findings as of_command;
pub(crate) use self::kind::{Finding, Kind};
use crate::arguments::{command_lines, own_name, paths, texts};
use crate::coverage::is_protected;
use crate::glance::commands;
use crate::links::Links;
use crate::place::{Directory, Place};
use crate::shell::{MAX_BYTES, read};
use toolgate_model::visible::{first_hidden, mixed_scripts};

/// The maximum number of notes.
const NOTES: usize = 12;

/// Assesses the call of an approval.
pub fn assess(approval: &Approval, links: &dyn Links) -> Risk {
    let workspace = approval.session.as_ref().and_then(|session| session.workspace.as_ref());
    let directory = Directory::of(workspace);
    let mut findings = vec![of_category(approval.category)];
    if let Some(arguments) = &approval.arguments {
        let protected = is_protected(&approval.tool, arguments, workspace, links);
        findings.extend(protected.map(|reason| Finding { kind: Kind::Settings, note: reason }));
        findings.extend(of_name(&approval.tool));
        findings.extend(of_paths(paths(&approval.tool, arguments), &directory));
        for line in command_lines(&approval.tool, arguments) {
            findings.extend(of_line(&line, &directory));
        }
        if matches!(approval.category, Category::Exec | Category::Mcp) {
            findings.extend(of_statements(arguments));
        }
        findings.extend(of_letters(arguments));
    }
    if approval.original_arguments.is_some() {
        let note = "a guardian modified the call; the modified version is shown and would run".to_owned();
        findings.push(Finding { kind: Kind::Changed, note });
    }
    summed(findings)
}

fn summed(mut findings: Vec<Finding>) -> Risk {
    let level = findings.iter().map(|finding| finding.kind.level()).max().unwrap_or(RiskLevel::Low);
    // The highest risk first; the sort is stable.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.kind.level()));
    let mut notes: Vec<String> = Vec::new();
    for note in findings.into_iter().map(|finding| finding.note).filter(|note| !note.is_empty()) {
        if !notes.contains(&note) && notes.len() < NOTES {
            notes.push(note);
        }
    }
    Risk { level, notes }
}

fn of_category(category: Category) -> Finding {
    let (kind, note) = match category {
        Category::Info | Category::Edit => (Kind::Harmless, ""),
        Category::Exec => (Kind::Runs, "it runs a command"),
        Category::Mcp => (Kind::Runs, "it calls an external tool"),
    };
    Finding { kind, note: note.to_owned() }
}

/// The risk that the name of a tool indicates.
fn of_name(tool: &str) -> Option<Finding> {
    let name = own_name(tool);
    let words = words_of(name);
    let has = |known: &str| known.split(' ').any(|known| words.iter().any(|word| word == known));
    let deletes = has(table::DELETING).then_some(Kind::Deletes);
    let kind = deletes.or_else(|| has(table::FINAL).then_some(Kind::Final))?;
    Some(kind.because(name))
}

/// The words of `delete_item`, `delete-item` and `deleteItem`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (small && letter.is_uppercase()) {
            words.push(String::new());
        }
        small = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

fn of_paths(paths: Vec<&str>, directory: &Directory) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in paths.into_iter().filter(|path| !path.contains("://") || path.starts_with("file://")) {
        let place = Place::of(path, directory);
        if place.is_secret() {
            findings.push(Kind::Secrets.because(path));
        }
        if !place.is_inside() {
            findings.push(Kind::Outside.because(path));
        }
    }
    findings
}

fn of_line(line: &str, directory: &Directory) -> Vec<Finding> {
    if line.len() > MAX_BYTES {
        let note = "the command line is too long to be assessed; review all of it".to_owned();
        return vec![Finding { kind: Kind::Hidden, note }];
    }
    let mut findings: Vec<Finding> = commands(line).iter().flat_map(|words| of_command(words, directory)).collect();
    if let Err(objection) = read(line) {
        let note = format!("the command line is not a list of plain commands: {objection}");
        findings.push(Finding { kind: Kind::Runs, note });
    }
    findings
}

/// Statements to databases and services.
fn of_statements(arguments: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for text in texts(arguments) {
        let words = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        findings.extend(
            table::STATEMENTS
                .iter()
                .find(|statement| words.contains(*statement))
                .map(|statement| Kind::Deletes.because(statement)),
        );
    }
    let method = arguments.get("method").and_then(Value::as_str);
    findings
        .extend(method.filter(|method| method.eq_ignore_ascii_case("delete")).map(|_| Kind::Deletes.because("DELETE")));
    findings
}

/// Misleading characters.
fn of_letters(arguments: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for text in texts(arguments) {
        if let Some(hidden) = first_hidden(text) {
            findings.push(Kind::Hidden.because(&hidden.to_string()));
        }
        for word in mixed_scripts(text).into_iter().take(3) {
            let note = format!("`{word}` mixes similar letters of several scripts");
            findings.push(Finding { kind: Kind::Hidden, note });
        }
    }
    findings
}
