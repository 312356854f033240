//! A policy set as a directory: `*.cedar` with rules, `*.test.yaml` with tests. Other files are refused, so that a typo in a
//! file name cannot omit a rule.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use toolgate_api::policies::{PolicyFile, PolicyFiles};
use toolgate_api::reading::Object;

use crate::command::Failure;
use crate::output::clean;

/// The limit of the gate for all files together.
const FILE_LIMIT: u64 = 8 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetFile {
    /// Without a directory.
    pub(super) name: String,
    pub(super) text: String,
}

/// Sorted by name.
pub(super) fn read(folder: &Path) -> Result<Vec<SetFile>, Failure> {
    let shown = |path: &Path| clean(&path.display().to_string());
    let entries = fs::read_dir(folder).map_err(|error| Failure::io(shown(folder), error))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Failure::io(shown(folder), error))?;
        let path = entry.path();
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || name == "README.md" {
            continue;
        }
        let kind = fs::metadata(&path).map_err(|error| Failure::io(shown(&path), error))?;
        let Some(name) = name.to_str().filter(|name| is_of_a_set(name) && kind.is_file()) else {
            let sentence = format!(
                "{}: not part of a policy set, which has only *.cedar and *.test.yaml files, a README.md and hidden \
                 files, and no directories; rename or move it",
                shown(&path)
            );
            return Err(Failure::Said(sentence));
        };
        files.push(SetFile { name: name.to_owned(), text: text_of(&path)? });
    }
    if !files.iter().any(|file| file.name.ends_with(".cedar")) {
        let folder = shown(folder);
        let sentence = format!("{folder}: no *.cedar file; create some with `toolgate policy init {folder}`");
        return Err(Failure::Said(sentence));
    }
    files.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(files)
}

/// Writes new files. If one of them exists, none is written.
pub(super) fn write_new<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<PathBuf>, Failure> {
    let files = files
        .into_iter()
        .map(|(name, text)| match is_of_a_set(name) {
            true => Ok((folder.join(name), text)),
            false => Err(Failure::Said(format!("`{}` is not a valid name of a policy file", clean(name)))),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        let path = clean(&path.display().to_string());
        return Err(Failure::Said(format!("{path} already exists; nothing was written; use another directory")));
    }
    let failed = |path: &Path, error| Failure::io(clean(&path.display().to_string()), error);
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (path, text) in &files {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| failed(path, error))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

pub(super) fn to_request(files: &[SetFile]) -> PolicyFiles {
    let file = |file: &SetFile| Object(PolicyFile { name: file.name.clone(), text: file.text.clone() });
    PolicyFiles(files.iter().map(file).collect())
}

pub(super) fn of_version(files: PolicyFiles) -> Vec<SetFile> {
    files.0.into_iter().map(|Object(file)| SetFile { name: file.name, text: file.text }).collect()
}

/// Whether the gate accepts the name; it cannot lead out of a directory.
fn is_of_a_set(name: &str) -> bool {
    let stem = name.strip_suffix(".cedar").or_else(|| name.strip_suffix(".test.yaml"));
    stem.is_some_and(|stem| !stem.is_empty())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let name = clean(&path.display().to_string());
    let mut bytes = Vec::new();
    let opened = fs::File::open(path).map_err(|error| Failure::io(&name, error))?;
    let read = opened.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| Failure::io(&name, error))?;
    if u64::try_from(read).unwrap_or(u64::MAX) > FILE_LIMIT {
        return Err(Failure::Said(format!("{name}: longer than {FILE_LIMIT} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Failure::Said(format!("{name}: not valid UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn only_rules_and_their_tests_are_read_in_the_order_of_their_names() {
        let folder =
            folder(&[("b.cedar", "b"), ("a.test.yaml", "t"), ("a.cedar", "a"), ("README.md", "r"), (".x", "x")]);
        let files = read(folder.path()).unwrap();
        let names: Vec<(&str, &str)> = files.iter().map(|file| (file.name.as_str(), file.text.as_str())).collect();
        assert_eq!(names, [("a.cedar", "a"), ("a.test.yaml", "t"), ("b.cedar", "b")]);
        assert_eq!(of_version(to_request(&files)), files);
    }

    #[test]
    fn whatever_else_lies_there_is_named() {
        for name in ["b.ceder", "a.cedar~", "a.yaml", "notes.txt", "b c.cedar", "b.Cedar"] {
            let folder = folder(&[("a.cedar", "a"), (name, "x")]);
            let refused = read(folder.path()).unwrap_err();
            assert!(refused.to_string().contains(&format!("{name}: not part of a policy set")), "{refused}");
        }
        let folder = folder(&[("a.cedar", "a")]);
        fs::create_dir(folder.path().join("deeper.cedar")).unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("deeper.cedar: not part"));
    }

    #[test]
    fn a_folder_without_rules_is_not_taken_for_an_empty_set() {
        let folder = folder(&[("a.test.yaml", "t")]);
        assert!(read(folder.path()).unwrap_err().to_string().contains("toolgate policy init"));
        assert!(read(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = folder(&[("b.cedar", "mine")]);
        let refused = write_new(folder.path(), [("a.cedar", "new"), ("b.cedar", "new")]).unwrap_err();
        assert!(refused.to_string().contains("b.cedar already exists"), "{refused}");
        assert!(!folder.path().join("a.cedar").exists());
        for outside in ["../a.cedar", "x/a.cedar", ".cedar", ""] {
            assert!(write_new(folder.path(), [(outside, "new")]).is_err(), "{outside}");
        }
        let below = folder.path().join("new/set");
        write_new(&below, [("a.cedar", "new")]).unwrap();
        assert_eq!(read(&below).unwrap(), [SetFile { name: "a.cedar".to_owned(), text: "new".to_owned() }]);
    }
}
