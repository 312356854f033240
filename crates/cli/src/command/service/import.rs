//! `toolgate service import`: converts an OpenAPI document to a definition, and reports what was lost. Needs no gate.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::service::ServiceVersion;

use super::Failure;
use crate::openapi_import::document::{self, DOCUMENT_LIMIT};
use crate::openapi_import::{Finding, ImportOptions, Imported, Kind, Weight, import, yaml};
use crate::output::{self, Report, align, clean};

/// How many findings of each kind are printed. `--report` writes all.
const SHOWN: usize = 3;
/// The largest definition that a gate accepts, in bytes.
const MAX_DEFINITION: usize = 32 * 1024 * 1024;

#[derive(Subcommand)]
pub(crate) enum Format {
    Openapi(OpenApi),
}

/// Convert an OpenAPI 3.0 or 3.1 document to a definition
///
/// Prints the definition on standard output, and a report of what was omitted or changed on standard error. Safety tiers
/// are proposed from the HTTP methods: review each of them before you apply the definition.
#[derive(Args)]
#[command(after_help = "Example:\n  toolgate service import openapi github.json --service github --output github.yaml")]
pub(crate) struct OpenApi {
    /// Document in JSON or YAML, or - for standard input
    file: PathBuf,
    /// Write the definition to this file, which must not exist; as JSON if its name ends in .json
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write all findings to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Name of the service [default: from the title]
    #[arg(long, value_name = "NAME", value_parser = ServiceName::parse)]
    service: Option<ServiceName>,
    /// Version of the definition [default: version of the document]
    #[arg(long, value_name = "V", value_parser = ServiceVersion::parse)]
    version: Option<ServiceVersion>,
    /// Base URL of the service [default: first server of the document]
    #[arg(long, value_name = "URL", value_parser = BaseUrl::parse)]
    base_url: Option<BaseUrl>,
    /// Omit the schemas of results, for a smaller definition
    #[arg(long)]
    without_returns: bool,
}

impl Format {
    pub(crate) fn run(self, json: bool) -> Result<Report, Failure> {
        let Self::Openapi(openapi) = self;
        openapi.run(json)
    }
}

impl OpenApi {
    fn run(self, json: bool) -> Result<Report, Failure> {
        let place =
            if self.file.as_os_str() == "-" { "standard input".into() } else { self.file.display().to_string() };
        let said = |reason: &dyn std::fmt::Display| Failure::Said(format!("{}: {reason}", clean(&place)));
        let text = text_of(&self.file, &place)?;
        let document = document::parse(&text).map_err(|reason| said(&clean(&reason)))?;
        let options = ImportOptions {
            service: self.service,
            version: self.version,
            base_url: self.base_url,
            without_returns: self.without_returns,
        };
        let imported = import(&document, &options).map_err(|error| said(&error))?;
        let definition = imported.definition.to_json();
        let summary = summary(&imported, definition.to_string().len());
        if let Some(file) = &self.report {
            write(file, &format!("{summary:#}\n"), true)?;
        }
        if !json {
            output::say(&described(&imported, &summary, self.report.is_none()));
        }
        if imported.definition.tools.is_empty() {
            return Err(nothing(&place, summary));
        }
        let is_json = |file: &PathBuf| file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let text = match self.output.as_ref().is_some_and(is_json) {
            true => format!("{definition:#}\n"),
            false => yaml::write(&imported),
        };
        let mut value = summary;
        if let Value::Object(members) = &mut value {
            members.insert("definition".to_owned(), definition);
        }
        let Some(file) = &self.output else { return Ok(Report::new(value, text)) };
        write(file, &text, false)?;
        let (service, version) = (&imported.definition.service, &imported.definition.version);
        let tools = imported.definition.tools.len();
        Ok(Report::new(value, format!("{}: {service} {version}, {tools} tools", clean(&file.display().to_string()))))
    }
}

/// The error for a document without usable operations. It contains the report.
fn nothing(place: &str, mut summary: Value) -> Failure {
    let operations = summary.get("operations").and_then(Value::as_u64).unwrap_or_default();
    let reason = format!("none of the {operations} operations can become a tool; see the report");
    let text = format!("{}: {reason}", clean(place));
    if let Value::Object(members) = &mut summary {
        members.insert("status".to_owned(), json!("failed"));
        members.insert("message".to_owned(), json!(text));
    }
    Failure::Explained { text, body: Box::new(summary) }
}

/// The report as JSON.
fn summary(imported: &Imported, size: usize) -> Value {
    let (counts, findings) = imported.findings.to_json();
    let credentials: Vec<Value> = imported
        .credentials
        .iter()
        .map(|need| {
            json!({"scheme": need.scheme, "auth_type": need.auth_type, "metadata": need.metadata,
                "note": need.note, "operations": need.operations})
        })
        .collect();
    json!({
        "service": imported.definition.service,
        "version": imported.definition.version,
        "operations": imported.operations,
        "tools": imported.definition.tools.len(),
        "bytes": size,
        "credentials": credentials,
        "counts": counts,
        "findings": findings,
    })
}

/// The report as text, with a few findings of each kind.
fn described(imported: &Imported, summary: &Value, hints_at_report: bool) -> String {
    let tools = imported.definition.tools.len();
    let missing = imported.findings.count(Kind::Operation);
    let mut text = format!(
        "{} operations: {tools} tools, {missing} omitted. Safety tiers are proposals from the HTTP methods; review each.\n",
        imported.operations
    );
    for need in &imported.credentials {
        let (kind, metadata) = (need.auth_type.as_str(), &need.metadata);
        let note = if need.note.is_empty() { String::new() } else { format!(" ({})", need.note) };
        let line = format!("Credential for {}: auth_type {kind}, metadata {metadata}{note}", need.scheme);
        text.push_str(&format!("{}\n", clean(&line)));
    }
    if imported.credentials.is_empty() {
        text.push_str("The document declares no authentication that a credential can be created for.\n");
    }
    let findings: Vec<&Finding> = imported.findings.iter().collect();
    let headings = [(Weight::Dropped, "Omitted:"), (Weight::Changed, "Changed:"), (Weight::Confirm, "To review:")];
    for (weight, heading) in headings {
        let of_weight: Vec<&[&Finding]> = findings
            .chunk_by(|one, other| one.kind == other.kind)
            .filter(|kind| kind.first().is_some_and(|finding| finding.kind.weight() == weight))
            .collect();
        if !of_weight.is_empty() {
            text.push_str(&format!("\n{heading}\n{}", of_weight.iter().map(|kind| shown(kind)).collect::<String>()));
        }
    }
    if hints_at_report && !findings.is_empty() {
        text.push_str("\nUse --report FILE to write all findings.\n");
    }
    let size = summary.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    if size > u64::try_from(MAX_DEFINITION).unwrap_or(u64::MAX) {
        text.push_str(&format!(
            "\nThe definition has {size} bytes; a gate accepts at most {MAX_DEFINITION}: remove some tools.\n"
        ));
    }
    text.trim_end().to_owned()
}

/// One kind of findings: number, meaning, and the first few.
fn shown(findings: &[&Finding]) -> String {
    let Some(first) = findings.first() else { return String::new() };
    let count = findings.len();
    let mut text = format!("  {count} {}: {}\n", first.kind.as_str(), first.kind.meaning());
    let places = findings.iter().take(SHOWN).map(|finding| {
        let note: String = finding.note.chars().take(100).collect();
        vec![format!("      {}", clean(&finding.pointer)), clean(&note)]
    });
    text.push_str(&align(places.collect()));
    if count > SHOWN {
        text.push_str(&format!("      and {} more\n", count - SHOWN));
    }
    text
}

fn text_of(file: &Path, place: &str) -> Result<String, Failure> {
    let source: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(file).map_err(|error| Failure::io(place, error))?),
    };
    let mut bytes = Vec::new();
    let limit = u64::try_from(DOCUMENT_LIMIT).unwrap_or(u64::MAX);
    source.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Failure::io(place, error))?;
    if bytes.len() > DOCUMENT_LIMIT {
        return Err(Failure::Said(format!("{place}: longer than {DOCUMENT_LIMIT} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::Said(format!("{place}: not valid UTF-8")))
}

/// Writes a file. An existing definition is not overwritten, because it may have been edited.
fn write(file: &Path, text: &str, replaces: bool) -> Result<(), Failure> {
    let name = file.display().to_string();
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    let options = if replaces { options.create(true).truncate(true) } else { options.create_new(true) };
    let opened = options.open(file);
    let written = opened.and_then(|mut opened| std::io::Write::write_all(&mut opened, text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::Said(format!("{}: already exists; use another name, or remove it first", clean(&name)))
        }
        _ => Failure::io(name, error),
    })
}
