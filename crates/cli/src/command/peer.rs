//! `toolgate peer`: agents that other agents talk to through the gate. A peer is a mount whose offer is its card: it is
//! reviewed, checked and removed with `toolgate mount`.

use clap::{Args, Subcommand};
use toolgate_api::mounts::{ListMounts, MountTransport};

use super::mount::{Add, Added};
use super::{Connection, Failure};
use crate::output::{Report, table_of};

/// Let agents talk to other agents, over A2A
#[derive(Args)]
pub(crate) struct Peer {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Add an agent; it can be talked to once its card is reviewed and accepted
    #[command(
        after_help = "Example:\n  toolgate peer add travel https://travel.example.com\n  toolgate mount review travel --accept-all"
    )]
    Add(Box<Add>),
    /// List agents
    #[command(after_help = "Example:\n  toolgate peer list")]
    List,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Add(add) => add.run(&client, connection.json, Added::Peer).await,
            Self::List => {
                let mut list = client.to::<ListMounts>().send().await?;
                list.mounts.retain(|mount| mount.transport == MountTransport::A2a);
                let columns = [
                    ("NAME", "name"),
                    ("AGENT", "server.name"),
                    ("STATE", "server_state"),
                    ("URL", "url"),
                    ("CHECKED", "checked_at"),
                    ("FAILURE", "failure"),
                ];
                let text = table_of(&list.mounts, &columns);
                Ok(Report::new(list, text))
            }
        }
    }
}
