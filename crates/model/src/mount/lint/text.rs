//! Checks of one text, and of one name inside a definition.

use unicode_security::skeleton;

use super::names::OtherNames;
use super::pattern::{self, Pattern};
use super::{Findings, LintCode};
use crate::visible::{first_hidden, is_honest, mixed_scripts, visible};

/// More than descriptions of tools that people have written for people.
const LONG_TEXT: usize = 4 * 1024;
/// A run of characters that no word has.
const LONG_RUN: usize = 160;
/// How much of a text is quoted.
const QUOTED: usize = 80;

/// Checks a text of a definition.
pub(super) fn check(text: &str, path: &str, others: &OtherNames, findings: &mut Findings) {
    if text.is_empty() {
        return;
    }
    check_characters(text, path, findings);
    if text.len() > LONG_TEXT {
        let message = format!("has {} bytes; read it to its end", text.len());
        findings.add(LintCode::LongText, path, message);
    }
    if text.split_whitespace().any(|run| run.len() > LONG_RUN && !run.contains("://")) {
        findings.add(LintCode::EncodedText, path, "contains a long run of non-word characters");
    }
    let plain = plain(text);
    for Pattern { code, found } in pattern::matches(&plain) {
        findings.add(code, path, format!("says {}", quoted(&found)));
    }
    // The name of the tool itself is compared as a name.
    if let Some((tool, service)) = others.named_in(&plain).filter(|_| path != "name") {
        findings.add(LintCode::OtherTool, path, format!("mentions `{tool}`, a tool of `{service}`"));
    }
}

/// Checks the name of a member, such as that of a parameter.
pub(super) fn check_name(name: &str, path: &str, findings: &mut Findings) {
    check_characters(name, path, findings);
    let plain = plain(name);
    for Pattern { code, found } in pattern::matches_in_name(&plain) {
        findings.add(code, path, format!("is called {}", quoted(&found)));
    }
}

fn check_characters(text: &str, path: &str, findings: &mut Findings) {
    if let Some(hidden) = first_hidden(text) {
        let message = format!("has the hidden character U+{:04X}", u32::from(hidden));
        findings.add(LintCode::HiddenCharacters, path, message);
    }
    for word in mixed_scripts(text).into_iter().take(3) {
        let message = format!("has {}, a word of two scripts", quoted(&word));
        findings.add(LintCode::MixedScripts, path, message);
    }
}

/// The text in lower case, without hidden characters, with single blanks, and with letters that look like ASCII letters
/// replaced by these, so that a pattern is not evaded by the way a word is written.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut buffer = [0; 4];
    for letter in text.chars() {
        if letter.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if letter.is_ascii() {
            out.push(letter.to_ascii_lowercase());
        } else if matches!(letter, '\u{2018}' | '\u{2019}') {
            out.push('\'');
        } else if is_honest(letter) {
            let shape: String = skeleton(letter.encode_utf8(&mut buffer)).collect();
            match shape.as_str() {
                // The skeleton writes `m` as two letters.
                "rn" => out.push('m'),
                ascii if ascii.is_ascii() => out.push_str(&ascii.to_ascii_lowercase()),
                _ => out.extend(letter.to_lowercase()),
            }
        }
    }
    out
}

fn quoted(text: &str) -> String {
    let shown = visible(text);
    match shown.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("`{}...`", shown.get(..end).unwrap_or_default()),
        None => format!("`{shown}`"),
    }
}
