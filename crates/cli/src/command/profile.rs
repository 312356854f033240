//! `toolgate profile`: the saved logins.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Failure;
use super::connection::{logins_file, unknown_profile};
use crate::logins::{self, Logins};
use crate::output::{Report, clean, table};

/// List saved logins and select the current one
#[derive(Args)]
pub(crate) struct Profile {
    #[command(subcommand)]
    action: Action,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List the saved logins
    #[command(after_help = "Example:\n  toolgate profile list")]
    List,
    /// Select the login that commands use without --profile
    #[command(after_help = "Example:\n  toolgate profile use admin")]
    Use {
        /// Name of the profile
        #[arg(value_parser = logins::parse_name)]
        name: String,
    },
}

impl Profile {
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let path = logins_file();
        let mut logins = path.as_ref().map_or_else(|| Ok(Logins::default()), |path| Logins::read(path))?;
        match (self.action, path) {
            (Action::Use { name }, Some(path)) if logins.select(&name) => {
                logins.write(&path)?;
                let text = format!("The current profile is now {}.", clean(&name));
                Ok(Report::new(json!({"current": name}), text))
            }
            (Action::Use { name }, _) => Err(unknown_profile(&logins, &name)),
            (Action::List, _) => Ok(list(&logins)),
        }
    }
}

fn list(logins: &Logins) -> Report {
    let current = logins.current().map(|profile| profile.name.as_str());
    let rows: Vec<Value> = logins
        .profiles()
        .iter()
        .map(|profile| {
            let owner = profile.owner.as_ref();
            json!({
                "name": profile.name,
                "current": current == Some(profile.name.as_str()),
                "principal": owner.map(|owner| &owner.principal),
                "tenant": owner.map(|owner| &owner.tenant),
                "url": profile.url,
            })
        })
        .collect();
    let columns =
        [("PROFILE", "name"), ("CURRENT", "current"), ("PRINCIPAL", "principal"), ("TENANT", "tenant"), ("URL", "url")];
    let text = table(&rows, &columns);
    Report::new(json!({"profiles": rows}), text)
}
