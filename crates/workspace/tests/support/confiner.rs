//! Stands in for the toolgate binary: confines itself and becomes the shell.

use std::process::ExitCode;

use toolgate_workspace::{CONFINE_WORD, confine_and_exec};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != CONFINE_WORD) {
        return ExitCode::from(2);
    }
    match confine_and_exec(words) {
        Ok(never) => match never {},
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "whoever started it reads why nothing was run")]
            {
                eprintln!("{error}");
            }
            ExitCode::from(126)
        }
    }
}
