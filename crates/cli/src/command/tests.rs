//! Rules that hold for every command.

use clap::{Command, CommandFactory};

use super::CommandLine;
use super::help::with_verbatim_examples;

fn leaves(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
    let mut below = command.get_subcommands().filter(|below| below.get_name() != "help").peekable();
    if below.peek().is_none() {
        found.push((path, command.clone()));
        return;
    }
    below.for_each(|below| leaves(below, &path, found));
}

fn commands() -> Vec<(String, Command)> {
    let mut command = CommandLine::command();
    command.build();
    let mut found = Vec::new();
    leaves(&command, "", &mut found);
    found
}

#[test]
fn the_definition_is_sound() {
    CommandLine::command().debug_assert();
}

#[test]
fn every_command_says_what_it_does_and_shows_an_example() {
    let commands = commands();
    assert!(commands.len() > 35, "{}", commands.len());
    for (path, command) in commands {
        assert!(command.get_about().is_some(), "{path} says nothing");
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains(&path), "{path} has no example with its own name");
    }
}

#[test]
fn every_command_whose_answer_is_not_a_text_can_answer_in_json() {
    for (path, command) in commands() {
        let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
        let needs_none = ["toolgate serve", "toolgate demo", "toolgate host", "toolgate mcp"].contains(&path.as_str())
            || path.starts_with("toolgate completions");
        assert_eq!(has_json, !needs_none, "{path}");
    }
}

#[test]
fn no_argument_takes_a_secret() {
    for (path, command) in commands() {
        for argument in command.get_arguments() {
            let name = argument.get_id().as_str();
            for secret in ["token", "password", "secret", "api_key", "material"] {
                // The first two take no value; the others name who a token is about.
                let is_harmless = ["material_stdin", "no_material", "token_issuer", "token_subject"].contains(&name);
                assert!(is_harmless || !name.contains(secret), "{path} takes `{name}`");
            }
        }
    }
}

#[test]
fn examples_can_be_parsed() {
    for (path, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default().replace("\\\n", " ");
        for line in help.lines().filter(|line| line.trim_start().starts_with(&path)) {
            let words = words(line.trim());
            let parsed = CommandLine::command().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn examples_are_shown_as_they_are_typed_however_narrow_the_terminal_is() {
    for columns in [40, 80, 200] {
        let plain = CommandLine::command();
        let mut shown = with_verbatim_examples(plain.clone()).term_width(columns);
        shown.build();
        assert!(compared(&plain, &shown) > 35);
    }
}

/// Compares the examples of each command with its help; answers how many commands have any.
fn compared(plain: &Command, shown: &Command) -> usize {
    let below = plain.get_subcommands().map(|below| compared(below, shown.find_subcommand(below.get_name()).unwrap()));
    let below: usize = below.sum();
    let Some(example) = plain.get_after_help().map(ToString::to_string) else { return below };
    let mut shown = shown.clone();
    for help in [shown.render_help().to_string(), shown.render_long_help().to_string()] {
        assert!(help.trim_end().ends_with(example.trim_end()), "{help}");
        assert_eq!(help.matches("Example").count(), 1, "{help}");
    }
    below + 1
}

/// Splits as a shell does, as far as the examples need it, and leaves out redirections.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().unwrap().push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    let end = words.iter().position(|word| ["<", ">", "|"].contains(&word.as_str())).unwrap_or(words.len());
    words.truncate(end);
    words
}
