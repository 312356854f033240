//! `toolgate apply`, `diff` and `export`: workflows as files.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_api::workflows::{AppliedWorkflow, ApplyRequest, ApplyWorkflow, ExportQuery, ExportWorkflow};
use toolgate_model::workflow::{DeclaredPolicies, FILE_LIMIT, Workflow};

use super::values::typed_option;
use super::{Connection, Failure, policy};
use crate::client::{Client, ClientError};
use crate::output::{Report, clean, say};
use crate::prompt;

mod report;

/// Apply a workflow file: agents, grants, services, policies and a plan, all or nothing
///
/// The gate is changed to match the file: what is missing is created, what differs is changed, and what
/// an earlier version of the file created and this one does not declare is revoked. Applying a file twice changes nothing.
/// Changes that widen access need --allow-widening.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate apply quarterly-compliance.yaml --allow-widening")]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Workflow file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Allow changes that widen access
    #[arg(long)]
    allow_widening: bool,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Show what applying a workflow file would change
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate diff quarterly-compliance.yaml")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Workflow file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Write the present state as a workflow file, without secrets
///
/// Applying the file changes nothing.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate export --workflow quarterly-compliance > quarterly-compliance.yaml")]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Only this workflow [default: everything in the tenant that a file can declare]
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Write to this new file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Apply {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let name = shown(&self.file);
        let mut request = request(&self.file)?;
        request.allow_widening = self.allow_widening;
        let client = self.connection.client()?;
        if self.dry_run {
            return compare(&client, &name, request).await;
        }
        if !self.yes && prompt::interactive() && self.file.as_os_str() != "-" {
            request.dry_run = true;
            let planned = send(&client, &name, &request).await?;
            if !planned.changes.is_empty() {
                say(&report::changes(&name, &planned));
                prompt::confirm("this changes the gate", false)?;
            }
            request.dry_run = false;
        }
        Ok(report::applied(&name, send(&client, &name, &request).await?))
    }
}

impl Diff {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let request = request(&self.file)?;
        compare(&self.connection.client()?, &shown(&self.file), request).await
    }
}

impl Export {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let query = ExportQuery { workflow: typed_option("workflow", self.workflow.clone())? };
        let exported = self.connection.client()?.to::<ExportWorkflow>().query(&query).send().await?;
        let Some(path) = &self.out else {
            let text = exported.document.trim_end().to_owned();
            return Ok(Report::new(exported, text));
        };
        let failed = |error| Failure::io(shown(path), error);
        let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        file.write_all(exported.document.as_bytes()).map_err(failed)?;
        Ok(Report::new(exported, format!("{} was written.", shown(path))))
    }
}

async fn compare(client: &Client, name: &str, mut request: ApplyRequest) -> Result<Report, Failure> {
    request.dry_run = true;
    let planned = send(client, name, &request).await?;
    let text = report::changes(name, &planned);
    Ok(Report::new(planned, text))
}

async fn send(client: &Client, name: &str, request: &ApplyRequest) -> Result<AppliedWorkflow, Failure> {
    let sent = client.to::<ApplyWorkflow>().body(request).send().await;
    sent.map_err(|error| match error {
        ClientError::Refused { .. } => report::explained(name, error),
        other => Failure::Client(other),
    })
}

fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { clean(&path.display().to_string()) }
}

/// The file, with the policies of the directory that it names.
fn request(path: &Path) -> Result<ApplyRequest, Failure> {
    let document = text_of(path)?;
    let policies = Workflow::read(&document).workflow.and_then(|workflow| workflow.policies);
    let policy_files = match policies.map(|policies| policies.value) {
        Some(DeclaredPolicies::Directory(directory)) => {
            // Relative to the file, wherever the command is run.
            let beside = path.parent().filter(|_| path.as_os_str() != "-").unwrap_or_else(|| Path::new("."));
            Some(policy::files_of(&beside.join(directory))?)
        }
        _ => None,
    };
    Ok(ApplyRequest { document, policy_files, dry_run: false, allow_widening: false })
}

fn text_of(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return Ok(prompt::standard_input()?.as_str().to_owned());
    }
    let name = shown(path);
    let limit = u64::try_from(FILE_LIMIT).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path).map_err(|error| Failure::io(&name, error))?;
    let read = opened.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Failure::io(&name, error))?;
    if u64::try_from(read).unwrap_or(u64::MAX) > limit {
        return Err(Failure::Said(format!("{name}: longer than {limit} bytes; split it into several files")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Failure::Said(format!("{name}:{line}:{column}: not valid UTF-8"))
    })
}
