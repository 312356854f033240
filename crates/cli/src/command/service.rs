//! `toolgate service`: the registry of services.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::StatusCode;
use serde_json::{Value, json};
use toolgate_api::services::{ListServices, RemoveService, ReplaceService, ShowService, VersionQuery};
use toolgate_model::service::ServiceDefinition;

use self::documents::Document;
use super::values::typed_option;
use super::{Connection, Failure, typos};
use crate::client::{Client, ClientError};
use crate::output::{Report, at, clean, clean_lines, plain, table};
use crate::prompt;

mod documents;
mod import;

/// Register services and their tools
#[derive(Args)]
pub(crate) struct Service {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Register or update services from files; applying a file twice changes nothing
    ///
    /// A file contains one or more definitions as YAML documents, or one as JSON. All files are read and checked before
    /// anything is changed.
    #[command(after_help = "Example:\n  toolgate service apply payments.yaml shipping.json --dry-run")]
    Apply {
        /// Files with definitions, or - for standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Only print what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// Convert a description in another format to a definition
    Import {
        #[command(subcommand)]
        format: import::Format,
    },
    /// List services and their versions
    #[command(after_help = "Example:\n  toolgate service list")]
    List,
    /// Show the versions and tools of a service
    #[command(
        after_help = "Example:\n  toolgate service show payments --version 2024-01\n  toolgate service show payments --export > payments.yaml"
    )]
    Show {
        /// Name of the service
        name: String,
        /// Only this version
        #[arg(long)]
        version: Option<String>,
        /// Print definitions for `service apply`
        #[arg(long)]
        export: bool,
    },
    /// Remove one or all versions of a service; their tools can no longer be called
    #[command(after_help = "Example:\n  toolgate service remove payments --version 2024-01 --yes")]
    Remove {
        /// Name of the service
        name: String,
        /// Only this version
        #[arg(long)]
        version: Option<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            Self::Apply { files, dry_run } => {
                // All files are read first: an error in the last one must not leave the others applied.
                let documents = documents::read(&files)?;
                apply(&connection.client()?, &documents, dry_run).await
            }
            Self::Import { format } => format.run(connection.json),
            Self::List => Ok(list(json!(connection.client()?.to::<ListServices>().send().await?))),
            Self::Show { name, version, export } => {
                let client = connection.client()?;
                let query = VersionQuery { version: typed_option("version", version)? };
                let shown = match client.to::<ShowService>().named(&name).query(&query).send().await {
                    Ok(shown) => json!(shown),
                    Err(error) => return Err(typos::with_service(&client, error, &name).await),
                };
                Ok(if export { exported(&shown) } else { described(shown) })
            }
            Self::Remove { name, version, yes } => {
                let what = version.as_ref().map_or_else(String::new, |version| format!(" version {version} of"));
                prompt::confirm(
                    &format!("this removes{what} the service {name}; its tools can no longer be called"),
                    yes,
                )?;
                let client = connection.client()?;
                let query = VersionQuery { version: typed_option("version", version)? };
                let removed = match client.to::<RemoveService>().named(&name).query(&query).send().await {
                    Ok(removed) => removed,
                    Err(error) => return Err(typos::with_service(&client, error, &name).await),
                };
                let text = format!("{}: {} versions removed.", removed.service, removed.removed_versions);
                Ok(Report::new(removed, text))
            }
        }
    }
}

async fn apply(client: &Client, documents: &[Document], dry_run: bool) -> Result<Report, Failure> {
    let mut applied = Vec::new();
    let mut lines = Vec::new();
    for document in documents {
        let definition = &document.definition;
        let outcome = apply_one(client, definition, dry_run).await.map_err(|error| about(&document.place, error))?;
        let (service, version) = (&definition.service, &definition.version);
        let tools = definition.tools.len();
        lines.push(format!("{}: {service} {version}, {tools} tools: {outcome}", clean(&document.place)));
        applied.push(
            json!({"file": document.place, "service": service, "version": version, "tools": tools, "outcome": outcome}),
        );
    }
    if dry_run {
        lines.push("Nothing was changed: this was a dry run.".to_owned());
    }
    Ok(Report::new(json!({"applied": applied, "dry_run": dry_run}), lines.join("\n")))
}

pub(super) async fn apply_one(
    client: &Client,
    definition: &ServiceDefinition,
    dry_run: bool,
) -> Result<&'static str, ClientError> {
    let wanted = definition.to_json();
    let known = known(client, definition).await?;
    if known.as_ref() == Some(&wanted) {
        return Ok("unchanged");
    }
    if dry_run {
        return Ok(if known.is_some() { "would be replaced" } else { "would be created" });
    }
    let body = toolgate_api::services::ServiceDefinition(wanted.as_object().cloned().unwrap_or_default());
    let request = client.to::<ReplaceService>().at(&definition.service).body(&body);
    let (status, _) = request.send_for_status().await?;
    Ok(if status == StatusCode::CREATED { "created" } else { "replaced" })
}

/// The registered definition of this version.
async fn known(client: &Client, definition: &ServiceDefinition) -> Result<Option<Value>, ClientError> {
    let query = VersionQuery { version: Some(definition.version.clone()) };
    match client.to::<ShowService>().at(&definition.service).query(&query).send().await {
        Ok(shown) => Ok(versions(&json!(shown)).first().map(without_times)),
        Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the file to a refusal.
fn about(place: &str, error: ClientError) -> Failure {
    let text = format!("{}: {error}", clean(place));
    match error {
        ClientError::Refused { body, .. } => Failure::explained(text, &body),
        other => Failure::Client(other),
    }
}

fn list(reply: Value) -> Report {
    let services = at(&reply, "services").as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Value> = services
        .iter()
        .map(|service| {
            json!({
                "service": at(service, "service"), "version": at(service, "version"), "tools": tools(service).count(),
                "base_url": at(service, "base_url"), "updated_at": at(service, "updated_at"),
                "description": first_line(at(service, "description")),
            })
        })
        .collect();
    let columns = [
        ("SERVICE", "service"),
        ("VERSION", "version"),
        ("TOOLS", "tools"),
        ("BASE URL", "base_url"),
        ("UPDATED", "updated_at"),
        ("DESCRIPTION", "description"),
    ];
    let text = table(&rows, &columns);
    Report::new(reply, text)
}

fn described(reply: Value) -> Report {
    let text: Vec<String> = versions(&reply).iter().map(describe).collect();
    Report::new(reply, text.join("\n"))
}

fn describe(version: &Value) -> String {
    let mut text = format!(
        "{} {}, updated {}\nBase URL: {}\n",
        plain(at(version, "service")),
        plain(at(version, "version")),
        plain(at(version, "updated_at")),
        at(version, "base_url").as_str().map_or_else(|| "set by each credential".to_owned(), clean)
    );
    if let Some(description) = at(version, "description").as_str() {
        text.push_str(&format!("{}\n", clean_lines(description)));
    }
    let rows: Vec<Value> = tools(version)
        .map(|(name, tool)| {
            let request = |member: &str| at(at(tool, "http"), member).as_str().unwrap_or_default();
            json!({
                "tool": name, "scope": at(tool, "scope"), "parameters": parameters(at(tool, "parameters")),
                "request": format!("{} {}", request("method"), request("path")).trim(),
                "cost": at(tool, "estimated_cost_usd"), "description": first_line(at(tool, "description")),
            })
        })
        .collect();
    let columns = [
        ("TOOL", "tool"),
        ("SCOPE", "scope"),
        ("PARAMETERS (* required)", "parameters"),
        ("REQUEST", "request"),
        ("USD", "cost"),
        ("DESCRIPTION", "description"),
    ];
    text.push('\n');
    text.push_str(&table(&rows, &columns));
    text
}

/// JSON documents separated as in YAML, for `service apply`.
fn exported(reply: &Value) -> Report {
    let definitions: Vec<Value> = versions(reply).iter().map(without_times).collect();
    let texts: Vec<String> = definitions.iter().map(|definition| format!("{definition:#}\n")).collect();
    Report::new(json!(definitions), clean_lines(&texts.join("---\n")))
}

/// The names of parameters; required ones first and with a star.
pub(super) fn parameters(schema: &Value) -> String {
    let required = at(schema, "required").as_array().map(Vec::as_slice).unwrap_or_default();
    let properties = at(schema, "properties").as_object();
    let mut names: Vec<(bool, &String)> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| (!required.iter().any(|required| required == name), name))
        .collect();
    names.sort();
    let mark = |(optional, name): (bool, &String)| if optional { name.clone() } else { format!("{name}*") };
    let names: Vec<String> = names.into_iter().map(mark).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// The first line of a description.
pub(super) fn first_line(description: &Value) -> Value {
    description.as_str().and_then(|text| text.lines().next()).map_or(Value::Null, Value::from)
}

fn versions(reply: &Value) -> &[Value] {
    at(reply, "versions").as_array().map(Vec::as_slice).unwrap_or_default()
}

fn tools(service: &Value) -> impl Iterator<Item = (&String, &Value)> {
    at(service, "tools").as_object().into_iter().flatten()
}

/// The definition as it was registered.
fn without_times(version: &Value) -> Value {
    let mut definition = version.clone();
    if let Value::Object(members) = &mut definition {
        members.retain(|name, _| name != "created_at" && name != "updated_at");
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_be_given_comes_first_and_has_a_star() {
        let schema = json!({"properties": {"b": {}, "a": {}, "c": {}}, "required": ["c"]});
        assert_eq!(parameters(&schema), "c*, a, b");
        assert_eq!(parameters(&Value::Null), "-");
    }

    #[test]
    fn an_export_reads_back_as_the_same_definitions() {
        let definition = |version: &str| json!({"service": "shop", "version": version, "tools": {"a": {}}});
        let stored = |version: &str| {
            let mut stored = ServiceDefinition::from_json(&definition(version)).unwrap().to_json();
            stored["created_at"] = json!("2026-01-01T00:00:00.000+00:00");
            stored["updated_at"] = json!("2026-01-01T00:00:00.000+00:00");
            stored
        };
        let report = exported(&json!({"versions": [stored("1"), stored("2")]}));
        let read = documents::parse("export.yaml", &report.text).unwrap();
        let read: Vec<Value> = read.iter().map(|document| document.definition.to_json()).collect();
        assert_eq!(Value::Array(read), report.value);
    }
}
