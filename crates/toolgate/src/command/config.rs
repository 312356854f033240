//! `toolgate config`: what is configured, and what can be.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Failure;
use super::serve::ServeFlags;
use crate::configuration::keys::SECRET_VARIABLES;
use crate::configuration::value::MASK;
use crate::configuration::{self, Environment, Loaded};
use crate::output::{self, Report, align, clean};

/// Check the configuration, or print an example of it
#[derive(Args)]
pub(crate) struct Config {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Validate the configuration and show what holds, and where it comes from
    #[command(after_help = "Example:\n  toolgate config check --config /etc/toolgate/toolgate.toml")]
    Check(Box<ServeFlags>),
    /// Print the configuration file with every key, commented
    #[command(after_help = "Example:\n  toolgate config example > ~/.config/toolgate/toolgate.toml")]
    Example,
}

impl Config {
    /// Does what was asked.
    pub(crate) fn run(self) -> Result<Report, Failure> {
        match self.action {
            Action::Check(flags) => check(flags.load()?, &Environment::of_process()),
            Action::Example => {
                let example = configuration::example();
                Ok(Report::new(json!({"example": example}), example))
            }
        }
    }
}

fn check(loaded: Loaded, environment: &Environment) -> Result<Report, Failure> {
    let secrets: Vec<&str> = SECRET_VARIABLES.iter().copied().filter(|name| environment.has(name)).collect();
    let keys: Vec<Value> = loaded
        .described
        .iter()
        .map(|described| json!({"key": described.path, "value": described.value, "from": described.origin.to_string()}))
        .collect();
    let file = loaded.file.map(|path| path.display().to_string());
    let mut rows = vec![vec!["KEY".to_owned(), "VALUE".to_owned(), "FROM".to_owned()]];
    for described in &loaded.described {
        rows.push(vec![described.path.to_owned(), written(&described.value), described.origin.to_string()]);
    }
    for name in &secrets {
        rows.push(vec![(*name).to_owned(), MASK.to_owned(), format!("variable {name}")]);
    }
    let mut text =
        format!("The configuration is valid. File: {}\n\n", file.as_deref().map_or("none".to_owned(), clean));
    text.push_str(&align(rows));
    for warning in &loaded.warnings {
        output::say(&format!("toolgate: warning: {}", clean(warning)));
    }
    let value = json!({
        "valid": true,
        "file": file,
        "keys": keys,
        "secrets_set": secrets,
        "warnings": loaded.warnings,
    });
    Ok(Report::new(value, text))
}

/// As it would stand in the file, but for the marks around a text.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    }
}
