//! Versions of the policies.

use std::path::Path;

use serde_json::json;
use toolgate_api::policies::{
    ActivePolicies, PolicyVersionFiles, PolicyVersionNumber, PolicyVersionRules, ShowPolicies, ShowPolicyVersion,
};
use toolgate_api::reading::Object;

use super::folder::{self, SetFile};
use crate::client::Client;
use crate::command::Failure;
use crate::output::{Report, clean, details, table_of};

pub(super) struct Active {
    /// 0 if no policies were ever applied.
    pub(super) version: u64,
    pub(super) files: Vec<SetFile>,
    pub(super) policies: ActivePolicies,
}

impl Active {
    pub(super) async fn fetch(client: &Client) -> Result<Self, Failure> {
        let policies = client.to::<ShowPolicies>().send().await?;
        match policies.version {
            None => Ok(Self { version: 0, files: Vec::new(), policies }),
            Some(version) => {
                let whole = fetch(client, version).await?;
                Ok(Self { version: version.0, files: folder::of_version(whole.files), policies })
            }
        }
    }

    pub(super) fn name(&self) -> String {
        if self.version == 0 { "no policies".to_owned() } else { format!("version {}", self.version) }
    }
}

pub(super) async fn show(client: &Client, version: Option<u64>, out: Option<&Path>) -> Result<Report, Failure> {
    let version = match version {
        Some(version) => PolicyVersionNumber(version),
        None => {
            let policies = client.to::<ShowPolicies>().send().await?;
            match policies.version {
                Some(version) => version,
                None if out.is_some() => {
                    return Err(Failure::Said("no policies are active; there is nothing to write".to_owned()));
                }
                None => {
                    return Ok(Report::new(
                        policies,
                        "No policies are active; create some with `toolgate policy init DIR`.",
                    ));
                }
            }
        }
    };
    let whole = fetch(client, version).await?;
    match out {
        None => Ok(described(&whole)),
        Some(out) => {
            let files = folder::of_version(whole.files);
            let texts = files.iter().map(|file| (file.name.as_str(), file.text.as_str()));
            let written = folder::write_new(out, texts)?;
            let place = clean(&out.display().to_string());
            let text = format!("Wrote version {version} to {place}: {} files.", written.len());
            let written: Vec<_> = written.iter().map(|path| path.display().to_string()).collect();
            Ok(Report::new(json!({"version": version, "written": written}), text))
        }
    }
}

pub(super) fn made(made: &PolicyVersionRules, how: &str) -> Report {
    Report::new(made, format!("Version {} is now active{how}.", made.version.version))
}

async fn fetch(client: &Client, version: PolicyVersionNumber) -> Result<PolicyVersionFiles, Failure> {
    Ok(client.to::<ShowPolicyVersion>().at(&version).send().await?)
}

fn described(whole: &PolicyVersionFiles) -> Report {
    let columns = [
        ("RULE", "id"),
        ("EFFECT", "effect"),
        ("IN SHADOW", "shadow"),
        ("FILE", "file"),
        ("DESCRIPTION", "description"),
        ("REASON", "reason"),
    ];
    let names: Vec<String> = whole.files.0.iter().map(|Object(file)| clean(&file.name)).collect();
    let text = format!(
        "{}\n{}\nFiles: {}; write them with --out DIR.\n",
        details(&json!(whole.version.version)),
        table_of(&whole.version.rules, &columns),
        names.join(", ")
    );
    Report::new(whole, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_shown_with_its_rules_and_the_names_of_its_files() {
        let rule = json!({
            "id": "no-exec", "file": "a.cedar", "effect": "ask", "shadow": true, "reason": null, "description": null,
        });
        let files = json!([{"name": "a.cedar", "text": "secret of the trade"}, {"name": "a.test.yaml", "text": ""}]);
        let whole = json!({
            "version": 3, "digest": "ab", "note": null, "applied_by": "ann", "created_at": "2026-01-01T00:00:00Z",
            "rules": [rule], "files": files,
        });
        let text = described(&serde_json::from_value(whole).unwrap()).text;
        assert!(text.contains("version:     3\n"), "{text}");
        assert!(text.contains("no-exec  ask     yes        a.cedar  -            -\n"), "{text}");
        assert!(text.ends_with("Files: a.cedar, a.test.yaml; write them with --out DIR.\n"), "{text}");
        assert!(!text.contains("secret"));
    }
}
