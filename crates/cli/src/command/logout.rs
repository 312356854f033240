//! `toolgate logout`: deletes a saved key.

use clap::Args;
use serde_json::json;

use super::Failure;
use super::connection::{logins_file, names, unknown_profile};
use crate::environment::Environment;
use crate::logins::{self, Logins};
use crate::output::{Report, clean};

/// Delete a saved login
///
/// Without --profile, the current one. The key itself stays valid until `toolgate key revoke`.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate logout\n  toolgate logout --profile agent\n  toolgate logout --all")]
pub(crate) struct Logout {
    /// Saved login to delete [env: TOOLGATE_PROFILE]
    #[arg(long, value_name = "NAME", value_parser = logins::parse_name, conflicts_with = "all")]
    profile: Option<String>,
    /// Delete all saved logins
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Logout {
    pub(crate) fn run(self) -> Result<Report, Failure> {
        let no_login = || Failure::Said("no login is saved".to_owned());
        let path = logins_file().ok_or_else(no_login)?;
        let mut logins = Logins::read(&path)?;
        let names_of =
            |logins: &Logins| logins.profiles().iter().map(|profile| profile.name.clone()).collect::<Vec<_>>();
        let chosen = if self.all {
            names_of(&logins)
        } else {
            let environment = Environment::of_process();
            let variable = environment.text("TOOLGATE_PROFILE").ok().flatten().map(str::to_owned);
            let current = || logins.current().map(|profile| profile.name.clone());
            match self.profile.or(variable).or_else(current) {
                Some(name) => vec![name],
                None if logins.profiles().is_empty() => return Err(no_login()),
                None => {
                    let known = names(logins.profiles());
                    return Err(Failure::Said(format!("no current login; pass --profile or --all: {known}")));
                }
            }
        };
        for name in &chosen {
            if logins.remove(name).is_none() {
                return Err(unknown_profile(&logins, name));
            }
        }
        logins.write(&path)?;
        let mut text = match chosen.as_slice() {
            [] => "No login was saved.".to_owned(),
            chosen => format!("Deleted: {}. The keys stay valid until they are revoked.", clean(&chosen.join(", "))),
        };
        if !logins.profiles().is_empty() && logins.current().is_none() {
            let known = names(logins.profiles());
            text.push_str(&format!("\nSelect another login with `toolgate profile use NAME`: {known}"));
        }
        Ok(Report::new(json!({"logged_out": chosen, "profiles": names_of(&logins)}), text))
    }
}
