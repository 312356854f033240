//! Differences between policy sets: by rule, and by line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::folder::SetFile;
use super::rule_text::{RuleText, rules};
use crate::command::diff::unified;
use crate::output::{clean, clean_lines};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The rules, by id.
    rules: Vec<RuleChange>,
    /// The files, by name.
    files: Vec<FileChange>,
}

#[derive(Debug, PartialEq, Eq)]
struct RuleChange {
    id: String,
    kind: ChangeKind,
    /// Its effect before and after.
    force: String,
}

#[derive(Debug, PartialEq, Eq)]
struct FileChange {
    name: String,
    kind: ChangeKind,
    /// A unified diff.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    Added,
    Removed,
    Changed,
}

impl ChangeKind {
    fn of<T>(old: Option<T>, new: Option<T>) -> Self {
        match (old, new) {
            (None, _) => Self::Added,
            (Some(_), None) => Self::Removed,
            (Some(_), Some(_)) => Self::Changed,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }

    fn mark(self) -> char {
        match self {
            Self::Added => '+',
            Self::Removed => '-',
            Self::Changed => '~',
        }
    }
}

impl Difference {
    /// `old_place` and `new_place` are prefixes of file names.
    pub(super) fn between(old_place: &str, old: &[SetFile], new_place: &str, new: &[SetFile]) -> Self {
        let (old_rules, new_rules) = (by_id(old), by_id(new));
        let ids: BTreeSet<&String> = old_rules.keys().chain(new_rules.keys()).collect();
        let rules = ids.into_iter().filter_map(|id| rule_change(id, old_rules.get(id), new_rules.get(id)));
        let names: BTreeSet<&str> = old.iter().chain(new).map(|file| file.name.as_str()).collect();
        let text_in = |files: &'_ [SetFile], name: &str| {
            files.iter().find(|file| file.name == name).map(|file| file.text.clone())
        };
        let files = names.into_iter().filter_map(|name| {
            let (old, new) = (text_in(old, name), text_in(new, name));
            let place = |folder: &str, text: &Option<String>| match text {
                Some(_) => format!("{folder}/{name}"),
                None => "/dev/null".to_owned(),
            };
            let (old_name, new_name) = (place(old_place, &old), place(new_place, &new));
            let kind = ChangeKind::of(old.as_ref(), new.as_ref());
            let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
            // An empty file that is added or removed is a change without lines.
            let differs = old != new || kind != ChangeKind::Changed;
            let text = unified(&old_name, &old, &new_name, &new);
            differs.then(|| FileChange { name: name.to_owned(), kind, text })
        });
        Self { rules: rules.collect(), files: files.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The changed rules, one per line.
    pub(super) fn summary(&self) -> String {
        if self.rules.is_empty() {
            return "no rules changed\n".to_owned();
        }
        let line = |rule: &RuleChange| format!("{} {} ({})\n", rule.kind.mark(), clean(&rule.id), clean(&rule.force));
        let lines: String = self.rules.iter().map(line).collect();
        let count = |kind| self.rules.iter().filter(|rule| rule.kind == kind).count();
        let (added, changed) = (count(ChangeKind::Added), count(ChangeKind::Changed));
        format!("{lines}{added} rules added, {changed} changed, {} removed\n", count(ChangeKind::Removed))
    }

    pub(super) fn text(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|file| format!("{}\n", clean_lines(&file.text))).collect();
        format!("{}\n{}", files.join("\n"), self.summary())
    }

    pub(super) fn to_json(&self) -> Value {
        let rule = |rule: &RuleChange| json!({"id": rule.id, "change": rule.kind.as_str(), "effect": rule.force});
        let file = |file: &FileChange| json!({"name": file.name, "change": file.kind.as_str(), "diff": file.text});
        json!({
            "same": self.is_empty(),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
        })
    }
}

fn by_id(files: &[SetFile]) -> BTreeMap<String, RuleText> {
    let cedar = files.iter().filter(|file| file.name.ends_with(".cedar"));
    cedar.flat_map(|file| rules(&file.name, &file.text)).map(|rule| (rule.id.clone(), rule)).collect()
}

fn rule_change(id: &str, old: Option<&RuleText>, new: Option<&RuleText>) -> Option<RuleChange> {
    let force = |rule: &RuleText| format!("{}{}", rule.effect, if rule.shadow { " in shadow" } else { "" });
    let force = match (old, new) {
        (Some(old), Some(new)) if old.says_the_same(new) => return None,
        (Some(old), Some(new)) if force(old) != force(new) => format!("{} -> {}", force(old), force(new)),
        (_, Some(rule)) | (Some(rule), None) => force(rule),
        (None, None) => return None,
    };
    Some(RuleChange { id: id.to_owned(), kind: ChangeKind::of(old, new), force })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(files: &[(&str, &str)]) -> Vec<SetFile> {
        files.iter().map(|(name, text)| SetFile { name: (*name).to_owned(), text: (*text).to_owned() }).collect()
    }

    fn forbid(id: &str, more: &str) -> String {
        format!("@id(\"{id}\"){more}\nforbid (principal, action, resource);\n")
    }

    #[test]
    fn rules_that_come_go_and_change_are_named_with_what_they_do() {
        let old = format!("{}{}{}", forbid("stays", ""), forbid("goes", " @remedy(\"ask\")"), forbid("weaker", ""));
        let new = format!("{}// moved\n{}", forbid("weaker", " @mode(\"shadow\")"), forbid("stays", ""));
        let new = set(&[("a.cedar", new.as_str()), ("b.cedar", forbid("comes", " @remedy(\"redact\")").as_str())]);
        let difference = Difference::between("version 3", &set(&[("a.cedar", old.as_str())]), "draft", &new);
        assert_eq!(
            difference.summary(),
            "+ comes (redact)\n- goes (ask)\n~ weaker (deny -> deny in shadow)\n1 rules added, 1 changed, 1 removed\n"
        );
        let text = difference.text();
        assert!(text.contains("--- version 3/a.cedar\n+++ draft/a.cedar\n@@ "), "{text}");
        assert!(text.contains("--- /dev/null\n+++ draft/b.cedar\n@@ -0,0 +1,2 @@\n+@id(\"comes\")"), "{text}");
        assert_eq!(difference.to_json()["files"][1]["change"], "added");
    }

    #[test]
    fn another_layout_or_another_test_changes_no_rule() {
        let old = set(&[("a.cedar", &forbid("x", "")), ("a.test.yaml", "tests: []\n"), ("e.cedar", "")]);
        let new = set(&[("a.cedar", &format!("// why\n{}", forbid("x", ""))), ("a.test.yaml", "tests: [1]\n")]);
        let difference = Difference::between("old", &old, "new", &new);
        assert_eq!(difference.summary(), "no rules changed\n");
        assert!(!difference.is_empty());
        let names: Vec<&str> = difference.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a.cedar", "a.test.yaml", "e.cedar"]);
        assert!(Difference::between("old", &old, "new", &old).is_empty());
    }

    #[test]
    fn nothing_in_a_file_moves_the_cursor() {
        let new = set(&[("a.cedar", "@id(\"x\u{1b}[2J\") forbid (principal, action, resource);\n")]);
        let text = Difference::between("old", &[], "new", &new).text();
        assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}"), "{text:?}");
    }
}
