//! `toolgate memory`: memories of agents.

use clap::{Args, Subcommand};
use toolgate_api::stores::{
    CreateMemory, DeleteMemory, ForgetEntries, ForgetRequest, ListMemories, Memory as Store, MemoryRequest, ShowMemory,
};
use toolgate_model::id::{CredentialId, VaultId};
use toolgate_model::store::MemoryScope;

use super::mount::mounts_vault;
use super::values::{typed, typed_option};
use super::{Connection, Failure};
use crate::client::Client;
use crate::output::{Report, clean, table_of};
use crate::prompt;

/// Manage memories, in which agents store texts and find them again
#[derive(Args)]
pub(crate) struct Memory {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Create a memory, with a credential by which it can be granted
    #[command(
        after_help = "Example:\n  toolgate memory create notes --scope agent\n  toolgate memory create support --scope user --retention-days 90"
    )]
    Create {
        /// Name of the memory, which is the service of its tools
        name: String,
        /// Whose entries belong together
        #[arg(long, value_name = "SCOPE", value_parser = scope, default_value = "agent")]
        scope: MemoryScope,
        /// Forget entries after so many days [default: never]
        #[arg(long, value_name = "DAYS")]
        retention_days: Option<u32>,
        /// Maximum number of entries that belong together [default: 1000]
        #[arg(long, value_name = "COUNT")]
        max_items: Option<u32>,
        /// Maximum length of an entry, in characters [default: 8000]
        #[arg(long, value_name = "COUNT")]
        max_characters: Option<u32>,
        /// How many entries one agent may write in a minute [default: 60]
        #[arg(long, value_name = "COUNT")]
        writes_per_minute: Option<u32>,
        /// Description for people and agents
        #[arg(long)]
        description: Option<String>,
        /// Vault of the credential [default: the vault `mounts`]
        #[arg(long, value_name = "VAULT")]
        vault: Option<String>,
    },
    /// List memories
    #[command(after_help = "Example:\n  toolgate memory list")]
    List,
    /// Show a memory
    #[command(after_help = "Example:\n  toolgate memory show notes")]
    Show {
        /// Name of the memory
        name: String,
    },
    /// Delete a memory with everything in it
    #[command(after_help = "Example:\n  toolgate memory delete notes --yes")]
    Delete {
        /// Name of the memory
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Delete entries for good, including those of all agents
    #[command(
        after_help = "Example:\n  toolgate memory forget support --user alice --yes\n  toolgate memory forget notes --item item_01ARZ3NDEKTSV4RRFFQ69G5FAV --yes"
    )]
    Forget(Forget),
}

#[derive(Args)]
pub(crate) struct Forget {
    /// Name of the memory
    name: String,
    #[command(flatten)]
    what: What,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct What {
    /// One entry, by its id
    #[arg(long)]
    item: Option<String>,
    /// What this agent has written
    #[arg(long)]
    agent: Option<String>,
    /// What was written for this caller
    #[arg(long)]
    user: Option<String>,
    /// Everything
    #[arg(long)]
    all: bool,
}

fn scope(text: &str) -> Result<MemoryScope, String> {
    let words = || MemoryScope::ALL.map(MemoryScope::as_str).join(", ");
    MemoryScope::parse(text).ok_or_else(|| format!("use one of {}", words()))
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Create {
                name,
                scope,
                retention_days,
                max_items,
                max_characters,
                writes_per_minute,
                description,
                vault,
            } => {
                let body = MemoryRequest {
                    name: typed("name", name)?,
                    description: typed_option("description", description)?,
                    scope,
                    retention_days,
                    max_items,
                    max_characters,
                    writes_per_minute,
                    vault_id: Some(vault_of(&client, vault).await?),
                };
                let store = client.to::<CreateMemory>().body(&body).send().await?;
                let text = format!("Memory {} created.", clean(store.name.as_str()));
                let aside = granting(store.credential_id, "memory.read --scope memory.write --scope memory.forget");
                Ok(Report::new(store, text).with_aside(aside))
            }
            Self::List => {
                let list = client.to::<ListMemories>().send().await?;
                let columns = [
                    ("NAME", "name"),
                    ("SCOPE", "scope"),
                    ("ENTRIES", "items"),
                    ("RETENTION DAYS", "retention_days"),
                    ("CREATED", "created_at"),
                ];
                let text = table_of(&list.stores, &columns);
                Ok(Report::new(list, text))
            }
            Self::Show { name } => {
                let store: Store = client.to::<ShowMemory>().named(&name).send().await?;
                Ok(Report::details(store))
            }
            Self::Delete { name, yes } => {
                prompt::confirm(&format!("this deletes the memory {} with everything in it", clean(&name)), yes)?;
                let removed = client.to::<DeleteMemory>().named(&name).send().await?;
                let text = format!("Memory {} deleted.", clean(removed.name.as_str()));
                Ok(Report::new(removed, text))
            }
            Self::Forget(forget) => forget.run(&client).await,
        }
    }
}

impl Forget {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let Self { name, what: What { item, agent, user, all }, yes } = self;
        let body = ForgetRequest {
            item_id: typed_option("item_id", item)?,
            agent: typed_option("agent", agent)?,
            user: typed_option("user", user)?,
            all: all.then_some(true),
        };
        prompt::confirm(&format!("this deletes entries of the memory {} for good", clean(&name)), yes)?;
        let forgotten = client.to::<ForgetEntries>().named(&name).body(&body).send().await?;
        let text = match forgotten.forgotten {
            1 => "1 entry deleted.".to_owned(),
            count => format!("{count} entries deleted."),
        };
        Ok(Report::new(forgotten, text))
    }
}

/// The vault for the credential of a store.
pub(super) async fn vault_of(client: &Client, named: Option<String>) -> Result<VaultId, Failure> {
    match named {
        Some(id) => typed("vault_id", id),
        None => mounts_vault(client).await,
    }
}

/// How agents get the tools of a store.
pub(super) fn granting(credential: Option<CredentialId>, scopes: &str) -> String {
    match credential {
        Some(credential) => {
            format!("Let an agent use it with `toolgate grant create AGENT {credential} --scope {scopes}`.")
        }
        None => String::new(),
    }
}
