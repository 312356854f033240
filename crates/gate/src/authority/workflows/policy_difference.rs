//! The difference between two sets of policy files.

use std::collections::BTreeSet;

use toolgate_model::guard::PolicyFile;

/// The files that differ. Rules only forbid, so a change that may have removed one widens.
pub(super) fn policy_differences(before: &[PolicyFile], after: &[PolicyFile]) -> (Vec<String>, Vec<String>) {
    let text =
        |files: &[PolicyFile], name: &str| files.iter().find(|file| file.name == name).map(|file| file.text.clone());
    let names: BTreeSet<&str> = before.iter().chain(after).map(|file| file.name.as_str()).collect();
    let (mut details, mut widens) = (Vec::new(), Vec::new());
    for name in names {
        let is_rule = name.ends_with(".cedar");
        match (text(before, name), text(after, name)) {
            (Some(old), Some(new)) if old == new => {}
            (None, Some(_)) => details.push(format!("adds {name}")),
            // Rules at the end leave those before them as they were.
            (Some(old), Some(new)) => {
                details.push(format!("changes {name}"));
                if is_rule && !new.starts_with(&old) {
                    widens.push(format!("changes or removes rules in {name}"));
                }
            }
            (_, None) => {
                details.push(format!("removes {name}"));
                if is_rule {
                    widens.push(format!("removes the rules in {name}"));
                }
            }
        }
    }
    (details, widens)
}
