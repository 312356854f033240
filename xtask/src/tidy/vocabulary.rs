//! Rejects old identifiers, and words that are not used in messages, comments and pages: docs/glossary.md has the terms to use
//! instead.

use super::{File, Finding};

/// Renamed identifiers, each with its new name. Whole identifiers only; strings and comments are not checked.
const RENAMED: [(&str, &str); 49] = [
    ("Aboard", "RunningBatch"),
    ("AdmittedAction", "Action"),
    ("AnswerShape", "ResponseShape"),
    ("ApprovalHappening", "ApprovalEvent"),
    ("Backing", "Action"),
    ("Beat", "Heartbeat"),
    ("CallAnswer", "CallResult"),
    ("Company", "Batch"),
    ("CoverageWish", "RequestedCoverage"),
    ("Debts", "Penalties"),
    ("Desk", "ApprovalBroker"),
    ("Entrant", "Submission"),
    ("Errand", "Action"),
    ("ExternalLeave", "ExternalPermit"),
    ("FAREWELL", "END_OF_STREAM"),
    ("Fit", "EligibleGrant"),
    ("Happening", "EventPayload"),
    ("Hearing", "Consultation"),
    ("Holding", "HeldGrant"),
    ("Holdings", "HeldGrants"),
    ("HookAnswer", "HookResponse"),
    ("InboundAnswer", "InboundResponse"),
    ("Joint", "BatchOperation"),
    ("Lanes", "WorkerRuntimes"),
    ("LinkAnswer", "LinkResponse"),
    ("Minutes", "DecisionRecord"),
    ("Misfit", "InvalidMember"),
    ("Occasion", "Round"),
    ("PATIENCE", "TIMEOUT"),
    ("ReachWish", "RequestedReach"),
    ("Rehearsal", "ConformanceCall"),
    ("Rejudged", "Reevaluation"),
    ("Seat", "Participant"),
    ("ServiceAnswer", "ServiceResponse"),
    ("Setback", "LogRollback"),
    ("Stamp", "AuditContext"),
    ("StandingWish", "StandingRequest"),
    ("StoredAnswer", "StoredResult"),
    ("Stranger", "UnverifiedKey"),
    ("Teller", "ProgressReporter"),
    ("Tellings", "WebhookDeliveries"),
    ("ToolKind", "Action"),
    ("UnderWay", "InFlightCalls"),
    ("errand", "action"),
    ("happening", "payload"),
    ("misfit", "invalid_member"),
    ("patience", "timeout"),
    ("stamp", "audit"),
    ("under_way", "in_flight"),
];

/// Words that are not used in pages, and in the strings and comments of sources, each with what to write instead.
const AVOIDED: [(&str, &str); 8] = [
    ("are told", "get, or are notified"),
    ("is told", "gets, or is notified"),
    ("patience", "timeout"),
    ("somebody", "the principal, such as `caller` or `approver`"),
    ("stranger", "`unverified key`, or `another principal`"),
    ("strangers", "`others`, or `untrusted content`"),
    ("under way", "in flight"),
    ("whoever", "the principal, such as `caller` or `approver`"),
];

/// Where such a word stays, with the reason.
const ALLOWED: [(&str, &str); 3] = [
    // The page that lists the words.
    ("docs/glossary.md", ""),
    ("xtask/src/tidy/vocabulary.rs", ""),
    // An option of git.
    ("crates/approval/src/shell/harmless/table.rs", "patience"),
];

/// Avoided words in a page, or in a Rust file that is not a test: the names of tests are sentences.
pub fn check_words(file: &File) -> Vec<Finding> {
    if !(file.is("md") || file.is("rs") && !is_test(&file.path)) {
        return Vec::new();
    }
    let is_allowed = |word: &str| {
        ALLOWED.iter().any(|(path, allowed)| *path == file.path && (allowed.is_empty() || *allowed == word))
    };
    let avoided: Vec<_> = AVOIDED.iter().filter(|(word, _)| !is_allowed(word)).collect();
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let line = line.to_lowercase();
        for (word, instead) in &avoided {
            if has_word(&line, word) {
                findings.push(file.finding(number, format!("`{word}`: write {instead}; see docs/glossary.md")));
            }
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.starts_with("crates/testkit/")
        || path.split('/').any(|part| matches!(part, "tests" | "benches" | "tests.rs" | "testing"))
}

/// Whether the word, or the words, stand in the line by themselves; a path or an identifier is one word.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '/');
    line.match_indices(word).any(|(start, _)| {
        let before = line.get(..start).and_then(|before| before.chars().next_back());
        let after = line.get(start + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// Old identifiers in the code of a Rust file.
pub fn check(file: &File) -> Vec<Finding> {
    if !file.is("rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut line = 1;
    let mut code = Code::new(&file.text);
    while let Some(word) = code.next_word(&mut line) {
        if let Ok(found) = RENAMED.binary_search_by(|(old, _)| (*old).cmp(word))
            && let Some((old, new)) = RENAMED.get(found)
        {
            findings.push(file.finding(line, format!("`{old}` is called `{new}` now; see docs/glossary.md")));
        }
    }
    findings
}

/// The code of a file, read word by word, without its comments, strings and characters.
struct Code<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Code<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next identifier, with the line that it is on.
    fn next_word(&mut self, line: &mut usize) -> Option<&'a str> {
        loop {
            let rest = self.text.get(self.at..)?;
            let next = rest.chars().next()?;
            let length = match next {
                '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                '"' => quoted(rest, '"'),
                '\'' => character(rest),
                'r' | 'b' if raw(rest).is_some() => raw(rest).unwrap_or(1),
                _ if next.is_alphabetic() || next == '_' => {
                    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                    let word = rest.get(..end.unwrap_or(rest.len()))?;
                    self.at += word.len();
                    return Some(word);
                }
                _ if next.is_ascii_digit() => {
                    rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len())
                }
                _ => next.len_utf8(),
            };
            *line += rest.get(..length)?.matches('\n').count();
            self.at += length;
        }
    }
}

/// The length of the quoted text at the beginning, with its escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (position, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return position + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of the character literal at the beginning; of a lifetime, only its quote.
fn character(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), _) => quoted(text, '\''),
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 1,
    }
}

/// The length of the raw string at the beginning, if there is one.
fn raw(text: &str) -> Option<usize> {
    let hashes = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let body = hashes.trim_start_matches('#');
    let mark = format!("\"{}", "#".repeat(hashes.len() - body.len()));
    let inner = body.strip_prefix('"')?;
    let end = inner.find(&mark).map_or(inner.len(), |end| end + mark.len());
    Some(text.len() - inner.len() + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&File::new("crates/gate/src/call.rs", text)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn the_table_is_in_order_and_no_new_name_is_an_old_one() {
        assert!(RENAMED.is_sorted_by(|one, other| one.0 < other.0));
        assert!(RENAMED.iter().all(|(_, new)| RENAMED.iter().all(|(old, _)| old != new)));
    }

    #[test]
    fn an_old_identifier_is_found_with_its_new_name() {
        let found = check(&File::new("crates/gate/src/call.rs", "struct Errand;\nlet x = Errand;\n"));
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[1].to_string(),
            "crates/gate/src/call.rs:2: `Errand` is called `Action` now; see docs/glossary.md"
        );
    }

    #[test]
    fn parts_of_identifiers_strings_and_comments_are_not_identifiers() {
        assert_eq!(lines("let timestamp = Timestamp::now();\n// the stamp\n/* stamp\n stamp */\n"), [0_usize; 0]);
        assert_eq!(
            lines("let x = \"stamp \\\" stamp\"; let y = r#\"stamp \" stamp\"#; let z = b\"stamp\";\n"),
            [0_usize; 0]
        );
        assert_eq!(lines("let q = '\"'; let stamp = 1; let r = '\\''; fn f<'a>(stamp: &'a str) {}\n"), [1, 1]);
        assert_eq!(lines("let s = \"a\nb\";\nlet t = r\"a\nb\";\nlet stamp = 0;\n"), [5]);
    }

    #[test]
    fn the_avoided_words_are_in_order() {
        assert!(AVOIDED.is_sorted());
    }

    #[test]
    fn avoided_words_are_found_in_pages_strings_and_comments_but_not_in_tests() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            check_words(&File::new(path, text)).iter().map(|finding| finding.line).collect()
        };
        let text = "Whoever calls\nis told so.\n`tests/strangers.rs::a_stranger_sees_nothing`\n";
        assert_eq!(lines("docs/calls.md", text), [1, 2]);
        assert_eq!(lines("crates/gate/src/call.rs", "// somebody\nlet x = \"a stranger\";\n"), [1, 2]);
        for path in ["crates/gate/src/call/tests.rs", "crates/toolgate/tests/system/calls.rs", "docs/glossary.md"] {
            assert_eq!(lines(path, text), [0_usize; 0], "{path}");
        }
    }

    #[test]
    fn other_files_are_not_read() {
        assert_eq!(check(&File::new("docs/glossary.md", "stamp")), []);
    }
}
