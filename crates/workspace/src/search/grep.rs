//! `Grep`: finds lines by regular expression. Skips binary files, very large files and links.

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use globset::GlobMatcher;
use regex::bytes::Regex;
use serde_json::{Map, Value, json};

use super::glob::shown;
use super::{Walk, pattern};
use crate::arguments::Arguments;
use crate::error::WorkspaceError;
use crate::output::Output;
use crate::root::{Place, Root, open_regular};
use crate::stop::Stop;

/// The default and the maximum number of lines.
const USUAL: u64 = 250;
const MOST: u64 = 5000;

/// Larger files are not searched.
const LARGEST: u64 = 32 * 1024 * 1024;

/// Longer lines are cut.
const WIDEST: usize = 500;

/// A parsed call.
#[derive(Debug)]
pub struct Grep {
    place: Place,
    pattern: Regex,
    filter: Option<Filter>,
    most: usize,
}

/// Selects the files to search.
#[derive(Debug)]
struct Filter {
    pattern: GlobMatcher,
    /// A pattern without a slash matches the file name in every directory.
    name_only: bool,
}

impl Grep {
    pub fn parse(root: &Root, values: &Map<String, Value>) -> Result<Self, WorkspaceError> {
        let known = ["pattern", "path", "glob", "case_insensitive", "max_results"];
        let arguments = Arguments::new(values, &known)?;
        let place = arguments.optional_text("path")?.map_or(Ok(Place::root()), |path| root.place(path))?;
        let filter = arguments.optional_text("glob")?.map(Filter::new).transpose()?;
        let most = arguments.optional_count("max_results")?.unwrap_or(USUAL);
        if most > MOST {
            return Err(WorkspaceError::BadArgument { name: "max_results", expected: "5000 or less" });
        }
        Ok(Self {
            place,
            pattern: pattern::regular_expression(arguments.text("pattern")?, arguments.flag("case_insensitive")?)?,
            filter,
            most: usize::try_from(most).unwrap_or(usize::MAX),
        })
    }

    pub fn run(&self, root: &Root, most_bytes: usize, stop: &Stop) -> Result<Output, WorkspaceError> {
        let mut search = Search { call: self, most_bytes, text: String::new(), matches: 0, files: 0, skipped: 0 };
        let kind = root.file_type(&self.place)?;
        let cut = if kind.is_dir() {
            let directory = root.open_directory(&self.place)?;
            let mut walk = Walk::new(stop);
            walk.run(&directory, &mut |found| {
                if found.is_link || self.filter.as_ref().is_some_and(|filter| !filter.admits(found.path)) {
                    return ControlFlow::Continue(());
                }
                match open_regular(found.parent, found.name) {
                    Ok(file) => search.file(file, &shown(&self.place, found.path), stop),
                    Err(_unreadable) => {
                        search.skipped += 1;
                        ControlFlow::Continue(())
                    }
                }
            })?;
            walk.cut
        } else {
            let file = root.open_file(&self.place)?;
            search.file(file, &self.place.path().display().to_string(), stop).is_break()
        };
        Ok(search.into_output(cut))
    }
}

impl Filter {
    fn new(text: &str) -> Result<Self, WorkspaceError> {
        Ok(Self { pattern: pattern::glob(text)?, name_only: !text.contains('/') })
    }

    fn admits(&self, path: &Path) -> bool {
        let shown = if self.name_only { path.file_name().map(Path::new) } else { Some(path) };
        shown.is_some_and(|path| self.pattern.is_match(path))
    }
}

struct Search<'a> {
    call: &'a Grep,
    most_bytes: usize,
    text: String,
    matches: usize,
    files: usize,
    /// Number of binary, too large or unreadable files.
    skipped: usize,
}

impl Search<'_> {
    fn file(&mut self, file: File, path: &str, stop: &Stop) -> ControlFlow<()> {
        let Some(bytes) = text_of(file) else {
            self.skipped += 1;
            return ControlFlow::Continue(());
        };
        let before = self.matches;
        for (number, line) in (1_u64..).zip(bytes.split(|byte| *byte == b'\n')) {
            if stop.is_requested() {
                return ControlFlow::Break(());
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !self.call.pattern.is_match(line) {
                continue;
            }
            if self.matches >= self.call.most || self.text.len() >= self.most_bytes {
                return ControlFlow::Break(());
            }
            self.matches += 1;
            let shown: String = String::from_utf8_lossy(line).chars().take(WIDEST).collect();
            self.text.push_str(&format!("{path}:{number}:{shown}\n"));
        }
        self.files += usize::from(self.matches > before);
        ControlFlow::Continue(())
    }

    fn into_output(mut self, cut: bool) -> Output {
        if self.text.is_empty() {
            self.text.push_str("no matches");
        }
        let details = json!({ "matches": self.matches, "files": self.files, "skipped_files": self.skipped });
        Output { text: self.text, is_error: false, truncated: cut, details }
    }
}

/// The content of a text file within the size limit.
fn text_of(file: File) -> Option<Vec<u8>> {
    if file.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    // The file may have grown since.
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    // The empty piece after the final newline is not a line.
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    (!bytes.is_empty() && !bytes.contains(&0)).then_some(bytes)
}
