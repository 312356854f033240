//! Names of tools beside the names of others: the same, and those that look the same.

use std::collections::{BTreeMap, BTreeSet};

use unicode_security::skeleton;

use super::{Findings, LintCode};
use crate::credential::ServiceName;
use crate::visible::visible;

/// Names are compared by words that a text can speak of without meaning the tool: they must be longer than this, or be made
/// of several words.
const PLAIN_WORD: usize = 12;

/// The names of other tools.
#[derive(Debug, Clone, Default)]
pub(super) struct OtherNames {
    /// Of other services, by what they look like.
    foreign: BTreeMap<String, BTreeSet<(String, ServiceName)>>,
    /// The same without their separators.
    joined: BTreeMap<String, BTreeSet<(String, ServiceName)>>,
    /// Of the same server, by what they look like.
    own: BTreeMap<String, BTreeSet<String>>,
    /// Those of other services that no ordinary text contains, in lower case.
    distinctive: BTreeMap<String, ServiceName>,
}

impl OtherNames {
    pub(super) fn new<'a>(
        others: impl IntoIterator<Item = (&'a ServiceName, &'a str)>,
        own: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut names = Self::default();
        for name in own {
            names.own.entry(appearance(name)).or_default().insert(name.to_owned());
        }
        for (service, name) in others {
            let entry = (name.to_owned(), service.clone());
            names.joined.entry(joined(name)).or_default().insert(entry.clone());
            names.foreign.entry(appearance(name)).or_default().insert(entry);
            if is_distinctive(name) && !names.own.contains_key(&appearance(name)) {
                names.distinctive.insert(name.to_lowercase(), service.clone());
            }
        }
        names
    }

    /// The first tool of another service that a text in lower case names.
    pub(super) fn named_in(&self, text: &str) -> Option<(&str, &ServiceName)> {
        if self.distinctive.is_empty() {
            return None;
        }
        let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
        let words = text.split(|letter: char| !is_part(letter)).map(|word| word.trim_matches(['.', '-', ':']));
        // A full name is named by its last part as well.
        let parts = words.flat_map(|word| [Some(word), word.split_once('.').map(|(_, tool)| tool)]);
        parts
            .flatten()
            .find_map(|word| self.distinctive.get_key_value(word))
            .map(|(name, service)| (name.as_str(), service))
    }
}

/// Checks the name of a tool.
pub(super) fn check(name: &str, others: &OtherNames, findings: &mut Findings) {
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.is_empty() || name.len() > 128 || !name.chars().all(is_usual) {
        findings.add(LintCode::UnusualName, "name", "is not made of 1 to 128 letters, digits, `_`, `-` and `.`");
    }
    let looks = appearance(name);
    if let Some(other) = others.own.get(&looks).into_iter().flatten().find(|other| *other != name) {
        let message = format!("looks like `{}`, another tool of this server", visible(other));
        findings.add(LintCode::LookAlikeName, "name", message);
    }
    for (other, service) in others.foreign.get(&looks).into_iter().flatten().take(3) {
        if other == name {
            findings.add(LintCode::ShadowedName, "name", format!("is also the name of a tool of `{service}`"));
        } else {
            let message = format!("looks like `{}`, a tool of `{service}`", visible(other));
            findings.add(LintCode::LookAlikeName, "name", message);
        }
    }
    for (other, service) in others.joined.get(&joined(name)).into_iter().flatten().take(3) {
        if appearance(other) != looks {
            let message = format!("differs from `{}`, a tool of `{service}`, only in separators", visible(other));
            findings.add(LintCode::ShadowedName, "name", message);
        }
    }
}

/// What a name looks like: the skeleton of UTS 39, whatever the case.
fn appearance(name: &str) -> String {
    // Folded first and last: some letters have a skeleton of the other case.
    let lower = name.to_lowercase();
    let shape: String = skeleton(&lower).collect();
    shape.to_lowercase()
}

fn joined(name: &str) -> String {
    appearance(name).chars().filter(|letter| !matches!(letter, '_' | '-' | '.' | ':' | '/' | ' ')).collect()
}

fn is_distinctive(name: &str) -> bool {
    name.len() > PLAIN_WORD || (name.len() > 4 && name.contains(['_', '-', '.']))
}
