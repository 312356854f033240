//! Operands: the words of a command that are not options.

use super::{Surroundings, options};

/// The operands that a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nothing,
    /// Paths inside the workspace.
    Paths,
    /// Paths inside the workspace, with names of tests after `::`.
    Tests,
    /// One text, such as a search expression, and then paths.
    TextThenPaths,
    /// Names of commits, or paths.
    Revisions,
    /// Any text: it names no file and is not executed.
    Text,
    /// Any text, and no options: every word is text.
    Anything,
    /// A name that must be part of the prefix, and then paths.
    Granted,
    /// One of these words, separated by blanks, and then any text.
    Verb(&'static str),
}

/// The operands read so far.
#[derive(Debug, Default)]
pub(super) struct Operands {
    count: usize,
    /// The first operand was granted by a person and is not in the table.
    own: bool,
}

impl Operands {
    /// Whether the next operand must be one of the listed words and is not.
    pub(super) fn is_unlisted_verb(&self, kind: Kind, word: &str) -> bool {
        matches!(kind, Kind::Verb(listed) if self.count == 0 && !listed.split(' ').any(|verb| verb == word))
    }

    /// Whether the next operand is covered.
    pub(super) fn take(&mut self, kind: Kind, word: &str, is_granted: bool, around: Surroundings<'_>) -> bool {
        let is_first = self.count == 0;
        self.count += 1;
        if let (Kind::Verb(listed), true) = (kind, is_first) {
            self.own = !listed.split(' ').any(|verb| verb == word);
            return is_granted || !self.own;
        }
        is_granted
            || match kind {
                Kind::Nothing => false,
                Kind::Paths => is_inside(word, around),
                Kind::Tests => is_inside(word.split("::").next().unwrap_or(word), around),
                Kind::TextThenPaths => is_first || is_inside(word, around),
                Kind::Revisions => is_revision(word, around),
                Kind::Text | Kind::Anything => true,
                Kind::Granted => !is_first && is_inside(word, around),
                Kind::Verb(_) if self.own => looks_like_a_path(word) && is_inside(word, around),
                Kind::Verb(_) => true,
            }
    }
}

/// A path that by its text is inside the workspace, and that no program could take for anything but a path: not a file
/// of arguments (`@file`), a variable (`a=b`) or another machine (`host:path`).
pub(super) fn is_inside(word: &str, around: Surroundings<'_>) -> bool {
    let is_plain = !word.is_empty() && !word.contains([':', '@', '=', '\\']) && !word.starts_with(['+', '~', '-']);
    // The input of a pipe.
    (is_plain || word == "-") && stays_inside(word, around)
}

/// Whether it can only be a path: `deploy` may be anything.
pub(super) fn looks_like_a_path(word: &str) -> bool {
    !options::is_option(word) && word != "-" && word.contains(['/', '.'])
}

fn is_revision(word: &str, around: Surroundings<'_>) -> bool {
    // `:(top)` and `:/` are git syntax.
    let is_plain = !word.starts_with([':', '+', '~']) && !word.contains(['=', '\\']) && !word.contains("::");
    is_plain && word.split(':').all(|part| stays_inside(part, around))
}

fn stays_inside(path: &str, around: Surroundings<'_>) -> bool {
    if path.split('/').any(|name| name == "..") {
        return false;
    }
    let Some(absolute) = path.strip_prefix('/') else { return true };
    let root = around.workspace.map(|workspace| workspace.as_str().trim_end_matches('/'));
    let below = root.and_then(|root| root.strip_prefix('/')).and_then(|root| absolute.strip_prefix(root));
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use toolgate_model::approval::Workspace;

    use super::*;

    #[test]
    fn a_path_inside_is_told_from_all_that_is_not() {
        let workspace = Workspace::parse("/srv/project").unwrap();
        let around = Surroundings { workspace: Some(&workspace), directory: None };
        for word in ["a", "src/main.rs", "./a", ".", "a b", "größe", "/srv/project", "/srv/project/a", "./...", "-"] {
            assert!(is_inside(word, around), "{word}");
        }
        for word in [
            "",
            "..",
            "../a",
            "a/../../b",
            "a/..",
            "/",
            "/etc/passwd",
            "/srv/project2",
            "/SRV/project/a",
            "/srv/project/../x",
            "@file",
            "a=b",
            "host:path",
            "ext::evil",
            "https://example.com",
            "+x",
            "~/x",
            "a\\b",
        ] {
            assert!(!is_inside(word, around), "{word}");
        }
        assert!(!is_inside("/srv/project/a", Surroundings::UNKNOWN));
        for word in ["HEAD", "HEAD~3", "main..topic", "HEAD:src/main.rs", "v1.0^", "stash@{0}", "src"] {
            assert!(is_revision(word, around), "{word}");
        }
        for word in ["../x", "/etc/passwd", "HEAD:../x", ":/x", ":(top)x", "ext::evil", "a=b"] {
            assert!(!is_revision(word, around), "{word}");
        }
    }
}
