//! `toolgate mount`: MCP servers behind the gate, and what people decide about the tools that they offer.

use std::fmt::Display;

use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_api::mounts::{
    AcceptMount, AcceptRequest, CheckMount, ListMounts, Mount as Mounted, MountReview, MountTransport, RejectMount,
    RejectRequest, RemoveMount, ReviewMount, ShowMount,
};

pub(crate) use self::add::{Add, Added, mounts_vault};
use super::{Connection, Failure};
use crate::client::{Client, ClientError};
use crate::output::{self, Report, clean, table_of};
use crate::prompt;

mod add;
mod review;

/// Mount MCP servers, and review their tools
#[derive(Args)]
pub(crate) struct Mount {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Mount a server; its tools can be used once they are reviewed and accepted
    #[command(
        after_help = "Example:\n  toolgate mount add docs https://docs.example.com/mcp\n  toolgate mount add github https://api.example.com/mcp --auth-type bearer_token < token.txt\n  toolgate mount add search https://search.example.com/mcp --auth-type api_key --header X-Api-Key"
    )]
    Add(Box<Add>),
    /// List mounts
    #[command(after_help = "Example:\n  toolgate mount list")]
    List,
    /// Show a mount with its tools
    #[command(after_help = "Example:\n  toolgate mount show docs")]
    Show {
        /// Name of the mount
        name: String,
    },
    /// Remove a mount; its tools can no longer be called
    #[command(after_help = "Example:\n  toolgate mount remove docs --yes")]
    Remove {
        /// Name of the mount
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Inspect the server again; changed tools are quarantined
    #[command(after_help = "Example:\n  toolgate mount check docs")]
    Check {
        /// Name of the mount
        name: String,
    },
    /// Show tools that wait for review, and accept or reject them
    ///
    /// Shows findings, and then the difference from the accepted definition. Hidden characters are shown as code points. A
    /// decision covers exactly what is shown: if the server changes it in the meantime, nothing is accepted.
    #[command(
        after_help = "Example:\n  toolgate mount review docs\n  toolgate mount review docs --accept search --reject delete_all\n  toolgate mount review docs --accept-all"
    )]
    Review(Decisions),
}

#[derive(Args)]
pub(crate) struct Decisions {
    /// Name of the mount
    name: String,
    /// Accept this tool, by its name at the server, and the server; may be repeated
    #[arg(long, value_name = "TOOL")]
    accept: Vec<String>,
    /// Accept the server and everything that is shown
    #[arg(long, conflicts_with = "accept")]
    accept_all: bool,
    /// Reject this tool: it stays hidden until its definition changes; may be repeated
    #[arg(long, value_name = "TOOL")]
    reject: Vec<String>,
    /// Accept despite blocking findings, which are recorded in the audit log
    #[arg(long)]
    override_findings: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        let client = connection.client()?;
        match self {
            Self::Add(add) => add.run(&client, connection.json, Added::Server).await,
            Self::List => {
                let list = client.to::<ListMounts>().send().await?;
                let columns = [
                    ("NAME", "name"),
                    ("TRANSPORT", "transport"),
                    ("SERVER", "server.name"),
                    ("STATE", "server_state"),
                    ("ACCEPTED", "accepted"),
                    ("QUARANTINED", "quarantined"),
                    ("CHECKED", "checked_at"),
                    ("FAILURE", "failure"),
                ];
                let text = table_of(&list.mounts, &columns);
                Ok(Report::new(list, text))
            }
            Self::Show { name } => {
                let mount = client.to::<ShowMount>().named(&name).send().await?;
                let text = described(&mount);
                Ok(Report::new(mount, text))
            }
            Self::Remove { name, yes } => {
                prompt::confirm(&format!("this removes the mount {name}; its tools can no longer be called"), yes)?;
                let removed = client.to::<RemoveMount>().named(&name).send().await?;
                let text = format!("{} was removed.", removed.name);
                Ok(Report::new(removed, text))
            }
            Self::Check { name } => {
                let checked = client.to::<CheckMount>().named(&name).send().await?;
                let mut text = match (checked.quarantined, checked.server_changed) {
                    (0, false) => format!("{}: nothing has changed.", checked.mount.summary.name),
                    (tools, server) => {
                        let server = if server { " and what the server says about itself" } else { "" };
                        let were = if tools == 1 && server.is_empty() { "was" } else { "were" };
                        let tools = number_of(tools);
                        format!("{}: {tools}{server} {were} quarantined.", checked.mount.summary.name)
                    }
                };
                if checked.restored > 0 {
                    let are = if checked.restored == 1 { "is" } else { "are" };
                    text.push_str(&format!(" {} {are} listed again as accepted.", number_of(checked.restored)));
                }
                let aside = waiting(&checked.mount);
                Ok(Report::new(checked, text).with_aside(aside))
            }
            Self::Review(decisions) => decisions.run(&client, connection.json).await,
        }
    }
}

impl Decisions {
    async fn run(self, client: &Client, json: bool) -> Result<Report, Failure> {
        let review = client.to::<ReviewMount>().named(&self.name).send().await?;
        let text = review::rendered(&review);
        if !self.accept_all && self.accept.is_empty() && self.reject.is_empty() {
            let aside = if review.server.is_none() && review.tools.is_empty() {
                String::new()
            } else {
                format!("Accept with `toolgate mount review {} --accept-all`, or name tools.", clean(&self.name))
            };
            return Ok(Report::new(review, text).with_aside(aside));
        }
        // Before anything is asked: what is decided about is what is shown here.
        if !json {
            output::print(&text).map_err(|error| Failure::io("standard output", error))?;
        }
        let accepted = self.accepted(&review)?;
        let rejected = review::hashes(&review, &self.reject)?;
        let (accepts, rejects) = (accepted.tools.len(), rejected.len());
        let (accepts_text, rejects_text) = (number_of(accepts), number_of(rejects));
        prompt::confirm(&format!("this accepts {accepts_text} and rejects {rejects_text} of {}", self.name), self.yes)?;
        let mut mount = None;
        if accepted.server.is_some() || !accepted.tools.is_empty() {
            mount = Some(accept(client, &self.name, &accepted).await?);
        }
        if !rejected.is_empty() {
            let body = RejectRequest { tools: rejected };
            mount = Some(client.to::<RejectMount>().named(&self.name).body(&body).send().await?);
        }
        let were = if accepts == 1 { "was" } else { "were" };
        let peer = mount.as_ref().filter(|mount| mount.summary.transport == MountTransport::A2a);
        let text = match peer {
            Some(_) => "the card was accepted.".to_owned(),
            None => format!("{accepts_text} {were} accepted and {rejects} rejected."),
        };
        let aside = mount.as_ref().filter(|_| accepts > 0 || peer.is_some()).map(granting).unwrap_or_default();
        Ok(Report::new(json!({"accepted": accepts, "rejected": rejects, "mount": mount}), text).with_aside(aside))
    }

    fn accepted(&self, review: &MountReview) -> Result<AcceptRequest, Failure> {
        if !self.accept_all && self.accept.is_empty() {
            return Ok(AcceptRequest::default());
        }
        let all: Vec<String> = review.tools.iter().map(|tool| tool.upstream.clone()).collect();
        let names = if self.accept_all {
            all.into_iter().filter(|name| !self.reject.contains(name)).collect()
        } else {
            self.accept.clone()
        };
        Ok(AcceptRequest {
            server: review.server.as_ref().map(|server| server.hash.clone()),
            tools: review::hashes(review, &names)?,
            override_findings: self.override_findings.then_some(true),
        })
    }
}

async fn accept(client: &Client, name: &str, body: &AcceptRequest) -> Result<Mounted, ClientError> {
    client.to::<AcceptMount>().named(name).body(body).send().await
}

fn described(mount: &Mounted) -> String {
    let summary = json!(mount.summary);
    let columns = [("TOOL", "upstream"), ("NAME", "tool"), ("STATE", "state"), ("ACCEPTED HASH", "pinned_hash")];
    format!("{}\n\n{}", output::details(&summary), table_of(&mount.tools, &columns))
}

/// How agents get the tools of a mount.
fn granting(mount: &Mounted) -> String {
    match mount.summary.credential_id {
        Some(credential) if mount.summary.transport == MountTransport::A2a => format!(
            "Let an agent talk to it with `toolgate grant create AGENT {credential} --scope a2a.send --scope a2a.stream \
             --scope a2a.read --scope a2a.cancel`."
        ),
        Some(credential) => format!(
            "Let an agent call them with `toolgate grant create AGENT {credential} --scope TOOL`, with a --scope for each tool."
        ),
        None => format!(
            "To let agents call them, add a credential of service {} with `toolgate credential add`, and grant it.",
            clean(mount.summary.name.as_str())
        ),
    }
}

fn waiting(mount: &Mounted) -> String {
    match mount.summary.quarantined {
        0 => String::new(),
        count => format!(
            "{} {} for a decision; see `toolgate mount review {}`.",
            number_of(count),
            if count == 1 { "waits" } else { "wait" },
            clean(mount.summary.name.as_str())
        ),
    }
}

fn number_of<T: Display + PartialEq + From<u8>>(tools: T) -> String {
    if tools == T::from(1) { format!("{tools} tool") } else { format!("{tools} tools") }
}
