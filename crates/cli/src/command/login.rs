//! `toolgate login`: saves a key as a profile.

use clap::Args;
use serde_json::json;
use toolgate_api::agents::{Agent, Whoami};

use super::connection::{KEY_VARIABLES, logins_file};
use super::{Connection, Failure};
use crate::client::{Client, ClientError};
use crate::environment::Environment;
use crate::logins::{Logins, Owner, Profile};
use crate::output::{self, Report, clean};
use crate::prompt;

/// Save a key for later commands
///
/// Prompts for the key, or reads it from standard input, verifies it with the gate, and saves it with mode 0600 in the
/// user's configuration directory. It is sent only to the gate that it was saved for. Each login is a profile, named after
/// its principal unless --profile is given. The first login becomes the current one; `toolgate profile use` changes that.
#[derive(Args)]
#[command(
    after_help = "Example:\n  toolgate login --url http://127.0.0.1:7300\n  toolgate login --profile agent\n  toolgate login --use"
)]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Make this login the current one
    #[arg(long = "use")]
    select: bool,
}

impl Login {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let url = self.connection.gate()?;
        let path = logins_file().ok_or_else(|| {
            Failure::Said("neither HOME nor XDG_CONFIG_HOME is set; set TOOLGATE_TOKEN instead".to_owned())
        })?;
        let mut logins = Logins::read(&path)?;
        let key = prompt::secret("Key")?.ok_or_else(|| Failure::Said("no key was entered".to_owned()))?;
        let caller = Client::new(&url, &key)?.to::<Whoami>().send().await?;
        name_earlier(&mut logins, &url).await?;
        let owner = owner(&caller);
        let who = format!("{} of tenant {}", clean(&owner.principal), clean(&owner.tenant));
        let name = self.connection.profile.clone().unwrap_or_else(|| logins.name_for(&url, &owner));
        logins.save(Profile { name: name.clone(), url: url.clone(), owner: Some(owner), key });
        if self.select {
            logins.select(&name);
        }
        logins.write(&path)?;
        let current = logins.current().map_or("", |profile| &profile.name);
        let shown = clean(&name);
        let mut text = format!("You are {who} at {url}. The key is saved in {}, profile {shown}.", path.display());
        if current != name {
            text.push_str(&format!(
                "\nThe current profile is still {}: pass --profile {shown}, or run `toolgate profile use {shown}`.",
                clean(current)
            ));
        }
        let environment = Environment::of_process();
        if let Some(variable) = KEY_VARIABLES.into_iter().find(|name| environment.has(name)) {
            output::say(&format!("toolgate: warning: {variable} is set; commands without --profile use that key"));
        }
        let file = path.display().to_string();
        let value = json!({"url": url, "caller": caller, "file": file, "profile": name, "current": current == name});
        Ok(Report::new(value, text))
    }
}

/// Completes a login of an earlier version, which has no principal, so that it is neither lost nor saved twice.
async fn name_earlier(logins: &mut Logins, url: &str) -> Result<(), Failure> {
    let Some(earlier) = logins.unowned(url) else { return Ok(()) };
    let name = earlier.name.clone();
    let was_current = logins.current().is_some_and(|profile| profile.name == name);
    let caller = match Client::new(url, &earlier.key)?.to::<Whoami>().send().await {
        Ok(caller) => Some(caller),
        // The key is no longer valid.
        Err(ClientError::Refused { status, .. }) if status.as_u16() == 401 => None,
        Err(error) => return Err(error.into()),
    };
    let Some(profile) = logins.remove(&name) else { return Ok(()) };
    if let Some(caller) = caller {
        let owner = owner(&caller);
        let name = logins.name_for(url, &owner);
        logins.save(Profile { name: name.clone(), owner: Some(owner), ..profile });
        if was_current {
            logins.select(&name);
        }
    }
    Ok(())
}

fn owner(caller: &Agent) -> Owner {
    Owner { principal: caller.id.to_string(), tenant: caller.tenant_id.to_string() }
}
