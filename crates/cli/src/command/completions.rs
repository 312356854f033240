//! `toolgate completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::Value;

use super::{CommandLine, Failure};
use crate::output::Report;

/// Print a completion script
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate")]
pub(crate) struct Completions {
    /// Shell that the script is for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "toolgate", &mut script);
        let script =
            String::from_utf8(script).map_err(|_| Failure::Said("the completion script is not UTF-8".to_owned()))?;
        Ok(Report::new(Value::Null, script))
    }
}
