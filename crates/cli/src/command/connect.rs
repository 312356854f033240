//! `toolgate connect`: adds the hook to the settings of a coding agent, after showing the change, and removes it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolgate_api::agents::{ShowAgent, Whoami};
use toolgate_model::permission::Permission;

use self::wiring::{Place, Target, Wiring};
use super::{Connection, Failure, diff};
use crate::client::ClientError;
use crate::hook::HookClient;
use crate::output::{self, Report, clean, clean_lines};
use crate::prompt;

mod json_text;
mod settings;
#[cfg(test)]
mod tests;
mod wiring;

const LENGTH_LIMIT: u64 = 1024 * 1024;

/// Connect a coding agent, so that the gate decides its tool calls
///
/// Shows the change, asks for confirmation, and adds `toolgate hook` to the settings of the client; the rest of the file is
/// not changed. The hook uses your gate and login, which are tested first. Use the login of an agent with --profile: the
/// coding agent should not run as a principal that can decide approvals.
#[derive(Args)]
#[command(
    after_help = "Example:\n  toolgate connect claude-code --user --profile agent\n  toolgate connect cursor --project .\n  toolgate connect claude-code --user --remove"
)]
pub(crate) struct Connect {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The client
    client: HookClient,
    /// Only for the project in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    project: Option<PathBuf>,
    /// For all projects of this user (the default)
    #[arg(long)]
    user: bool,
    /// Remove the hook
    #[arg(long)]
    remove: bool,
    /// Agent of the calls, if the key belongs to another principal
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

struct Change {
    file: PathBuf,
    /// `None` if the file does not exist.
    old: Option<String>,
    /// `None` if the file is to be removed.
    new: Option<String>,
}

impl Connect {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let target = if self.remove { Target::default() } else { self.target().await? };
        let program = std::env::current_exe()
            .map_err(|error| Failure::io("could not determine the path of this program", error))?;
        let program =
            program.to_str().ok_or_else(|| Failure::Said("the path of this program is not valid UTF-8".to_owned()))?;
        let wiring = Wiring::new(self.client, program, &target);
        let place = match &self.project {
            Some(directory) => {
                let place = wiring::project(directory);
                place.map_err(|error| Failure::io(directory.display().to_string(), error))?
            }
            None => Place::User,
        };
        let file = wiring.file(&place, |name| std::env::var_os(name));
        let file = file.ok_or_else(|| Failure::Said("HOME is not set; pass --project DIR".to_owned()))?;
        let change = Change::plan(file, &wiring, self.remove)?;
        let (name, file) = (self.client.name(), clean(&change.file.display().to_string()));
        if change.old == change.new {
            let state = if self.remove { "does not have the hook" } else { "already has the hook" };
            let value =
                json!({"client": name, "file": file, "changed": false, "url": target.url, "profile": target.profile});
            return Ok(Report::new(value, format!("{file} {state}; nothing was changed.")));
        }
        let diff = clean_lines(&change.diff());
        output::say(&diff);
        let verb = if self.remove { "removes the hook from" } else { "adds the hook to" };
        prompt::confirm(&format!("this {verb} {file}"), self.yes)?;
        change.write()?;
        let value = json!({
            "client": name, "file": file, "changed": true, "diff": diff, "url": target.url, "profile": target.profile
        });
        Ok(Report::new(value, self.closing(&wiring, &change, &file)))
    }

    /// The gate and the login of the hook, after testing them.
    async fn target(&self) -> Result<Target, Failure> {
        let access = self.connection.access()?;
        let client = access.client()?;
        let caller = client.to::<Whoami>().send().await.map_err(|error| unusable(error.into()))?;
        let id = caller.id.as_str();
        if !caller.permissions.has(Permission::InvokeTools) {
            let sentence = format!("{} does not have the permission `tools.invoke`, which a hook requires", clean(id));
            return Err(unusable(Failure::Said(sentence)));
        }
        if let Some(agent) = self.agent.as_deref().filter(|agent| *agent != id) {
            let found = client.to::<ShowAgent>().named(agent).send().await;
            found.map_err(|error| unusable(error.into()))?;
        }
        output::say(&format!("The hook uses {} as {}.", clean(&access.url), self.asker(id)));
        if caller.permissions.has(Permission::DecideApprovals) {
            output::say(&format!(
                "toolgate: warning: {} can also decide approvals; save the key of an agent with `toolgate login --profile \
                 agent`, and pass --profile agent",
                clean(id)
            ));
        }
        if access.profile.is_none() {
            output::say(
                "toolgate: warning: the key is from the environment, which clients may not pass to their hooks; save it with \
                 `toolgate login`, and pass --profile",
            );
        }
        Ok(Target { url: Some(access.url), profile: access.profile, agent: self.agent.clone() })
    }

    fn asker(&self, own: &str) -> String {
        match &self.agent {
            Some(agent) => format!("{own}, for {}", clean(agent)),
            None => own.to_owned(),
        }
    }

    fn closing(&self, wiring: &Wiring, change: &Change, file: &str) -> String {
        if self.remove {
            return format!("{file} no longer has the hook: {} decides its calls itself.", self.client.name());
        }
        let mut text = format!("{file} now has the hook. {}", wiring.next_step());
        let settings = change.new.as_deref().and_then(|text| settings::checked(text).ok());
        if let Some(switch) = settings.and_then(|settings| wiring.switched_off(&settings)) {
            text.push_str(&format!("\nWarning: `{switch}` in this file disables all hooks of the client."));
        }
        text
    }
}

fn unusable(failure: Failure) -> Failure {
    match failure {
        Failure::Client(ClientError::Refused { status, body }) => {
            let text = format!("nothing was changed: {}", ClientError::Refused { status, body: body.clone() });
            Failure::explained(text, &body)
        }
        other => Failure::Said(format!("nothing was changed: {other}")),
    }
}

impl Change {
    fn plan(file: PathBuf, wiring: &Wiring, remove: bool) -> Result<Self, Failure> {
        // A link is followed.
        let file = file.canonicalize().unwrap_or(file);
        let old = read(&file)?;
        let text = old.as_deref().unwrap_or_default();
        let new =
            if remove { settings::disconnected(text, wiring) } else { settings::connected(text, wiring).map(Some) };
        let new = new.map_err(|error| Failure::Said(format!("{} was not changed: {error}", file.display())))?;
        // A missing file has no hook.
        let new = if remove && old.is_none() { None } else { new };
        Ok(Self { file, old, new })
    }

    fn diff(&self) -> String {
        let name = self.file.display().to_string();
        let name_of = |text: &Option<String>| if text.is_some() { name.clone() } else { "/dev/null".to_owned() };
        let text_of = |text: &Option<String>| text.clone().unwrap_or_default();
        diff::unified(&name_of(&self.old), &text_of(&self.old), &name_of(&self.new), &text_of(&self.new))
    }

    /// Writes the file atomically, unless it has changed since the diff was shown.
    fn write(&self) -> Result<(), Failure> {
        if read(&self.file)? != self.old {
            return Err(Failure::Said(format!("{} has changed in the meantime; try again", self.file.display())));
        }
        let failed = |error| Failure::io(self.file.display().to_string(), error);
        match &self.new {
            Some(text) => replace(&self.file, text).map_err(failed),
            None => fs::remove_file(&self.file).map_err(failed),
        }
    }
}

/// `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |error| Failure::io(path.display().to_string(), error);
    let unfit = || Failure::Said(format!("{} is not a small text file; check the file", path.display()));
    // Checked before it is opened: opening a named pipe would block.
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() || metadata.len() > LENGTH_LIMIT => return Err(unfit()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LENGTH_LIMIT).read_to_end(&mut bytes)).map_err(failed)?;
    String::from_utf8(bytes).map(Some).map_err(|_| unfit())
}

/// Writes a temporary file with the permissions of the previous file, and renames it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = OpenOptions::new().create_new(true).write(true).open(&temporary).and_then(|mut file| {
        if let Ok(metadata) = fs::metadata(path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
