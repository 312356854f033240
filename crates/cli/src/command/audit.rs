//! `toolgate audit`: reading, proving, exporting and verifying the audit log.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_api::audit::{EventPage, EventQuery, ListEvents, LogHead, ProofQuery, Prove, ShowLogHead};
use toolgate_model::audit_export::verify;
use toolgate_model::checkpoint::PublicKey;

use self::export::Export;
use super::paging::{Paging, Shown};
use super::typos;
use super::values::{Since, typed_option};
use super::{Connection, Failure};
use crate::client::Client;
use crate::output::Report;

mod export;
mod feed;
mod output_writer;
mod position;

/// Read, prove, export and verify the audit log
#[derive(Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List events, oldest first
    #[command(after_help = "Example:\n  toolgate audit events --type grant.revoked --since 2026-01-01T00:00:00Z")]
    Events(Box<Events>),
    /// Show the newest signed head of the log, and the public key
    #[command(after_help = "Example:\n  toolgate audit head --json")]
    Head,
    /// Fetch a proof that an event is in the log, or that an earlier log is a prefix of a later one
    #[command(
        after_help = "Example:\n  toolgate audit proof --sequence 17\n  toolgate audit proof --first 100 --second 200"
    )]
    Proof {
        /// Sequence of the event
        #[arg(long, value_name = "N", conflicts_with_all = ["first", "second"], required_unless_present = "first")]
        sequence: Option<u64>,
        /// Size of the log [default: the newest]
        #[arg(long, value_name = "N", requires = "sequence")]
        size: Option<u64>,
        /// Size of the earlier log
        #[arg(long, value_name = "N")]
        first: Option<u64>,
        /// Size of the later log [default: the newest]
        #[arg(long, value_name = "N", requires = "first")]
        second: Option<u64>,
    },
    /// Export the log: for offline verification, or as lines for a SIEM
    ///
    /// The verifiable export is the whole log with its proofs. The other formats are one line of JSON per event; they can
    /// continue an earlier export and follow the log.
    #[command(
        after_help = "Example:\n  toolgate audit export -o audit.jsonl\n  toolgate audit export --format ocsf --follow --state siem.state"
    )]
    Export(Box<Export>),
    /// Verify an export, without a gate
    ///
    /// Detects changed, removed, reordered and inserted events, and reports the first one. The public key must not come from
    /// the export: save it from `toolgate audit head` when the gate is set up.
    #[command(
        after_help = "Example:\n  toolgate audit verify audit.jsonl --public-key toolgate+1a2b3c4d+AbCd...\n  toolgate audit verify audit.jsonl --public-key audit.pub"
    )]
    Verify {
        /// Export file, or - for standard input
        file: PathBuf,
        /// Public key of the log, or a file that contains it
        #[arg(long, value_name = "KEY|FILE")]
        public_key: String,
    },
}

#[derive(Args)]
pub(crate) struct Events {
    /// Only events of this type
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
    /// Only events caused by this principal
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Only events about this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only events of this intent
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// Only events of this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only events since this time, or since a duration ago, such as 7d or 12h
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    since: Option<Since>,
    /// Only events before this time, or before a duration ago
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    until: Option<Since>,
    #[command(flatten)]
    paging: Paging,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            Self::Verify { file, public_key } => verify_export(&file, &public_key),
            Self::Events(events) => events.run(&connection.client()?).await,
            Self::Head => Ok(head(&connection.client()?.to::<ShowLogHead>().send().await?)),
            Self::Proof { sequence, size, first, second } => {
                let query = ProofQuery { sequence, size, first, second };
                Ok(Report::details(connection.client()?.to::<Prove>().query(&query).send().await?))
            }
            Self::Export(export) => export.run(&connection.client()?).await,
        }
    }
}

impl Events {
    async fn run(self, client: &Client) -> Result<Report, Failure> {
        let (since, until) = (self.since.map(Since::now), self.until.map(Since::now));
        let query = |limit, cursor| {
            Ok(EventQuery {
                kind: self.r#type.clone(),
                run_id: None,
                tool: None,
                actor: typed_option("actor", self.actor.as_ref())?,
                agent_id: typed_option("agent_id", self.agent.as_ref())?,
                intent_id: typed_option("intent_id", self.intent.as_ref())?,
                task_id: typed_option("task_id", self.task.as_ref())?,
                since,
                until,
                limit,
                cursor,
            })
        };
        let columns =
            [("SEQUENCE", "sequence"), ("TIME", "timestamp"), ("TYPE", "type"), ("ACTOR", "actor"), ("DATA", "data")];
        let shown = Shown { name: "events", columns: &columns };
        let page = |page: EventPage| (page.events, page.next_cursor);
        let report = self.paging.fetch::<ListEvents, _>(client, None, query, page, shown).await?;
        typos::warn_of_empty(client, &report, self.agent.as_deref(), None).await;
        Ok(report)
    }
}

/// The checkpoint has several lines.
fn head(head: &LogHead) -> Report {
    let mut members = json!(head);
    if let Some(members) = members.as_object_mut() {
        members.remove("checkpoint");
    }
    let text = format!("{}\n{}", crate::output::details(&members), crate::output::clean_lines(&head.checkpoint));
    Report::new(head, text)
}

fn verify_export(file: &Path, public_key: &str) -> Result<Report, Failure> {
    let key = read_public_key(public_key)?;
    let reader: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(file).map_err(|error| Failure::io(file.display().to_string(), error))?)
    };
    let verified = verify(BufReader::new(reader), &key).map_err(|error| Failure::NotVerified(Box::new(error)))?;
    let text = format!(
        "Verified: all {} events of tenant {} up to {} are present, unchanged and in order.\nRoot hash:  {}\nSigned by:  {key}",
        verified.size, verified.tenant, verified.time, verified.root
    );
    let value = json!({
        "verified": true,
        "tenant_id": verified.tenant,
        "size": verified.size,
        "root_hash": verified.root.to_string(),
        "timestamp": verified.time,
        "public_key": key.to_string(),
    });
    Ok(Report::new(value, text))
}

/// A key, or a file that contains it.
fn read_public_key(given: &str) -> Result<PublicKey, Failure> {
    let not_a_key = match PublicKey::parse(given) {
        Ok(key) => return Ok(key),
        Err(error) => error,
    };
    let mut text = String::new();
    match File::open(given) {
        Ok(file) => {
            file.take(4096).read_to_string(&mut text).map_err(|error| Failure::io(given, error))?;
            PublicKey::parse(&text).map_err(|error| Failure::Said(format!("{given}: {error}")))
        }
        Err(_) => Err(Failure::Said(format!("--public-key is neither a key nor a file: {not_a_key}"))),
    }
}
