//! `toolgate login`: keeps a key for later commands.

use clap::Args;
use serde_json::json;

use super::{Connection, Failure};
use crate::client::Client;
use crate::configuration::Environment;
use crate::output::{Report, at, plain};
use crate::{prompt, saved_tokens};

/// Save a key for later commands
///
/// The key is asked for, or read from standard input, shown to the gate, and then kept with mode 0600 in the user's
/// configuration directory. It is used for this gate's URL only.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate login --url http://127.0.0.1:7300")]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Login {
    /// Asks, checks, saves.
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let url = self.connection.checked_url()?;
        let Some(home) = Environment::of_process().configuration_home() else {
            return Err(Failure::Said(
                "neither HOME nor XDG_CONFIG_HOME is set; set TOOLGATE_TOKEN instead".to_owned(),
            ));
        };
        let token = prompt::secret("Key")?.ok_or_else(|| Failure::Said("no key was given".to_owned()))?;
        let caller = Client::new(&url, &token)?.get("/api/v1/whoami").await?;
        let path = home.join(saved_tokens::FILE_NAME);
        saved_tokens::save(&path, &url, &token)?;
        let who = format!("{} of tenant {}", plain(at(&caller, "id")), plain(at(&caller, "tenant_id")));
        let text = format!("You are {who}. The key is kept in {}.", path.display());
        Ok(Report::new(json!({"url": url, "caller": caller, "file": path.display().to_string()}), text))
    }
}
