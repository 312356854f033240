//! `toolgate connect`: writes the settings that make a coding agent ask the gate before it uses a tool, after showing
//! what changes in them, and takes them out again.

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

/// The longest settings that are read.
const LENGTH_LIMIT: u64 = 1024 * 1024;

/// Make a coding agent ask the gate before it uses a tool
///
/// Adds `toolgate hook` to the client's settings, after showing what changes and asking; everything else in the file stays
/// as it is. The hook asks the gate that you are logged in to, with the same login, which is tried first: choose that of an
/// agent with --profile, for whoever can decide approvals should not be whom the agent runs as.
#[derive(Args)]
#[command(
    after_help = "Example:\n  toolgate connect claude-code --user --profile agent\n  toolgate connect cursor --project .\n  toolgate connect claude-code --user --remove"
)]
pub(crate) struct Connect {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Which client
    client: HookClient,
    /// Only in the project in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    project: Option<PathBuf>,
    /// In all projects of this user, which is what happens without --project
    #[arg(long)]
    user: bool,
    /// Take the hook out again
    #[arg(long)]
    remove: bool,
    /// The agent that the hook asks for, where the key is not its own
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// What is to be written.
struct Change {
    file: PathBuf,
    /// What the file holds; `None` where there is none.
    old: Option<String>,
    /// What it is to hold; `None` where it is to go.
    new: Option<String>,
}

impl Connect {
    /// Tries the key, shows, asks, writes.
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let target = if self.remove { Target::default() } else { self.target().await? };
        let program = std::env::current_exe().map_err(|error| Failure::io("where this program is", error))?;
        let program =
            program.to_str().ok_or_else(|| Failure::Said("the path of this program is not UTF-8".to_owned()))?;
        let wiring = Wiring::new(self.client, program, &target);
        let place = match &self.project {
            Some(directory) => {
                let place = wiring::project(directory);
                place.map_err(|error| Failure::io(directory.display().to_string(), error))?
            }
            None => Place::User,
        };
        let file = wiring.file(&place, |name| std::env::var_os(name));
        let file = file.ok_or_else(|| Failure::Said("HOME is not set; say --project DIR".to_owned()))?;
        let change = Change::plan(file, &wiring, self.remove)?;
        let (name, file) = (self.client.name(), clean(&change.file.display().to_string()));
        if change.old == change.new {
            let state = if self.remove { "does not have the hook" } else { "has the hook already" };
            let value =
                json!({"client": name, "file": file, "changed": false, "url": target.url, "profile": target.profile});
            return Ok(Report::new(value, format!("{file} {state}; nothing was changed.")));
        }
        let diff = clean_lines(&change.diff());
        output::say(&diff);
        let verb = if self.remove { "takes the hook out of" } else { "puts the hook into" };
        prompt::confirm(&format!("this {verb} {file}"), self.yes)?;
        change.write()?;
        let value = json!({
            "client": name, "file": file, "changed": true, "diff": diff, "url": target.url, "profile": target.profile
        });
        Ok(Report::new(value, self.closing(&wiring, &change, &file)))
    }

    /// The gate that the hook is to ask, with a key that works there.
    async fn target(&self) -> Result<Target, Failure> {
        let access = self.connection.access()?;
        let client = access.client()?;
        let caller = client.to::<Whoami>().send().await.map_err(|error| unusable(error.into()))?;
        let id = caller.id.as_str();
        if !caller.permissions.has(Permission::InvokeTools) {
            let sentence = format!("{} lacks the permission `tools.invoke`, which a hook needs", clean(id));
            return Err(unusable(Failure::Said(sentence)));
        }
        if let Some(agent) = self.agent.as_deref().filter(|agent| *agent != id) {
            let found = client.to::<ShowAgent>().named(agent).send().await;
            found.map_err(|error| unusable(error.into()))?;
        }
        output::say(&format!("The hook asks {} as {}.", clean(&access.url), self.asker(id)));
        if caller.permissions.has(Permission::DecideApprovals) {
            output::say(&format!(
                "toolgate: warning: {} may also decide approvals; save an agent's key with `toolgate login --profile agent`, \
                 and say --profile agent here",
                clean(id)
            ));
        }
        if access.profile.is_none() {
            output::say(
                "toolgate: warning: the key is that of the environment, which the hook must have too; clients may keep it from \
                 their hooks, so save it with `toolgate login`, and say --profile here",
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
            return format!("{file} no longer has the hook: {} decides by itself again.", self.client.name());
        }
        let mut text = format!("{file} has the hook now. {}", wiring.next_step());
        let settings = change.new.as_deref().and_then(|text| settings::checked(text).ok());
        if let Some(switch) = settings.and_then(|settings| wiring.switched_off(&settings)) {
            text.push_str(&format!("\nWarning: `{switch}` in this file keeps the client from running any hook."));
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
    /// What has to change in this file.
    fn plan(file: PathBuf, wiring: &Wiring, remove: bool) -> Result<Self, Failure> {
        // The file behind a link is changed, and not the link.
        let file = file.canonicalize().unwrap_or(file);
        let old = read(&file)?;
        let text = old.as_deref().unwrap_or_default();
        let new =
            if remove { settings::disconnected(text, wiring) } else { settings::connected(text, wiring).map(Some) };
        let new = new.map_err(|error| Failure::Said(format!("{} is left alone: {error}", file.display())))?;
        // Nothing to take out of a file that is not there.
        let new = if remove && old.is_none() { None } else { new };
        Ok(Self { file, old, new })
    }

    fn diff(&self) -> String {
        let name = self.file.display().to_string();
        let name_of = |text: &Option<String>| if text.is_some() { name.clone() } else { "/dev/null".to_owned() };
        let text_of = |text: &Option<String>| text.clone().unwrap_or_default();
        diff::unified(&name_of(&self.old), &text_of(&self.old), &name_of(&self.new), &text_of(&self.new))
    }

    /// Writes it, all or nothing, unless the file is no longer what was shown.
    fn write(&self) -> Result<(), Failure> {
        if read(&self.file)? != self.old {
            return Err(Failure::Said(format!("{} was changed meanwhile; try again", self.file.display())));
        }
        let failed = |error| Failure::io(self.file.display().to_string(), error);
        match &self.new {
            Some(text) => replace(&self.file, text).map_err(failed),
            None => fs::remove_file(&self.file).map_err(failed),
        }
    }
}

/// The text of the file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let failed = |error| Failure::io(path.display().to_string(), error);
    let unfit = || Failure::Said(format!("{} is not a small text file; look at what is there", path.display()));
    // Looked at before it is opened: opening a named pipe would wait for ever.
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

/// Writes the file beside its place and moves it there, with the permissions of the one before.
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
