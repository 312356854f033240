//! `--remove`: restores the files of a client to the byte, or, if they were edited since, removes only what Toolgate
//! added.

use std::path::Path;

use serde_json::json;

use super::change::Change;
use super::record::{Record, Records};
use super::wiring::{Place, Target, Wiring};
use super::{Connect, hooks, is_own, program, records};
use crate::command::Failure;
use crate::output::{self, Report, clean, clean_lines};
use crate::prompt;

/// A file and how it is restored.
struct Restored {
    change: Change,
    /// Whether it was edited after it was connected.
    is_edited: bool,
}

impl Connect {
    /// Removes the server and the hook.
    pub(super) fn restore(&self, place: &Place) -> Result<Report, Failure> {
        let records = records()?;
        let mut files = vec![self.servers_file(place)?];
        if let Some(wiring) = self.wiring()? {
            files.push(hooks::file(&wiring, place)?);
        }
        let mut restored: Vec<Restored> = Vec::new();
        for file in files {
            let change = Change::of(file)?;
            if restored.iter().all(|other| other.change.file != change.file) {
                restored.push(self.restored(&records, change)?);
            }
        }
        restored.retain(|one| one.change.is_needed());
        let (name, title) = (self.client.name(), self.client.title());
        let files: Vec<String> = restored.iter().map(|one| clean(&one.change.file.display().to_string())).collect();
        if restored.is_empty() {
            let value = json!({"client": name, "changed": false, "files": files});
            return Ok(Report::new(value, format!("{title} is not connected; nothing was changed.")));
        }
        let diff = clean_lines(&restored.iter().map(|one| one.change.diff()).collect::<String>());
        if self.print {
            return Ok(Report::new(json!({"client": name, "changed": false, "files": files, "diff": diff}), diff));
        }
        output::say(&diff);
        prompt::confirm(&format!("this disconnects {title}"), self.yes)?;
        let mut lines = Vec::new();
        for (one, file) in restored.iter().zip(&files) {
            one.change.write()?;
            records.forget(&one.change.file);
            lines.push(match (one.is_edited, one.change.new.is_some()) {
                (true, _) => {
                    format!("{file} was edited since it was connected: only what Toolgate added was removed.")
                }
                (false, true) => format!("{file} is as it was."),
                (false, false) => format!("{file} was removed: it did not exist before."),
            });
        }
        lines.push(
            "The agent, its key and the saved login stay: see `toolgate logout`, `toolgate key revoke` and `toolgate agent \
             remove`."
                .to_owned(),
        );
        let edited: Vec<bool> = restored.iter().map(|one| one.is_edited).collect();
        let value = json!({"client": name, "changed": true, "files": files, "edited": edited, "diff": diff});
        Ok(Report::new(value, lines.join("\n")))
    }

    fn restored(&self, records: &Records, mut change: Change) -> Result<Restored, Failure> {
        let record = records.find(&change.file)?;
        if let Some(record) = record.as_ref().filter(|record| record.is_unchanged(change.old.as_deref())) {
            change.new = record.before.clone();
            return Ok(Restored { change, is_edited: false });
        }
        let new = self.without_own(&change.file, change.old.as_deref())?;
        let was_created = record.as_ref().is_some_and(|record: &Record| record.before.is_none());
        let format = self.client.servers_file();
        change.new = new.filter(|text| !(was_created && format.is_empty(text)));
        Ok(Restored { change, is_edited: true })
    }

    /// The text of a file without what Toolgate added to it; `None` if nothing is left.
    pub(super) fn without_own(&self, file: &Path, text: Option<&str>) -> Result<Option<String>, Failure> {
        let mut change = Change { file: file.to_owned(), old: None, new: text.map(str::to_owned) };
        let program = program()?;
        let format = self.client.servers_file();
        // A file of hooks has no servers, and need not have the format of a file with servers.
        if let Ok(servers) = format.servers(change.text()) {
            let own = servers.iter().filter(|(_, entry)| is_own(entry, &program)).map(|(name, _)| name);
            for name in own.filter(|name| **name == self.name) {
                let unchanged = |error| Failure::Said(format!("{} was not changed: {error}", file.display()));
                change.new = Some(format.without(change.text(), name).map_err(unchanged)?);
            }
        }
        if let Some(wiring) = self.wiring()? {
            // Settings with comments have no hook of Toolgate.
            if super::settings::checked(change.text()).is_ok() {
                hooks::remove(&mut change, &wiring)?;
            }
        }
        Ok(change.new)
    }

    /// How hooks of Toolgate are recognized; `None` for a client without hooks.
    fn wiring(&self) -> Result<Option<Wiring>, Failure> {
        let Some(client) = self.client.hooks() else { return Ok(None) };
        Ok(Some(Wiring::new(client, &program()?, &Target::default())))
    }
}
