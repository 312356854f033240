//! Options as the table lists them. Each entry is one spelling and matches nothing else:
//!
//! | entry | covers |
//! | --- | --- |
//! | `--name`, `-name`, `+word` | exactly that |
//! | `--name=` | `--name=value` and `--name value` |
//! | `--name[=]` | `--name` and `--name=value`, never a next word |
//! | `--name=/` | as `--name=`, with a path inside the workspace as its value |
//! | `-x` | the letter, also among others: `-vx` |
//! | `-x=`, `-x[=]`, `-x=/` | the letter with a value, which ends a bundle: `-vx5` |
//! | `-#` | digits: `-5` |
//!
//! Letters are bundled only if the list has no option of one dash and several letters.

use super::SHOWN;

/// The options of a program or of one of its subcommands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    list: &'static str,
    /// Whether `-ab` means `-a -b`.
    bundles: bool,
}

/// The result of looking up an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// Listed, with its value if it has one.
    Complete,
    /// Listed, and the next word is its value: a path, or any text.
    TakesNext { path: bool },
    /// Listed, with a value that must be a path inside the workspace.
    TakesPath { value: &'a str },
    /// Not listed.
    Nothing,
}

/// How an option takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    None,
    Required,
    Optional,
    Path,
}

/// Listed for every program.
const EVERY: &str = "--help --version";

pub(super) fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

impl Options {
    pub(super) fn of(list: &'static str) -> Self {
        let is_long = |entry: &str| entry.starts_with('-') && !entry.starts_with("--") && split(entry).0.len() > 2;
        Self { list, bundles: !list.split_ascii_whitespace().any(is_long) }
    }

    /// Whether a word that does not begin with a dash is in the list, such as `+nightly`.
    pub(super) fn lists_word(self, word: &str) -> bool {
        word.starts_with('+') && self.list.split_ascii_whitespace().any(|entry| entry == word)
    }

    pub(super) fn find(self, word: &str) -> Found<'_> {
        if self.value_of(word) == Some(Value::None) {
            return Found::Complete;
        }
        if let Some((name, value)) = word.split_once('=')
            && (name.starts_with("--") || !self.bundles)
        {
            return match self.value_of(name) {
                Some(Value::Required | Value::Optional) => Found::Complete,
                Some(Value::Path) => Found::TakesPath { value },
                Some(Value::None) | None => Found::Nothing,
            };
        }
        match self.value_of(word) {
            Some(Value::Required) => Found::TakesNext { path: false },
            Some(Value::Path) => Found::TakesNext { path: true },
            Some(_) => Found::Complete,
            None if word.starts_with("--") || !self.bundles => Found::Nothing,
            None => self.find_letters(word),
        }
    }

    /// The part of an option that may be repeated in messages: of a bundle, only the first letter that is not listed.
    pub(super) fn shown(self, word: &str) -> String {
        let name = word.split('=').next().unwrap_or(word);
        let length = if name.starts_with("--") || !self.bundles { SHOWN } else { 2 };
        name.chars().take(length).collect()
    }

    fn find_letters(self, word: &str) -> Found<'_> {
        let letters = word.get(1..).unwrap_or_default();
        if !letters.is_empty() && letters.bytes().all(|letter| letter.is_ascii_digit()) {
            return if self.value_of("-#").is_some() { Found::Complete } else { Found::Nothing };
        }
        for (place, letter) in letters.char_indices() {
            let value = letters.get(place + letter.len_utf8()..).unwrap_or_default();
            match self.value_of(&format!("-{letter}")) {
                None => return Found::Nothing,
                Some(Value::None) => {}
                Some(Value::Optional) => return Found::Complete,
                Some(Value::Required) if value.is_empty() => return Found::TakesNext { path: false },
                Some(Value::Required) => return Found::Complete,
                Some(Value::Path) if value.is_empty() => return Found::TakesNext { path: true },
                Some(Value::Path) => return Found::TakesPath { value },
            }
        }
        Found::Complete
    }

    /// How the option of this name takes a value, if it is listed.
    fn value_of(self, name: &str) -> Option<Value> {
        let mut entries = self.list.split_ascii_whitespace().chain(EVERY.split(' ')).map(split);
        entries.find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

fn split(entry: &str) -> (&str, Value) {
    if let Some(name) = entry.strip_suffix("[=]") {
        (name, Value::Optional)
    } else if let Some(name) = entry.strip_suffix("=/") {
        (name, Value::Path)
    } else if let Some(name) = entry.strip_suffix('=') {
        (name, Value::Required)
    } else {
        (entry, Value::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_listed_in_its_spellings_and_in_no_other() {
        let options = Options::of("--long --text= --maybe[=] --file=/ -a -b -n= -j[=] -f=/ -#");
        for word in
            ["--long", "--text=x", "--maybe", "--maybe=x", "-a", "-ab", "-ban5", "-j", "-j8", "-aj8", "-5", "-12"]
        {
            assert_eq!(options.find(word), Found::Complete, "{word}");
        }
        for word in ["--text", "-n", "-abn"] {
            assert_eq!(options.find(word), Found::TakesNext { path: false }, "{word}");
        }
        for word in ["--file", "-f", "-af"] {
            assert_eq!(options.find(word), Found::TakesNext { path: true }, "{word}");
        }
        assert_eq!(options.find("--file=x"), Found::TakesPath { value: "x" });
        assert_eq!(options.find("-afx"), Found::TakesPath { value: "x" });
        for word in ["--lon", "--long=x", "--other", "-c", "-ac", "-a=x", "-a5", "-long", "---long"] {
            assert_eq!(options.find(word), Found::Nothing, "{word}");
        }
    }

    #[test]
    fn letters_are_not_bundled_where_one_dash_has_names() {
        let options = Options::of("-name= -o -k -print");
        assert_eq!(options.find("-name"), Found::TakesNext { path: false });
        for word in ["-ok", "-na", "-printf", "-name=x-"] {
            assert_eq!(options.find(word) == Found::Nothing, word != "-name=x-", "{word}");
        }
    }

    #[test]
    fn of_an_unlisted_option_no_value_is_shown() {
        assert_eq!(Options::of("").shown("-psecret"), "-p");
        assert_eq!(Options::of("").shown("--password=secret"), "--password");
        assert_eq!(Options::of("-name=").shown("-exec"), "-exec");
    }
}
