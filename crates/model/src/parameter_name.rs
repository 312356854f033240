//! Names that a service may treat as equal. Web frameworks and JSON decoders ignore case, `_`, `-` and blanks in the
//! name of a parameter; they take `amount[]`, `amount[0]` and `amount.x` for parts of `amount`. A limit on one name
//! holds only if none of its other spellings bypasses it.

use std::collections::HashMap;

/// A name as the steps of a path, without what services ignore.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoldedName(Vec<String>);

impl FoldedName {
    pub(crate) fn of(name: &str) -> Self {
        // Some readers end a name at the first NUL.
        let name = name.split('\0').next().unwrap_or_default();
        let steps = name.split(['.', '[', ']']).map(folded_step);
        Self(steps.filter(|step| !step.is_empty()).collect())
    }

    /// Whether some service may take one for the other, or one for a part of the other.
    pub(crate) fn may_be(&self, other: &Self) -> bool {
        if self.0.is_empty() || other.0.is_empty() {
            return false;
        }
        // Some treat dots as steps, and others `_`.
        let is_part = self.0.iter().zip(&other.0).all(|(one, other)| one == other);
        is_part || self.0.concat() == other.0.concat()
    }
}

/// Names to look up by other spellings, in time that does not depend on their number.
pub(crate) struct Spellings<'a> {
    by_first_step: HashMap<String, Vec<(FoldedName, &'a str)>>,
    by_letters: HashMap<String, &'a str>,
}

impl<'a> Spellings<'a> {
    pub(crate) fn of(names: impl Iterator<Item = &'a str>) -> Self {
        let mut spellings = Self { by_first_step: HashMap::new(), by_letters: HashMap::new() };
        for name in names {
            let folded = FoldedName::of(name);
            if let Some(first) = folded.0.first() {
                spellings.by_letters.insert(folded.0.concat(), name);
                spellings.by_first_step.entry(first.clone()).or_default().push((folded, name));
            }
        }
        spellings
    }

    /// The name that some service may read this one as.
    pub(crate) fn find(&self, name: &str) -> Option<&'a str> {
        let folded = FoldedName::of(name);
        let alike = folded.0.first().and_then(|first| self.by_first_step.get(first)).into_iter().flatten();
        let found = alike.into_iter().find(|(other, _)| other.may_be(&folded)).map(|&(_, name)| name);
        found.or_else(|| self.by_letters.get(&folded.0.concat()).copied())
    }
}

/// To upper case and back, because some letters share only one of the two: `ſ` is read as `s`.
fn folded_step(step: &str) -> String {
    let letters = step.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_that_services_fold_are_one_name() {
        for name in [
            "amount",
            "Amount",
            "AMOUNT",
            "amount[]",
            "amount[0]",
            "amount[x]",
            "amount.x",
            " amount",
            "amount ",
            "amount\t",
            "a_mount",
            "amount\0x",
            "amount\u{200b}",
            "[amount]",
            "amount]",
            "a\u{301}mount",
        ] {
            assert!(FoldedName::of("amount").may_be(&FoldedName::of(name)), "{name:?}");
        }
        for (one, other) in [
            ("max_amount", "maxAmount"),
            ("metadata.plan", "metadata[plan]"),
            ("admin", "admin[x]"),
            ("ask", "as\u{212a}"),
            ("api_key", "api.key"),
        ] {
            assert!(FoldedName::of(one).may_be(&FoldedName::of(other)), "{one} and {other}");
        }
        assert!(FoldedName::of("status").may_be(&FoldedName::of("\u{17f}tatus")));
    }

    #[test]
    fn other_names_stay_apart() {
        for (one, other) in
            [("amount", "amounts"), ("amount", "amount_max"), ("a.b", "a.c"), ("b", "a.b"), ("_", "-"), ("", "a")]
        {
            assert!(!FoldedName::of(one).may_be(&FoldedName::of(other)), "{one} and {other}");
        }
    }
}
