//! `toolgate config`: checks the configuration, or prints an example.

use serde_json::{Value, json};
use toolgate_cli::environment::Environment;
use toolgate_cli::output::{self, Report, align, clean};
use toolgate_cli::{Config, ConfigAction, Failure};

use super::serve;
use crate::configuration::keys::SECRET_VARIABLES;
use crate::configuration::value::MASK;
use crate::configuration::{self, Loaded};

pub(super) fn config(command: Config) -> Result<Report, Failure> {
    match command.action {
        ConfigAction::Check(flags) => check(serve::load(*flags)?, &Environment::of_process()),
        ConfigAction::Example => {
            let example = configuration::example();
            Ok(Report::new(json!({"example": example}), example))
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

/// As in the file, but without quotes.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => clean(text),
        other => clean(&other.to_string()),
    }
}
