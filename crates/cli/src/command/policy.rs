//! `toolgate policy`: the life of a policy set, from a folder of files to what is in force and back.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate_api::parameters;
use toolgate_api::policies::{
    CheckPolicies, CheckedPolicies, DraftRequest, ListPolicyVersions, PolicyVersionPage, RollBackPolicies,
    RollbackRequest, ShadowQuery, ShowPolicySchema, ShowShadowReport, SimulationRequest,
};

use self::change::{Apply, Promote, compare};
use self::versions::Active;
use super::paging::{Paging, Shown};
use super::values::Since;
use super::{Connection, Failure};
use crate::client::Client;
use crate::output::{Report, clean, clean_lines};
use crate::starter_policies;

mod change;
mod difference;
mod evidence;
mod findings;
mod folder;
mod rule_text;
mod versions;

/// Write, check, test, compare, apply and take back policies
///
/// A policy set is a folder: *.cedar files with rules, *.test.yaml files with what the rules must say.
#[derive(Args)]
pub(crate) struct Policy {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Write the starter set into a folder, to begin with
    #[command(after_help = "Example:\n  toolgate policy init policies")]
    Init {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Tell what is wrong with a folder; exit status 1 where something is
    #[command(after_help = "Example:\n  toolgate policy check policies")]
    Check {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Run the tests of a folder; exit status 1 where one fails
    #[command(after_help = "Example:\n  toolgate policy test policies")]
    Test {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Show what tells a folder from the active policies
    #[command(after_help = "Example:\n  toolgate policy diff policies")]
    Diff {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Make a folder the active policies, on all replicas at once
    ///
    /// At a terminal it first shows which rules come, go and change, and asks.
    #[command(
        after_help = "Example:\n  toolgate policy apply policies --note 'exec asks'\n  toolgate policy apply policies --expected 7 --yes"
    )]
    Apply(Apply),
    /// Make the policies of an earlier version active again, as a new version
    #[command(after_help = "Example:\n  toolgate policy rollback 6")]
    Rollback {
        /// The earlier version
        version: u64,
        /// Only if this version is still the active one
        #[arg(long, value_name = "VERSION")]
        expected: Option<u64>,
    },
    /// List the versions, newest first
    #[command(after_help = "Example:\n  toolgate policy list")]
    List(Paging),
    /// Show a version, or write its files
    #[command(after_help = "Example:\n  toolgate policy show\n  toolgate policy show 6 --out earlier")]
    Show {
        /// Which; the active one unless said otherwise
        version: Option<u64>,
        /// Write its files into this folder, over none that is there
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print what rules can speak of, as a Cedar schema
    #[command(after_help = "Example:\n  toolgate policy schema > toolgate.cedarschema")]
    Schema,
    /// Show what rules in shadow would have changed
    #[command(after_help = "Example:\n  toolgate policy shadow --since 7d")]
    Shadow {
        /// From how long ago on, as 7d, 12h or 30m, or from this time on
        #[arg(long, default_value = "7d", value_parser = Since::parse)]
        since: Since,
    },
    /// Put a rule in force that was in shadow
    #[command(after_help = "Example:\n  toolgate policy promote exec-asks --write policies")]
    Promote(Promote),
    /// Judge the calls in the log by a folder, and list those that it would judge otherwise
    #[command(after_help = "Example:\n  toolgate policy simulate policies --since 7d")]
    Simulate {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// From how long ago on, as 7d, 12h or 30m, or from this time on
        #[arg(long, default_value = "7d", value_parser = Since::parse)]
        since: Since,
    },
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            // This one needs no gate, and so no key.
            Self::Init { folder } => init(&folder),
            Self::Check { folder } => {
                let answer = look_at(connection, &folder).await?;
                Ok(findings::checked(&folder, &answer))
            }
            Self::Test { folder } => {
                let answer = look_at(connection, &folder).await?;
                Ok(findings::tested(&folder, &answer))
            }
            Self::Diff { folder } => {
                let files = folder::read(&folder)?;
                let active = Active::fetch(&connection.client()?).await?;
                let difference = compare(&active, &folder, &files);
                let mut value = difference.to_json();
                if let Value::Object(members) = &mut value {
                    members.insert("version".to_owned(), json!(active.policies.version));
                }
                let same = format!("These are the policies of {}.", active.name());
                Ok(Report::new(value, if difference.is_empty() { same } else { difference.text() }))
            }
            Self::Apply(apply) => apply.run(&connection.client()?).await,
            Self::Rollback { version, expected } => {
                let body = RollbackRequest { version, expected_version: expected };
                let made = connection.client()?.to::<RollBackPolicies>().body(&body).send().await?;
                Ok(versions::made(&made, &format!(", with the files of version {version}")))
            }
            Self::List(paging) => list(&connection.client()?, &paging).await,
            Self::Show { version, out } => versions::show(&connection.client()?, version, out.as_deref()).await,
            Self::Schema => {
                let schema = connection.client()?.to::<ShowPolicySchema>().send().await?;
                let text = clean_lines(&schema.schema);
                Ok(Report::new(schema, text))
            }
            Self::Shadow { since } => {
                let since = since.now();
                let client = connection.client()?;
                let report = client.to::<ShowShadowReport>().query(&ShadowQuery { since }).send().await?;
                Ok(evidence::shadow(since, &report))
            }
            Self::Promote(promote) => promote.run(&connection.client()?).await,
            Self::Simulate { folder, since } => {
                let since = since.now();
                let body = SimulationRequest { files: folder::to_request(&folder::read(&folder)?), since };
                let client = connection.client()?;
                let simulation = evidence::simulate(&client, &body).await;
                Ok(evidence::simulation(since, &simulation.map_err(|error| findings::explained(&folder, error))?))
            }
        }
    }
}

fn init(folder: &Path) -> Result<Report, Failure> {
    let written = folder::write_new(folder, starter_policies::FILES.iter().copied())?;
    let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    let place = clean(&folder.display().to_string());
    let lines: Vec<String> = names.iter().map(|name| clean(name)).collect();
    let text = format!("{}\nRead them, then: toolgate policy check {place}", lines.join("\n"));
    Ok(Report::new(json!({"written": names}), text))
}

/// What the gate finds about a folder.
async fn look_at(connection: &Connection, folder: &Path) -> Result<CheckedPolicies, Failure> {
    let body = DraftRequest { files: folder::to_request(&folder::read(folder)?) };
    let checked = connection.client()?.to::<CheckPolicies>().body(&body).send().await;
    checked.map_err(|error| findings::explained(folder, error))
}

async fn list(client: &Client, paging: &Paging) -> Result<Report, Failure> {
    let columns = [
        ("VERSION", "version"),
        ("APPLIED", "created_at"),
        ("BY", "applied_by"),
        ("DIGEST", "digest"),
        ("NOTE", "note"),
    ];
    let shown = Shown { name: "versions", columns: &columns };
    let query = |limit, cursor| Ok(parameters::Paging { limit, cursor });
    let page = |page: PolicyVersionPage| (page.versions, page.next_cursor);
    paging.fetch::<ListPolicyVersions, _>(client, None, query, page, shown).await
}
