//! The shell recognizer decides whether granted prefixes cover a command line as bash or sh would run it. It
//! understands a small language of plain commands with literal words and leaves everything else to a person; after the
//! words of a prefix it covers only arguments that are known to be harmless. It is a convenience and not a security
//! boundary: a granted program does what it does.

mod character;
mod harmless;
mod head;
mod objection;
mod prefix;
mod reader;
#[cfg(test)]
mod tests;

pub use self::harmless::Surroundings;
pub use self::objection::Objection;
pub use self::prefix::{Prefix, PrefixError};
pub use self::reader::{MAX_BYTES, MAX_COMMANDS, PlainCommand, Separator, Word, read};

/// Whether a command line may run without approval, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    pub approve: bool,
    /// The reason, for people.
    pub why: String,
    /// The prefixes that were needed, by their index in the list, without duplicates. Empty unless approved.
    pub used: Vec<usize>,
}

/// Decides on a command line. It approves only what it understands completely and what is covered in every part.
pub fn covered(command: &str, prefixes: &[Prefix], around: Surroundings<'_>) -> Coverage {
    match covering(command, prefixes, around) {
        Ok(used) => {
            let names: Vec<String> =
                used.iter().filter_map(|&place| prefixes.get(place)).map(|prefix| format!("`{prefix}`")).collect();
            Coverage { approve: true, why: format!("every command is covered by {}", names.join(", ")), used }
        }
        Err(objection) => Coverage { approve: false, why: objection.to_string(), used: Vec::new() },
    }
}

/// The indexes of the prefixes that cover the commands, or the objection.
fn covering(command: &str, prefixes: &[Prefix], around: Surroundings<'_>) -> Result<Vec<usize>, Objection> {
    let mut used = Vec::new();
    for judged in judge(&read(command)?, prefixes, around) {
        let place = judged?;
        if !used.contains(&place) {
            used.push(place);
        }
    }
    Ok(used)
}

/// For each command of a line, the index of the prefix that covers it, or the objection.
pub(crate) fn judge(
    commands: &[PlainCommand],
    prefixes: &[Prefix],
    around: Surroundings<'_>,
) -> Vec<Result<usize, Objection>> {
    let mut at_home = around.directory.is_none_or(|directory| around.is_workspace(directory));
    let mut judged = Vec::new();
    for command in commands {
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        let covering = covering_prefix(command, &words, prefixes, around);
        let away = if at_home { None } else { harmless::needs_home(&words) };
        let away = away.or_else(|| harmless::leads_astray(&words));
        judged.push(match (covering, away) {
            (Ok(_), Some(away)) => Err(Objection::Beyond { program: command.program(), beyond: away.to_string() }),
            (covering, _) => covering,
        });
        // Once a command has left the workspace, the rest counts as outside: whether a command that leads back is
        // reached is unknown.
        at_home &= harmless::changes_directory(&words).is_none_or(|to| around.is_workspace(to));
    }
    judged
}

/// The first prefix that covers all of a command; otherwise the objection of the last one that begins it.
fn covering_prefix(
    command: &PlainCommand,
    words: &[&str],
    prefixes: &[Prefix],
    around: Surroundings<'_>,
) -> Result<usize, Objection> {
    let mut objection = Objection::NotCovered { program: command.program() };
    for (place, prefix) in prefixes.iter().enumerate().filter(|(_, prefix)| prefix.begins(command)) {
        match harmless::find(words, prefix.words().len(), around) {
            None => return Ok(place),
            Some(beyond) => {
                objection = Objection::Beyond { program: command.program(), beyond: beyond.to_string() };
            }
        }
    }
    Err(objection)
}
