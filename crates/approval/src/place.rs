//! Classifies paths by their text alone: whether one is in the workspace, contains secrets, or decides what runs later.
//! Spelling is normalized: case, repeated slashes, `.`, `..` and invisible characters.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use toolgate_model::approval::Workspace;
use toolgate_model::visible::is_honest;

use self::table::{BELOW_SYSTEM, HOLDERS, PLAIN, PROTECTED, SECRET, TEMPLATES};

/// A protected path.
struct Protection {
    path: &'static str,
    /// What a change of it affects.
    what: &'static str,
    /// Whether it applies from the root only.
    of_system: bool,
}

/// The protected paths by their first name, because long command lines have many words.
static INDEX: LazyLock<BTreeMap<&'static str, Vec<Protection>>> = LazyLock::new(|| {
    let mut index: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (group, of_system) in
        PROTECTED.iter().map(|group| (group, false)).chain(BELOW_SYSTEM.iter().map(|group| (group, true)))
    {
        let &(paths, what) = group;
        for &path in paths {
            let first = path.split('/').next().unwrap_or(path);
            index.entry(first).or_default().push(Protection { path, what, of_system });
        }
    }
    index
});

/// A base directory for paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    /// From the root; `None` if unknown.
    names: Option<Vec<String>>,
    /// Whether its path can be the beginning of a protected one, so that a plain name in it can be protected.
    pub(crate) matters: bool,
}

impl Directory {
    /// The workspace, if there is one.
    pub(crate) fn of(workspace: Option<&Workspace>) -> Self {
        Self::from_names(workspace.map(|workspace| names(&folded(workspace.as_str()), Vec::new()).0))
    }

    pub(crate) fn at(place: Place) -> Self {
        Self::from_names(Some(place.names))
    }

    fn from_names(names: Option<Vec<String>>) -> Self {
        let begins = |name: &String| name.starts_with('.') || is_pattern(name) || PLAIN.contains(&name.as_str());
        let matters = names.as_ref().is_some_and(|names| names.iter().any(begins));
        Self { names, matters }
    }
}

/// A resolved path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Names from the root, or from the home directory or an unknown one.
    names: Vec<String>,
    /// Whether it is absolute.
    rooted: bool,
    /// Whether it is below the directory, or below nothing that the path names.
    inside: bool,
}

impl Place {
    /// Resolves a path against a directory.
    pub(crate) fn of(path: &str, directory: &Directory) -> Self {
        let path = folded(path);
        let base = directory.names.as_deref();
        let home = path.starts_with('~') || path.starts_with("$home");
        let rooted = path.starts_with('/') || has_drive(&path);
        if rooted || home {
            let (names, _) = names(&path, Vec::new());
            let inside = base.is_some_and(|base| names.starts_with(base));
            return Self { names, rooted, inside };
        }
        let (names, climbed) = names(&path, base.map(<[String]>::to_vec).unwrap_or_default());
        let inside = base.map_or(!climbed, |base| names.starts_with(base));
        Self { names, rooted: base.is_some(), inside }
    }

    /// Whether it is below the workspace. Devices that store nothing count as inside.
    pub(crate) fn is_inside(&self) -> bool {
        let device = self.names.len() == 2 && self.names.first().is_some_and(|name| name == "dev");
        let harmless = |name: &String| matches!(name.as_str(), "null" | "stdin" | "stdout" | "stderr" | "zero");
        self.inside || (self.rooted && device && self.names.last().is_some_and(harmless))
    }

    /// What a change of it affects, if it always needs approval.
    pub(crate) fn protection(&self) -> Option<&'static str> {
        self.names.iter().enumerate().find_map(|(start, name)| {
            let here = self.names.get(start..).unwrap_or_default();
            let applies = |one: &&Protection| (!one.of_system || (self.rooted && start == 0)) && begins(here, one.path);
            let found = match is_pattern(name) {
                true => INDEX.values().flatten().find(applies),
                false => INDEX.get(name.as_str()).and_then(|known| known.iter().find(applies)),
            };
            found.map(|one| one.what)
        })
    }

    /// Whether it is a directory that contains something protected.
    pub(crate) fn holds_protected(&self) -> bool {
        self.names.last().is_some_and(|last| HOLDERS.iter().any(|holder| fits_at(0, last, holder)))
    }

    /// Whether it is known to contain secrets.
    pub(crate) fn is_secret(&self) -> bool {
        if self.names.last().is_some_and(|last| TEMPLATES.iter().any(|template| fits_at(0, last, template))) {
            return false;
        }
        let mut starts = 0..self.names.len();
        starts.any(|start| SECRET.iter().any(|path| begins(self.names.get(start..).unwrap_or_default(), path)))
    }
}

/// Whether the names begin with those of `path`, which is separated by slashes.
fn begins(names: &[String], path: &str) -> bool {
    let mut own = names.iter();
    path.split('/').enumerate().all(|(place, name)| own.next().is_some_and(|own| fits_at(place, own, name)))
        // Agents keep whole checkouts of projects here.
        && names.get(1).is_none_or(|next| next != "worktrees")
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a name matches one of the table, which may have a `*` at its beginning or its end. The name itself may be a
/// shell pattern. At the beginning of a path a pattern counts only if its dot is written: the shell does not match dot
/// files otherwise, and `*` in every line would match everything.
fn fits_at(place: usize, own: &str, name: &str) -> bool {
    let fitting = match (name.strip_prefix('*'), name.strip_suffix('*')) {
        (Some(ending), _) => own.ends_with(ending),
        (_, Some(beginning)) => own.starts_with(beginning),
        _ => own == name,
    };
    if fitting || !is_pattern(own) {
        return fitting;
    }
    (place > 0 || (own.starts_with('.') && name.starts_with('.'))) && fits(own, name)
}

/// Whether a name matches a pattern with `*`, `?` and `[...]`, which here stands for any one letter. Takes time
/// proportional to the product of their lengths: only the last `*` is ever retried.
fn fits(pattern: &str, name: &str) -> bool {
    let wanted = tokens(pattern);
    let letters: Vec<char> = name.chars().collect();
    let (mut at, mut token) = (0, 0);
    let mut again = None;
    while let Some(letter) = letters.get(at) {
        match (wanted.get(token), again) {
            (Some(Token::Any), _) => {
                again = Some((token + 1, at));
                token += 1;
            }
            (Some(Token::One), _) => (at, token) = (at + 1, token + 1),
            (Some(Token::Letter(own)), _) if own == letter => (at, token) = (at + 1, token + 1),
            (_, Some((behind, start))) => {
                again = Some((behind, start + 1));
                (at, token) = (start + 1, behind);
            }
            _ => return false,
        }
    }
    wanted.get(token..).unwrap_or_default().iter().all(|rest| *rest == Token::Any)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Letter(char),
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        tokens.push(match letter {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => {
                if let Some((_, behind)) = rest.as_str().split_once(']') {
                    rest = behind.chars();
                }
                Token::One
            }
            letter => Token::Letter(letter),
        });
    }
    tokens
}

/// In lower case, as some file systems compare, with one kind of slash and without invisible characters.
fn folded(path: &str) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path).trim();
    path.chars().filter(|&letter| is_honest(letter)).flat_map(char::to_lowercase).map(slash).collect()
}

fn slash(letter: char) -> char {
    if letter == '\\' { '/' } else { letter }
}

fn has_drive(path: &str) -> bool {
    let mut letters = path.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.as_str().starts_with(":/")
}

/// The names of a path after those of its start, and whether it climbs above all of them.
fn names(path: &str, start: Vec<String>) -> (Vec<String>, bool) {
    let mut climbed = false;
    let mut names = start;
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => climbed |= names.pop().is_none(),
            name => names.push(name.to_owned()),
        }
    }
    (names, climbed)
}
