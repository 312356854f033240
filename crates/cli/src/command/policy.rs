//! `toolgate policy`: policy sets, from a directory of files to active versions and back.

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

/// Check, test, compare, apply and roll back policies
///
/// A policy set is a directory with rules in *.cedar files and tests in *.test.yaml files.
#[derive(Args)]
pub(crate) struct Policy {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Write the starter set to a directory
    #[command(after_help = "Example:\n  toolgate policy init policies")]
    Init {
        /// Directory of the policy set
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Check a policy set; exit status 1 if there are problems
    #[command(after_help = "Example:\n  toolgate policy check policies")]
    Check {
        /// Directory of the policy set
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Run the tests of a policy set; exit status 1 if one fails
    #[command(after_help = "Example:\n  toolgate policy test policies")]
    Test {
        /// Directory of the policy set
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Compare a policy set with the active version
    #[command(after_help = "Example:\n  toolgate policy diff policies")]
    Diff {
        /// Directory of the policy set
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Activate a policy set on all replicas, as a new version
    ///
    /// At a terminal, shows which rules change and asks for confirmation.
    #[command(
        after_help = "Example:\n  toolgate policy apply policies --note 'exec asks'\n  toolgate policy apply policies --expected 7 --yes"
    )]
    Apply(Apply),
    /// Activate the policies of an earlier version again, as a new version
    #[command(after_help = "Example:\n  toolgate policy rollback 6")]
    Rollback {
        /// Earlier version
        version: u64,
        /// Fail unless this is the active version
        #[arg(long, value_name = "VERSION")]
        expected: Option<u64>,
    },
    /// List versions, newest first
    #[command(after_help = "Example:\n  toolgate policy list")]
    List(Paging),
    /// Show a version, or write its files
    #[command(after_help = "Example:\n  toolgate policy show\n  toolgate policy show 6 --out earlier")]
    Show {
        /// Version [default: the active one]
        version: Option<u64>,
        /// Write its files to this directory; existing files are not overwritten
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print the Cedar schema of what rules can read
    #[command(after_help = "Example:\n  toolgate policy schema > toolgate.cedarschema")]
    Schema,
    /// Show what rules in shadow mode would have changed
    #[command(after_help = "Example:\n  toolgate policy shadow --since 7d")]
    Shadow {
        /// Start: a duration ago, such as 7d, 12h or 30m, or a time
        #[arg(long, default_value = "7d", value_parser = Since::parse)]
        since: Since,
    },
    /// Enforce a rule that is in shadow mode
    #[command(after_help = "Example:\n  toolgate policy promote exec-asks --write policies")]
    Promote(Promote),
    /// Evaluate recorded calls with a policy set, and list those with another verdict
    #[command(after_help = "Example:\n  toolgate policy simulate policies --since 7d")]
    Simulate {
        /// Directory of the policy set
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Start: a duration ago, such as 7d, 12h or 30m, or a time
        #[arg(long, default_value = "7d", value_parser = Since::parse)]
        since: Since,
    },
}

/// The files of a policy set, as they are sent.
pub(super) fn files_of(folder: &Path) -> Result<toolgate_api::policies::PolicyFiles, Failure> {
    Ok(folder::to_request(&folder::read(folder)?))
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            // Needs neither a gate nor a key.
            Self::Init { folder } => init(&folder),
            Self::Check { folder } => {
                let found = look_at(connection, &folder).await?;
                Ok(findings::checked(&folder, &found))
            }
            Self::Test { folder } => {
                let found = look_at(connection, &folder).await?;
                Ok(findings::tested(&folder, &found))
            }
            Self::Diff { folder } => {
                let files = folder::read(&folder)?;
                let active = Active::fetch(&connection.client()?).await?;
                let difference = compare(&active, &folder, &files);
                let mut value = difference.to_json();
                if let Value::Object(members) = &mut value {
                    members.insert("version".to_owned(), json!(active.policies.version));
                }
                let same = format!("No difference from {}.", active.name());
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
    let text = format!("{}\nReview them, then run: toolgate policy check {place}", lines.join("\n"));
    Ok(Report::new(json!({"written": names}), text))
}

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
