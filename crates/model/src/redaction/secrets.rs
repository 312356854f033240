//! The secrets of one call. Their forms are built when a text is searched that is long enough to contain one: most calls
//! have only shorter texts, and building the forms costs more than everything else that such a call needs.

use std::sync::OnceLock;

use zeroize::Zeroizing;

use super::forms::Forms;
use super::pattern::Pattern;
use super::readings::is_introducer;

/// INVARIANT: the secrets and all their forms are wiped on drop.
pub(super) struct Secrets {
    added: Vec<Zeroizing<String>>,
    /// The length of the shortest form, as far as it is known without building them.
    shortest: usize,
    /// Whether one of them may be the text of a number.
    may_be_number: bool,
    forms: OnceLock<Forms>,
}

impl Secrets {
    pub(super) fn none() -> Self {
        Self { added: Vec::new(), shortest: usize::MAX, may_be_number: false, forms: OnceLock::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// Adds a secret. White space alone is not one.
    pub(super) fn add(&mut self, secret: &str) {
        let trimmed = secret.trim_ascii();
        if trimmed.is_empty() {
            return;
        }
        self.shortest = self.shortest.min(shortest_form(trimmed));
        self.may_be_number |= may_be_number(trimmed);
        self.added.push(Zeroizing::new(secret.to_owned()));
        self.forms = OnceLock::new();
    }

    /// Whether a form may occur in this text. A character of a form takes at least one byte, however it is escaped.
    pub(super) fn may_occur_in(&self, text: &[u8]) -> bool {
        !self.is_empty() && (text.len() >= self.shortest || text.iter().copied().any(is_introducer))
    }

    /// Whether every form that is searched for is longer than this text.
    pub(super) fn are_longer_than(&self, text: &str, in_arguments: bool) -> bool {
        text.len() < self.shortest
            || self.forms().patterns(in_arguments).all(|pattern| pattern.bytes.len() > text.len())
    }

    /// The length of the longest form, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.forms().patterns(false).map(|pattern| pattern.bytes.len()).max().unwrap_or_default()
    }

    /// The numbers that the secrets spell.
    pub(super) fn numbers(&self, in_arguments: bool) -> impl Iterator<Item = f64> {
        let forms = self.may_be_number.then(|| self.forms());
        forms
            .into_iter()
            .flat_map(move |forms| forms.patterns(in_arguments))
            .filter_map(|form| Pattern::as_number(&form))
    }

    pub(super) fn forms(&self) -> &Forms {
        self.forms.get_or_init(|| {
            let mut forms = Forms::none();
            self.added.iter().for_each(|secret| forms.add(secret));
            forms
        })
    }
}

/// A lower bound for the length of each form of a secret. Most secrets consist of visible ASCII characters; all forms of
/// such a secret are as long as itself or longer, unless a part of it is a secret too.
fn shortest_form(trimmed: &str) -> usize {
    let is_plain = trimmed.bytes().all(|byte| byte.is_ascii_graphic());
    let has_parts = trimmed.contains("://") || trimmed.starts_with("-----BEGIN");
    if is_plain && !has_parts { trimmed.len() } else { 0 }
}

/// A secret with parts may have a part that is a number.
fn may_be_number(trimmed: &str) -> bool {
    let starts_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.');
    shortest_form(trimmed) == 0 || trimmed.as_bytes().first().is_some_and(starts_number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(secret: &str) -> Secrets {
        let mut secrets = Secrets::none();
        secrets.add(secret);
        secrets
    }

    proptest! {
        #[test]
        fn no_form_is_shorter_than_is_known_without_building_it(
            secret in prop_oneof!["\\PC{0,40}", "[!-~]{1,40}", "[ -~\n]{0,60}", "https?://[a-z:@/]{0,30}", "Bearer [a-z]{1,20}"],
        ) {
            let secrets = of(&secret);
            for pattern in secrets.forms().patterns(false) {
                prop_assert!(pattern.bytes.len() >= secrets.shortest);
            }
            prop_assert_eq!(secrets.is_empty(), secrets.forms().patterns(false).next().is_none());
        }

        #[test]
        fn a_secret_that_spells_a_number_is_known_without_its_forms(secret in "[ +-]?[0-9.eE]{1,12}|[a-z]{1,12}|.{0,20}") {
            let secrets = of(&secret);
            let numbers = secrets.forms().patterns(false).filter_map(|form| form.as_number()).count();
            prop_assert_eq!(secrets.numbers(false).count(), numbers);
        }
    }

    #[test]
    fn forms_are_built_for_texts_that_may_contain_one() {
        let secrets = of("a-secret-of-24-characters");
        assert!(!secrets.may_occur_in(b"short") && secrets.forms.get().is_none());
        assert!(secrets.may_occur_in(b"100 % of a"), "an escape may begin here");
        assert!(secrets.may_occur_in(&[b'x'; 25]));
        assert!(!Secrets::none().may_occur_in(&[b'x'; 25]));
    }
}
