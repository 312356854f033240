//! `Edit`: replaces a text that occurs exactly once, or every occurrence if the call says so.

use std::io::Read as _;

use serde_json::{Map, Value, json};

use super::replace::{LARGEST, replace};
use crate::arguments::Arguments;
use crate::error::WorkspaceError;
use crate::output::Output;
use crate::root::{Place, Root};

/// A parsed call.
#[derive(Debug)]
pub struct Edit {
    place: Place,
    old: String,
    new: String,
    all: bool,
}

impl Edit {
    pub fn parse(root: &Root, values: &Map<String, Value>) -> Result<Self, WorkspaceError> {
        let arguments = Arguments::new(values, &["file_path", "old_string", "new_string", "replace_all"])?;
        let edit = Self {
            place: root.place(arguments.text("file_path")?)?,
            old: arguments.text("old_string")?.to_owned(),
            new: arguments.text("new_string")?.to_owned(),
            all: arguments.flag("replace_all")?,
        };
        if edit.old.is_empty() {
            return Err(WorkspaceError::BadArgument { name: "old_string", expected: "a non-empty string" });
        }
        if edit.old == edit.new {
            return Err(WorkspaceError::BadArgument { name: "new_string", expected: "different from old_string" });
        }
        Ok(edit)
    }

    pub fn run(&self, root: &Root) -> Result<Output, WorkspaceError> {
        let before = read(root, &self.place)?;
        let count = before.matches(&self.old).count();
        match count {
            0 => return Err(WorkspaceError::EditNotFound),
            1 => {}
            _ if self.all => {}
            _ => return Err(WorkspaceError::EditAmbiguous { count }),
        }
        let growth = self.new.len().saturating_mul(count);
        if before.len().saturating_add(growth) > LARGEST.saturating_mul(2) {
            return Err(WorkspaceError::TooLarge { limit: LARGEST });
        }
        let after = before.replace(&self.old, &self.new);
        replace(root, &self.place, after.as_bytes())?;
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        Ok(Output {
            text: format!("replaced {times} in {}", self.place.path().display()),
            is_error: false,
            truncated: false,
            details: json!({ "replacements": count, "bytes": after.len() }),
        })
    }
}

fn read(root: &Root, place: &Place) -> Result<String, WorkspaceError> {
    let file = root.open_file(place)?;
    let mut bytes = Vec::new();
    let most = u64::try_from(LARGEST).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| WorkspaceError::from_io("reading the file", &error))?;
    if bytes.len() > LARGEST {
        return Err(WorkspaceError::TooLarge { limit: LARGEST });
    }
    String::from_utf8(bytes).map_err(|_| WorkspaceError::NotUtf8)
}
