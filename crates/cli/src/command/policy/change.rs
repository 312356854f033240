//! Changes of the active policies: `policy apply` and `policy promote`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use toolgate_api::policies::{ApplyPolicies, PoliciesRequest, PromotePolicy, PromoteRequest};

use super::difference::Difference;
use super::findings::explained;
use super::folder::{self, SetFile};
use super::rule_text::promoted;
use super::versions::{Active, made};
use crate::client::Client;
use crate::command::Failure;
use crate::command::values::typed_option;
use crate::output::{Report, clean, say};
use crate::prompt;

#[derive(Args)]
pub(crate) struct Apply {
    /// Directory of the policy set
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Note for the list of versions
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Fail unless this is the active version; 0 if there is none
    #[arg(long, value_name = "VERSION")]
    expected: Option<u64>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
pub(crate) struct Promote {
    /// Id of the rule
    policy: String,
    /// Also remove shadow mode from the rule in the files of this directory
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

impl Apply {
    /// Shows the changes at a terminal, and activates the policy set.
    pub(super) async fn run(self, client: &Client) -> Result<Report, Failure> {
        let files = folder::read(&self.folder)?;
        let active = Active::fetch(client).await?;
        let difference = compare(&active, &self.folder, &files);
        let mut expected = self.expected;
        if difference.is_empty() && expected.is_none_or(|expected| expected == active.version) {
            let text = format!("The policies are those of {} already; nothing was changed.", active.name());
            return Ok(Report::new(active.policies, text));
        }
        if !self.yes && prompt::interactive() {
            say(&difference.summary());
            prompt::confirm(&format!("this replaces {}", active.name()), false)?;
            // The confirmation is valid only for the version that was compared.
            expected = expected.or(Some(active.version));
        }
        let body = PoliciesRequest {
            files: folder::to_request(&files),
            note: typed_option("note", self.note)?,
            expected_version: expected,
        };
        let made_version = client.to::<ApplyPolicies>().body(&body).send().await;
        Ok(made(&made_version.map_err(|error| explained(&self.folder, error))?, ""))
    }
}

impl Promote {
    pub(super) async fn run(self, client: &Client) -> Result<Report, Failure> {
        // Read before the request, so that an unusable directory is found while nothing has changed.
        let rewritten = match &self.write {
            Some(folder) => Some(rewrite(folder, &self.policy)?),
            None => None,
        };
        let body = PromoteRequest { policy_id: self.policy.clone() };
        let version = client.to::<PromotePolicy>().body(&body).send().await?;
        let mut how = format!("; {} is enforced", clean(&self.policy));
        if let Some((path, text)) = rewritten {
            let name = clean(&path.display().to_string());
            fs::write(&path, text).map_err(|error| {
                Failure::io(format!("{name}: the rule is enforced, but the file was not written"), error)
            })?;
            how.push_str(&format!(", and {name} was updated"));
        }
        Ok(made(&version, &how))
    }
}

pub(super) fn compare(active: &Active, folder: &Path, files: &[SetFile]) -> Difference {
    let place = folder.display().to_string();
    Difference::between(&active.name(), &active.files, place.trim_end_matches('/'), files)
}

/// The file with the rule in shadow mode, and its text without shadow mode.
fn rewrite(folder: &Path, policy: &str) -> Result<(PathBuf, String), Failure> {
    let files = folder::read(folder)?;
    let cedar = files.iter().filter(|file| file.name.ends_with(".cedar"));
    let mut found = cedar.filter_map(|file| Some((folder.join(&file.name), promoted(&file.name, &file.text, policy)?)));
    found.next().ok_or_else(|| {
        let (policy, place) = (clean(policy), clean(&folder.display().to_string()));
        Failure::Said(format!("{place}: no rule `{policy}` in shadow mode; remove --write, or pass another directory"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_promoted_in_the_file_that_has_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.cedar"), "@id(\"a\")\nforbid (principal, action, resource);\n").unwrap();
        let shadowed = "@id(\"b\")\n@mode(\"shadow\")\nforbid (principal, action, resource);\n";
        fs::write(folder.path().join("b.cedar"), shadowed).unwrap();
        let (path, text) = rewrite(folder.path(), "b").unwrap();
        assert_eq!((path, text), (folder.path().join("b.cedar"), shadowed.replace("@mode(\"shadow\")\n", "")));
        for other in ["a", "c", "b:1"] {
            assert!(rewrite(folder.path(), other).unwrap_err().to_string().contains("in shadow mode"), "{other}");
        }
    }
}
