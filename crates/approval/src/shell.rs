//! The shell recogniser: is a command line, as bash or sh would run it, covered by granted prefixes? It understands a
//! small language of plain commands with literal words and leaves everything else to a person. It is a convenience and
//! no boundary: a program that was granted does what it does.

mod character;
mod escape;
mod head;
mod objection;
mod prefix;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use self::character::is_honest;
pub use self::objection::Objection;
pub use self::prefix::{Prefix, PrefixError};
pub use self::reader::{Joint, MAX_BYTES, MAX_COMMANDS, PlainCommand, Word, read};

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
pub fn covered(command: &str, prefixes: &[Prefix]) -> Coverage {
    match covering(command, prefixes) {
        Ok(used) => {
            let names: Vec<String> =
                used.iter().filter_map(|&place| prefixes.get(place)).map(|prefix| format!("`{prefix}`")).collect();
            Coverage { approve: true, why: format!("every command is covered by {}", names.join(", ")), used }
        }
        Err(objection) => Coverage { approve: false, why: objection.to_string(), used: Vec::new() },
    }
}

/// The places of the prefixes that cover the commands, or what is in the way.
fn covering(command: &str, prefixes: &[Prefix]) -> Result<Vec<usize>, Objection> {
    let mut used = Vec::new();
    for command in read(command)? {
        let place = prefixes.iter().position(|prefix| prefix.covers(&command));
        let place = place.ok_or_else(|| Objection::NotCovered { program: command.program() })?;
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        if let Some(escape) = escape::find(&words) {
            return Err(Objection::Escape { program: command.program(), escape: escape.to_string() });
        }
        if !used.contains(&place) {
            used.push(place);
        }
    }
    Ok(used)
}
