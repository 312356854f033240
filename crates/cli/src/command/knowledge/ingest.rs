//! Ingestion of files and directories.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolgate_api::stores::{DocumentRequest, IngestDocument, IngestedDocument};
use toolgate_model::document::DocumentFormat;

use super::super::Failure;
use super::super::values::typed;
use crate::client::Client;
use crate::output::{self, Report, clean};
use crate::prompt;

/// The maximum depth of directories.
const DEPTH_LIMIT: usize = 16;

#[derive(Args)]
pub(crate) struct Ingest {
    /// Name of the collection
    name: String,
    /// Files, and directories with files that end in .md, .markdown, .txt, .text, .html and .htm
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl Ingest {
    pub(super) async fn run(self, client: &Client, json: bool) -> Result<Report, Failure> {
        let mut files = Vec::new();
        for path in &self.paths {
            collect(path, path.is_dir(), 0, &mut files)?;
        }
        if files.is_empty() {
            return Err(Failure::Said("there are no files of text, Markdown or HTML to ingest".to_owned()));
        }
        let shows_progress = !json && prompt::interactive();
        let mut ingested = Vec::with_capacity(files.len());
        for (number, (path, format)) in files.iter().enumerate() {
            if shows_progress {
                output::say(&format!("[{}/{}] {}", number + 1, files.len(), clean(&path.display().to_string())));
            }
            ingested.push(self.ingest(client, path, *format).await?);
        }
        Ok(report(ingested))
    }

    async fn ingest(&self, client: &Client, path: &Path, format: DocumentFormat) -> Result<IngestedDocument, Failure> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Failure::io(&shown, error))?;
        let body = DocumentRequest {
            id: typed("id", id_of(path))?,
            title: None,
            source: typed("source", &shown).ok(),
            format,
            text,
        };
        Ok(client.to::<IngestDocument>().named(&self.name).body(&body).send().await?)
    }
}

/// The files below a path, in the order of their names.
fn collect(
    path: &Path,
    is_directory: bool,
    depth: usize,
    files: &mut Vec<(PathBuf, DocumentFormat)>,
) -> Result<(), Failure> {
    let failed = |error| Failure::io(path.display().to_string(), error);
    if !is_directory {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match DocumentFormat::of_file(&name) {
            Some(format) => files.push((path.to_owned(), format)),
            // In a directory, other files are left out.
            None if depth > 0 => {}
            None => {
                let reason = format!(
                    "the name of {} does not say that it is text, Markdown or HTML; rename it to end in .txt, .md or .html",
                    clean(&path.display().to_string())
                );
                return Err(Failure::Said(reason));
            }
        }
        return Ok(());
    }
    if depth > DEPTH_LIMIT {
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // Links are not followed: they may lead anywhere.
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() || kind.is_file() {
            collect(&entry.path(), kind.is_dir(), depth + 1, files)?;
        }
    }
    Ok(())
}

/// The path with `:` between its parts, and `_` for what an id cannot have.
fn id_of(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        _ => None,
    });
    let joined = parts.collect::<Vec<_>>().join(":");
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._:@-".contains(letter);
    let id: String = joined.chars().map(|letter| if allowed(letter) { letter } else { '_' }).collect();
    let begin = id.len().saturating_sub(128);
    id.get(begin..).unwrap_or(&id).to_owned()
}

fn report(ingested: Vec<IngestedDocument>) -> Report {
    let chunks: u64 = ingested.iter().map(|one| one.document.chunks).sum();
    let replaced = ingested.iter().filter(|one| one.replaced).count();
    let documents = u64::try_from(ingested.len()).unwrap_or(u64::MAX);
    let (documents, chunks) = (number_of(documents, "document"), number_of(chunks, "chunk"));
    let mut text = format!("{documents} ingested in {chunks}; {replaced} replaced.");
    let suspicious: Vec<_> = ingested.iter().filter(|one| one.document.removed.is_suspicious()).collect();
    for one in &suspicious {
        let removed = one.document.removed;
        text.push_str(&format!(
            "\n{}: {} and {} were removed.",
            clean(&one.document.id),
            number_of(removed.hidden_elements.into(), "hidden element"),
            number_of(removed.hidden_characters.into(), "hidden character")
        ));
    }
    let aside = match suspicious.len() {
        0 => "",
        _ => "Hidden text is often planted for models: look at these documents before you trust their sources.",
    };
    Report::new(json!({"documents": ingested}), text).with_aside(aside)
}

fn number_of(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_paths() {
        assert_eq!(id_of(Path::new("docs/refunds & returns.md")), "docs:refunds___returns.md");
        assert_eq!(id_of(Path::new("./../a.txt")), "a.txt");
        assert_eq!(id_of(Path::new(&"x/".repeat(200))).len(), 128);
    }
}
