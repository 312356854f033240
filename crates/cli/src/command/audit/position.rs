//! The saved position of an export.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolgate_model::event::StoredEvent;

use crate::command::Failure;
use crate::private_file;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    /// Identifies the log.
    pub(crate) event: String,
    pub(crate) sequence: u64,
}

impl From<&StoredEvent> for Position {
    fn from(event: &StoredEvent) -> Self {
        Self { event: event.event.id.to_string(), sequence: event.sequence }
    }
}

#[derive(Debug)]
pub(crate) struct PositionFile {
    path: Option<PathBuf>,
    position: Option<Position>,
}

impl PositionFile {
    /// Without a path, no position is saved.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        let Some(named) = &path else { return Ok(Self { path, position: None }) };
        let position = match private_file::read(named)? {
            Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
                let name = named.display();
                Failure::Said(format!("{name} does not contain a position: {error}; use another --state file"))
            })?),
            None => None,
        };
        Ok(Self { path, position })
    }

    pub(crate) fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    pub(crate) fn name(&self) -> String {
        self.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Saves the position, durably and atomically.
    pub(crate) fn keep(&mut self, position: Position) -> Result<(), Failure> {
        if let Some(path) = &self.path {
            let text = serde_json::to_string(&position).map_err(|error| Failure::Said(error.to_string()))?;
            private_file::replace(path, &(text + "\n"))?;
        }
        self.position = Some(position);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("siem.state");
        let mut file = PositionFile::open(Some(path.clone())).unwrap();
        assert_eq!(file.position(), None);
        let position = Position { event: "evt_1".to_owned(), sequence: 41 };
        file.keep(position.clone()).unwrap();
        assert_eq!(PositionFile::open(Some(path)).unwrap().position(), Some(&position));
    }

    #[test]
    fn a_file_that_says_something_else_is_not_taken_for_a_beginning() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("siem.state");
        for text in
            ["", "{}", "41", "{\"event\":\"evt_1\",\"sequence\":-1}", "{\"event\":\"e\",\"sequence\":1,\"x\":1}"]
        {
            private_file::replace(&path, text).unwrap();
            let refused = PositionFile::open(Some(path.clone())).unwrap_err();
            assert!(refused.to_string().contains("does not contain a position"), "{text}: {refused}");
        }
    }
}
