//! `toolgate vault`: vaults, and master keys.

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

/// How often the progress of a rekey is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// After this many polls without progress the command gives up.
const IDLE_POLLS: u32 = 120;

/// Manage vaults, and change the master key
#[derive(Args)]
pub(crate) struct Vault {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a vault
    #[command(after_help = "Example:\n  toolgate vault create main")]
    Create {
        /// Name for people
        name: String,
        /// Owner [default: you]
        #[arg(long)]
        owner: Option<String>,
    },
    /// List vaults
    #[command(after_help = "Example:\n  toolgate vault list")]
    List(Paging),
    /// Show a vault
    #[command(after_help = "Example:\n  toolgate vault show vault_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    Show {
        /// Vault id
        id: String,
    },
    /// Delete a vault, with its credentials and their grants
    #[command(after_help = "Example:\n  toolgate vault delete vault_01ARZ3NDEKTSV4RRFFQ69G5FAV --yes")]
    Delete {
        /// Vault id
        id: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Show the master keys, and how many data keys each one wraps
    #[command(after_help = "Example:\n  toolgate vault status")]
    Status,
    /// Change the master key while the gate runs
    ///
    /// The key provider `file` creates a new key; with other providers, the key that they report as current is used.
    /// Credentials stay usable throughout. If it is interrupted, it continues at the next start of the gate.
    #[command(after_help = "Example:\n  toolgate vault rekey")]
    Rekey {
        /// Do not wait until it is complete
        #[arg(long)]
        no_wait: bool,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create { name, owner } => {
                let body = VaultRequest { owner_id: typed_option("owner_id", owner)?, name: typed("name", name)? };
                let vault = client.to::<CreateVault>().body(&body).send().await?;
                let text = format!("Vault {} created.", vault.id);
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
                    "Vault {} deleted; {} credentials and {} grants were revoked.",
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

/// Polls until all data keys are rewrapped, or until there is no progress.
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
                "{remaining} data keys are still wrapped by an old master key, which is kept; see the log of the gate for the reason"
            )));
        }
        if remaining != last && prompt::interactive() {
            output::say(&format!("{remaining} data keys to rewrap"));
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
