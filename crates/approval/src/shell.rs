//! The shell recogniser: is a command line, as bash or sh would run it, covered by granted prefixes? It understands a
//! small language of plain commands with literal words and leaves everything else to a person; and behind the words of a
//! prefix it covers only what is known to be harmless. It is a convenience and no boundary: a program that was granted
//! does what it does.

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

/// Whether a command line may run without asking, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// May it run without asking?
    pub approve: bool,
    /// The reason, for people.
    pub why: String,
    /// Which of the prefixes were needed, by their place in the list, each once. Empty unless approved.
    pub used: Vec<usize>,
}

/// Judges a command line. Approved is only what is understood completely and covered in every part.
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

/// The places of the prefixes that cover the commands, or what is in the way.
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

/// For each command of a line, the place of the prefix that covers it, or what is in the way.
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
        // Once away, always away: whether a command that leads back is reached cannot be told.
        at_home &= harmless::changes_directory(&words).is_none_or(|to| around.is_workspace(to));
    }
    judged
}

/// The first prefix that covers all of a command; else what the last one that begins it does not cover.
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
