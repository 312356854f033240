//! Help whose examples can be copied. clap wraps what stands after the options at the width of the terminal, in the middle of
//! a command; the text of a template it leaves as it is.

use clap::Command;

/// The command, and all below it, with examples that are never wrapped.
pub(super) fn with_verbatim_examples(command: Command) -> Command {
    let command = command.mut_subcommands(with_verbatim_examples);
    match command.get_after_help().map(ToString::to_string) {
        Some(example) => command.help_template(format!("{TEMPLATE}{example}")),
        None => command,
    }
}

/// clap's own, without what it would wrap.
const TEMPLATE: &str = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}\n\n";
