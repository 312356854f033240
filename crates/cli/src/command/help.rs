//! Help with examples that can be copied. clap wraps `after_help` at the width of the terminal, in the middle of a command; it
//! does not wrap the text of a help template.

use clap::Command;

/// The command and its subcommands with examples that are not wrapped.
pub(super) fn with_verbatim_examples(command: Command) -> Command {
    let command = command.mut_subcommands(with_verbatim_examples);
    match command.get_after_help().map(ToString::to_string) {
        Some(example) => command.help_template(format!("{TEMPLATE}{example}")),
        None => command,
    }
}

/// The default template of clap, without `after_help`.
const TEMPLATE: &str = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}\n\n";
