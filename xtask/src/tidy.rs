//! `cargo xtask tidy`: the repository conventions, checked over every file that git tracks or would track. Each rule is a function
//! from a file's path and text to findings.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::process::{program, root};

mod dependencies;
mod error_codes;
mod faults;
mod layout;
mod links;
mod machine_paths;
mod places;
mod vocabulary;

pub fn run() -> ExitCode {
    match check() {
        Ok(()) => {
            println!("tidy");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the findings, one per line; an error if there are any.
pub fn check() -> Result<(), String> {
    let root = root();
    let files = files(&root)?;
    let mut findings = Vec::new();
    let homes = machine_paths::of(&root);
    for file in &files {
        findings.extend(dependencies::check(file));
        findings.extend(layout::check(file));
        findings.extend(places::check(file));
        findings.extend(vocabulary::check(file));
        findings.extend(vocabulary::check_words(file));
        findings.extend(machine_paths::check(file, &homes));
        findings.extend(links::check(file, |target| root.join(target).exists()));
    }
    findings.extend(places::stale(&files));
    findings.extend(error_codes::check(&files));
    findings.extend(faults::check(&files));
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Ok(()) } else { Err(format!("{} findings, listed above", findings.len())) }
}

/// A text file of the repository.
#[derive(Debug)]
struct File {
    /// From the root, with forward slashes.
    path: String,
    text: String,
}

/// One breach of one rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl File {
    fn new(path: &str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), text: text.into() }
    }

    fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|own| own == extension)
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Every text file that is tracked, or new and not ignored.
fn files(root: &Path) -> Result<Vec<File>, String> {
    let mut command = program("git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = command.output().map_err(|error| format!("git could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let listing = String::from_utf8_lossy(&output.stdout);
    let paths: BTreeSet<&str> = listing.split('\0').filter(|path| !path.is_empty()).collect();
    let mut files = Vec::new();
    for path in paths {
        let place: PathBuf = root.join(path);
        // A tracked file may be deleted and not yet committed; a file that is not text has no lines to check.
        if place.is_file() {
            let bytes = fs::read(&place).map_err(|error| format!("{path}: {error}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File::new(path, text));
            }
        }
    }
    Ok(files)
}
