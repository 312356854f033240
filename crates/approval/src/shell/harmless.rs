//! What may follow the words of a prefix. Nothing is covered just because it is not known to be dangerous: an option is
//! covered if the table lists it as harmless for its program, an operand if the table defines the operands of that
//! program; of an unknown program, only paths inside the workspace are covered.

mod operand;
mod options;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use toolgate_model::approval::Workspace;

use self::operand::{Kind, Operands};
use self::options::{Found, Options};
use self::table::{EVERYWHERE, Program, Unlisted, programs};
use super::head;

/// The maximum length of an option in a message: a secret may be appended to its name.
const SHOWN: usize = 40;

/// Where a command runs, as far as its text tells.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The directory that the agent works in.
    pub workspace: Option<&'a Workspace>,
    /// Where the command starts, if that is another directory.
    pub directory: Option<&'a str>,
}

impl Surroundings<'_> {
    pub const UNKNOWN: Self = Self { workspace: None, directory: None };

    /// Whether a path is the workspace itself.
    pub(crate) fn is_workspace(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path == "." || self.workspace.is_some_and(|workspace| workspace.as_str().trim_end_matches('/') == path)
    }
}

/// A word that is not covered, in a command whose first words were granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beyond {
    program: String,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// An option that no table lists.
    Option { shown: String, before_subcommand: bool },
    /// A subcommand that the table does not list.
    Subcommand,
    /// An operand of a kind that the program is not known to take.
    Operand,
    /// It follows an option that may take it as its value.
    AfterOption,
    /// The program loads settings from its directory, which is not the workspace.
    Elsewhere,
}

/// The first word after the `granted` first ones that is not covered.
pub(super) fn find(words: &[&str], granted: usize, around: Surroundings<'_>) -> Option<Beyond> {
    let first = words.first()?;
    let judged = match known(first) {
        Some(program) => of_known(program, words, granted, around),
        None => of_unknown(words, granted, 1, around),
    };
    judged.err().map(|what| Beyond { program: shown_name(first), what })
}

/// Why a command is covered in the workspace itself and not in a directory below it: there a program may find settings,
/// a repository or scripts that another program placed there.
pub(super) fn needs_home(words: &[&str]) -> Option<Beyond> {
    let first = words.first()?;
    let everywhere = head::names(first).iter().any(|name| EVERYWHERE.split(' ').any(|known| known == name));
    (!everywhere).then(|| Beyond { program: shown_name(first), what: What::Elsewhere })
}

/// Why a command that changes the directory leads to an unknown one, if it does.
pub(super) fn leads_astray(words: &[&str]) -> Option<Beyond> {
    let is_named = |to: &str| !matches!(to, "" | "-");
    let astray = changes_directory(words).is_some_and(|to| words.first() != Some(&"popd") && !is_named(to));
    astray.then(|| Beyond {
        program: words.first().map(|first| shown_name(first)).unwrap_or_default(),
        what: What::Operand,
    })
}

/// The target of a command that changes the directory: `None` for any other command.
pub(super) fn changes_directory<'a>(words: &[&'a str]) -> Option<&'a str> {
    let (first, rest) = words.split_first()?;
    matches!(*first, "cd" | "pushd" | "popd").then(|| rest.first().copied().unwrap_or_default())
}

fn known(first: &str) -> Option<&'static Program> {
    let names = head::names(first);
    programs().find(|program| program.names.split(' ').any(|name| names.iter().any(|own| own == name)))
}

/// Checks the whole command by the table. Operands among the granted words are granted whatever they are; options are
/// not, because one that takes a value would take what follows.
fn of_known(program: &'static Program, words: &[&str], granted: usize, around: Surroundings<'_>) -> Result<(), What> {
    let mut options = Options::of(program.options);
    let mut kind = if program.subcommands.is_empty() { Some(program.operands) } else { None };
    let mut operands = Operands::default();
    let mut words = words.iter().copied().enumerate().skip(1);
    while let Some((place, word)) = words.next() {
        let is_granted = place < granted;
        if matches!(kind, Some(Kind::Anything)) {
            return Ok(());
        }
        if word == "--" && kind.is_some() {
            continue;
        }
        if options::is_option(word) || options.lists_word(word) {
            match options.find(word) {
                Found::Complete => {}
                Found::TakesNext { path } => {
                    if let Some((_, value)) = words.next()
                        && (options::is_option(value) || (path && !operand::is_inside(value, around)))
                    {
                        return Err(What::Option { shown: options.shown(word), before_subcommand: false });
                    }
                }
                Found::TakesPath { value } if operand::is_inside(value, around) => {}
                Found::TakesPath { .. } | Found::Nothing => {
                    let shown = options.shown(word);
                    return Err(What::Option { shown, before_subcommand: kind.is_none() });
                }
            }
            continue;
        }
        let Some(own) = kind else {
            let listed = program.subcommands.iter().find(|one| one.names.split(' ').any(|name| name == word));
            match (listed, program.unlisted) {
                (Some(subcommand), _) => {
                    options = Options::of(subcommand.options);
                    kind = Some(subcommand.operands);
                }
                // A subcommand named by a person counts as an unknown program.
                (None, Unlisted::Named { refused }) if is_granted && !refused.split(' ').any(|name| name == word) => {
                    let all: Vec<&str> = words.map(|(_, word)| word).collect();
                    return of_unknown(&all, granted.saturating_sub(place + 1), 0, around);
                }
                _ => return Err(What::Subcommand),
            }
            continue;
        };
        let closed = matches!(program.unlisted, Unlisted::Refused);
        if closed && operands.is_unlisted_verb(own, word) {
            return Err(What::Subcommand);
        }
        if !operands.take(own, word, is_granted, around) {
            return Err(What::Operand);
        }
    }
    Ok(())
}

/// Checks an unknown program: covers paths inside the workspace that look like paths, and granted options.
fn of_unknown(words: &[&str], granted: usize, skip: usize, around: Surroundings<'_>) -> Result<(), What> {
    let (own, rest) = words.split_at(granted.max(skip).min(words.len()));
    let takes_next = own.last().is_some_and(|last| options::is_option(last) && !last.contains('='));
    for word in rest {
        if options::is_option(word) {
            if !own.contains(word) && !matches!(*word, "--help" | "--version") {
                return Err(What::Option { shown: Options::of("").shown(word), before_subcommand: false });
            }
        } else if takes_next {
            return Err(What::AfterOption);
        } else if !operand::looks_like_a_path(word) || !operand::is_inside(word, around) {
            return Err(What::Operand);
        }
    }
    Ok(())
}

/// Without its directory.
fn shown_name(first: &str) -> String {
    let [name, _] = head::names(first);
    name.chars().take(SHOWN).collect()
}

impl fmt::Display for Beyond {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = &self.program;
        match &self.what {
            What::Option { shown, before_subcommand: false } => {
                write!(formatter, "the option `{shown}` is not known to be harmless with {program}")
            }
            What::Option { shown, before_subcommand: true } => {
                write!(
                    formatter,
                    "the option `{shown}` before the subcommand is not known to be harmless with {program}"
                )
            }
            What::Subcommand => write!(formatter, "this subcommand is not known to be harmless with {program}"),
            What::Operand => {
                write!(formatter, "an argument of {program} is not a plain path inside the workspace")
            }
            What::AfterOption => {
                write!(formatter, "the last option of the prefix may take the next argument of {program} as its value")
            }
            What::Elsewhere => {
                write!(formatter, "{program} does not run in the workspace itself and may load other settings")
            }
        }
    }
}
