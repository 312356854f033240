//! The versions of the policies: reading them, taking them away as files, going back to one.

use std::path::Path;

use serde_json::{Value, json};

use super::folder::{self, SetFile};
use crate::client::Client;
use crate::command::Failure;
use crate::output::{Report, at, clean, details, plain, table};

/// The policies that are active.
pub(super) struct Active {
    /// Their version; 0 where there are none.
    pub(super) version: u64,
    /// Their files.
    pub(super) files: Vec<SetFile>,
    /// What the gate says about them.
    pub(super) answer: Value,
}

impl Active {
    /// Asks the gate for them.
    pub(super) async fn fetch(client: &Client) -> Result<Self, Failure> {
        let answer = client.get("/api/v1/policies").await?;
        match at(&answer, "version").as_u64() {
            None => Ok(Self { version: 0, files: Vec::new(), answer }),
            Some(version) => {
                let whole = fetch(client, version).await?;
                Ok(Self { version, files: folder::from_json(at(&whole, "files")), answer })
            }
        }
    }

    /// In a word or two.
    pub(super) fn name(&self) -> String {
        if self.version == 0 { "no policies".to_owned() } else { format!("version {}", self.version) }
    }
}

/// Shows a version, the active one unless said otherwise, and writes its files where a folder is named.
pub(super) async fn show(client: &Client, version: Option<u64>, out: Option<&Path>) -> Result<Report, Failure> {
    let version = match version {
        Some(version) => version,
        None => {
            let answer = client.get("/api/v1/policies").await?;
            match at(&answer, "version").as_u64() {
                Some(version) => version,
                None if out.is_some() => return Err(Failure::Said("there are no policies to write".to_owned())),
                None => {
                    return Ok(Report::new(answer, "There are no policies; begin with `toolgate policy init DIR`."));
                }
            }
        }
    };
    let answer = fetch(client, version).await?;
    let files = folder::from_json(at(&answer, "files"));
    match out {
        None => Ok(described(answer)),
        Some(out) => {
            let texts = files.iter().map(|file| (file.name.as_str(), file.text.as_str()));
            let written = folder::write_new(out, texts)?;
            let place = clean(&out.display().to_string());
            let text = format!("Version {version} was written to {place}: {} files.", written.len());
            let written: Vec<_> = written.iter().map(|path| path.display().to_string()).collect();
            Ok(Report::new(json!({"version": version, "written": written}), text))
        }
    }
}

/// A sentence about a version that was just made.
pub(super) fn made(answer: Value, how: &str) -> Report {
    let text = format!("Version {} is active now{how}.", plain(at(&answer, "version")));
    Report::new(answer, text)
}

async fn fetch(client: &Client, version: u64) -> Result<Value, Failure> {
    Ok(client.get(&format!("/api/v1/policies/versions/{version}")).await?)
}

fn described(answer: Value) -> Report {
    let members = ["version", "digest", "note", "applied_by", "created_at"];
    let head: serde_json::Map<String, Value> =
        members.iter().map(|name| ((*name).to_owned(), at(&answer, name).clone())).collect();
    let rules = at(&answer, "rules").as_array().map(Vec::as_slice).unwrap_or_default();
    let columns = [
        ("RULE", "id"),
        ("EFFECT", "effect"),
        ("IN SHADOW", "shadow"),
        ("FILE", "file"),
        ("DESCRIPTION", "description"),
        ("REASON", "reason"),
    ];
    let names: Vec<String> = folder::from_json(at(&answer, "files")).iter().map(|file| clean(&file.name)).collect();
    let text = format!(
        "{}\n{}\nFiles: {}; --out DIR writes them.\n",
        details(&Value::Object(head)),
        table(rules, &columns),
        names.join(", ")
    );
    Report::new(answer, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_shown_with_its_rules_and_the_names_of_its_files() {
        let rule = json!({"id": "no-exec", "file": "a.cedar", "effect": "ask", "shadow": true, "reason": null});
        let files = json!([{"name": "a.cedar", "text": "secret of the trade"}, {"name": "a.test.yaml", "text": ""}]);
        let answer = json!({"version": 3, "digest": "ab", "note": null, "rules": [rule], "files": files});
        let text = described(answer).text;
        assert!(text.contains("version:     3\n"), "{text}");
        assert!(text.contains("no-exec  ask     yes        a.cedar  -            -\n"), "{text}");
        assert!(text.ends_with("Files: a.cedar, a.test.yaml; --out DIR writes them.\n"), "{text}");
        assert!(!text.contains("secret"));
    }
}
