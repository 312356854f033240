//! `toolgate vault`: vaults, and the master keys behind them.

use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::time::{MissedTickBehavior, interval};
use toolgate_api::master_keys::{MasterKeys, Rekey, ShowMasterKeys};
use toolgate_api::parameters;
use toolgate_api::vaults::{CreateVault, DeleteVault, ListVaults, ShowVault, VaultPage, VaultRequest};

use super::paging::{Paging, Shown};
use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::client::{Client, ClientError};
use crate::output::{self, Report, clean, table_of};
use crate::prompt;

/// How often a change of the master key is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// After so many looks without progress something is in the way.
const IDLE_POLLS: u32 = 120;

/// Keep vaults, and change the master key
#[derive(Args)]
pub(crate) struct Vault {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Make a vault
    #[command(after_help = "Example:\n  toolgate vault create main")]
    Create {
        /// What people call it
        name: String,
        /// Whose it is; yours unless said otherwise
        #[arg(long)]
        owner: Option<String>,
    },
    /// List the vaults
    #[command(after_help = "Example:\n  toolgate vault list")]
    List(Paging),
    /// Show one
    #[command(after_help = "Example:\n  toolgate vault show vault_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Its id
        id: String,
    },
    /// Delete one, with its credentials and their grants
    #[command(after_help = "Example:\n  toolgate vault delete vault_01ARZ3NDEKTSV4RRFFQ69G5FAV --yes")]
    Delete {
        /// Its id
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show which master key wraps what
    #[command(after_help = "Example:\n  toolgate vault status")]
    Status,
    /// Change the master key while the gate runs
    ///
    /// With the key provider `file` a new key is made; with the others the key that they now call current is taken. Every
    /// credential stays usable throughout. Cut off at any point, it goes on by itself at the gate's next start.
    #[command(after_help = "Example:\n  toolgate vault rekey")]
    Rekey {
        /// Do not wait for the end
        #[arg(long)]
        no_wait: bool,
    },
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { name, owner } => {
                let body = VaultRequest { owner_id: typed_option("owner_id", owner)?, name: typed("name", name)? };
                let vault = client.to::<CreateVault>().body(&body).send().await?;
                let text = format!("Vault {} was made.", vault.id);
                Ok(Report::new(vault, text))
            }
            Self::List(paging) => {
                let columns = [
                    ("ID", "id"),
                    ("NAME", "name"),
                    ("OWNER", "owner_id"),
                    ("CREDENTIALS", "credentials"),
                    ("CREATED", "created_at"),
                ];
                let shown = Shown { name: "vaults", columns: &columns };
                let query = |limit, cursor| Ok(parameters::Paging { limit, cursor });
                let page = |page: VaultPage| (page.vaults, page.next_cursor);
                paging.fetch::<ListVaults, _>(&client, None, query, page, shown).await
            }
            Self::Show { id } => Ok(Report::details(client.to::<ShowVault>().named(&id).send().await?)),
            Self::Delete { id, yes } => {
                let consequence =
                    format!("this deletes the vault {id}, destroys its credentials and revokes their grants");
                prompt::confirm(&consequence, yes)?;
                let deleted = client.to::<DeleteVault>().named(&id).send().await?;
                let text = format!(
                    "Vault {} was deleted; {} credentials and {} grants were revoked.",
                    deleted.vault_id, deleted.revoked_credentials, deleted.revoked_grants
                );
                Ok(Report::new(deleted, text))
            }
            Self::Status => Ok(status_report(&master_keys(&client).await?)),
            Self::Rekey { no_wait } => {
                let status = client.to::<Rekey>().send().await?;
                let status = if no_wait { status } else { wait_for_rekey(&client, status).await? };
                Ok(status_report(&status))
            }
        }
    }
}

/// Looks until nothing is left to wrap anew, or until nothing happens any more.
async fn wait_for_rekey(client: &Client, mut status: MasterKeys) -> Result<MasterKeys, Failure> {
    let mut looks = interval(POLL_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut polls_left = IDLE_POLLS;
    let mut last = u64::MAX;
    loop {
        let remaining = status.remaining;
        if remaining == 0 {
            return Ok(status);
        }
        polls_left = if remaining < last { IDLE_POLLS } else { polls_left - 1 };
        if polls_left == 0 {
            return Err(Failure::Said(format!(
                "{remaining} data keys are still under an old master key; the gate's log says why, and the old key is kept"
            )));
        }
        if remaining != last && prompt::interactive() {
            output::say(&format!("{remaining} data keys to wrap anew"));
        }
        last = remaining;
        looks.tick().await;
        status = master_keys(client).await?;
    }
}

async fn master_keys(client: &Client) -> Result<MasterKeys, ClientError> {
    client.to::<ShowMasterKeys>().send().await
}

fn status_report(status: &MasterKeys) -> Report {
    let columns = [("MASTER KEY", "key_id"), ("CURRENT", "current"), ("WRAPS", "wraps"), ("RETIRED", "retired_at")];
    let text = format!(
        "Current master key: {}\nData keys under other master keys: {}\n\n{}",
        clean(&status.current),
        status.remaining,
        table_of(&status.keys, &columns)
    );
    Report::new(status, text)
}
