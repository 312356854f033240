//! Arguments by which a program that was granted would run another one, load code or settings that the command line
//! names, or write where it is told. The table is data; this is how it is read.

mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use self::table::{PROGRAMS, Program, Subcommands};
use super::head;

/// An argument that is left to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Escape {
    program: &'static str,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// This pattern of the table matched.
    Argument(&'static str),
    /// An option before the subcommand that is not known to be harmless.
    Early,
    /// A subcommand that is refused, or not known to be harmless.
    Subcommand,
}

/// The first argument that the table objects to, if any.
pub(super) fn find(words: &[&str]) -> Option<Escape> {
    let (first, arguments) = words.split_first()?;
    let names = head::names(first);
    let is_named = |program: &&Program| program.names.split(' ').any(|name| names.iter().any(|own| own == name));
    PROGRAMS.iter().filter(is_named).find_map(|program| find_in(program, arguments))
}

fn find_in(program: &'static Program, arguments: &[&str]) -> Option<Escape> {
    let escape = |what| Some(Escape { program: program.names.split(' ').next().unwrap_or_default(), what });
    let subcommand = match program.subcommands {
        Subcommands::None => None,
        _ => arguments.iter().copied().find(|argument| !is_early(program, argument)),
    };
    let below = program.below.iter().filter(|(name, _)| subcommand == Some(*name)).map(|(_, patterns)| *patterns);
    let mut patterns = std::iter::once(program.anywhere).chain(below).flat_map(str::split_ascii_whitespace);
    let refuses = |pattern: &&str| {
        arguments.iter().enumerate().any(|(place, argument)| refuses(program, pattern, place, argument))
    };
    // A pattern says more than that something unknown stands where the subcommand should, so patterns come first.
    if let Some(pattern) = patterns.find(refuses) {
        return escape(What::Argument(pattern));
    }
    let subcommand = subcommand?;
    let fits = match program.subcommands {
        _ if subcommand.starts_with(['-', '+']) => return escape(What::Early),
        Subcommands::None => true,
        Subcommands::Only(names) => names.split(' ').any(|name| name == subcommand),
        Subcommands::AllBut(names) => !names.split(' ').any(|name| name == subcommand),
    };
    if fits { None } else { escape(What::Subcommand) }
}

/// May this stand before the subcommand?
fn is_early(program: &Program, argument: &str) -> bool {
    // A path behind a beginning that is known would be something else altogether.
    program.early.split_ascii_whitespace().any(|known| match known.strip_suffix('*') {
        Some(beginning) => argument.starts_with(beginning) && !argument.contains('/'),
        None => argument == known,
    })
}

fn refuses(program: &Program, pattern: &str, place: usize, argument: &str) -> bool {
    // `tar xf` means `tar -xf`.
    let dashless = program.dashless && place == 0 && !argument.starts_with('-');
    matches(pattern, argument) || (dashless && matches(pattern, &format!("-{argument}")))
}

/// Does an argument match a pattern of the table? See [`Program::anywhere`].
fn matches(pattern: &str, argument: &str) -> bool {
    if let Some(part) = pattern.strip_prefix('*') {
        return argument.contains(part);
    }
    if let Some(beginning) = pattern.strip_suffix('*') {
        return argument.starts_with(beginning);
    }
    let name = argument.split('=').next().unwrap_or(argument);
    if pattern.starts_with("--") {
        return name.len() > 2 && name.starts_with("--") && pattern.starts_with(name);
    }
    match pattern.strip_prefix('-') {
        None => argument == pattern,
        Some(option) if option.len() == 1 => {
            argument.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(option))
        }
        Some(option) => name.strip_prefix('-').is_some_and(|rest| rest.strip_prefix('-').unwrap_or(rest) == option),
    }
}

impl fmt::Display for Escape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program;
        match &self.what {
            What::Argument(pattern) => {
                let spelled = pattern.trim_matches('*');
                write!(formatter, "`{spelled}` lets {program} run other commands, load other settings or write files")
            }
            What::Early => write!(formatter, "an option before the subcommand of {program} may change what it runs"),
            What::Subcommand => write!(formatter, "this subcommand of {program} may run other commands"),
        }
    }
}
