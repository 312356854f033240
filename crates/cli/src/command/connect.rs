//! `toolgate connect`: lets a client reach its tools through the gate. Creates the agent and its key, adds `toolgate mcp` to the
//! settings of the client after showing the change, and tests it; and removes it again.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use self::change::Change;
use self::client::{ConnectClient, Launch, NoFile};
use self::identity::Identity;
use self::import::Import;
use self::record::Records;
use self::wiring::{Place, Target, Wiring};
use super::{Connection, Failure};
use crate::client::{Client, ClientError};
use crate::environment::Environment;
use crate::output::{self, Report, clean, clean_lines};
use crate::prompt;

mod change;
mod client;
mod hooks;
mod identity;
mod import;
mod json_comments;
mod json_text;
mod record;
mod removal;
mod servers;
mod settings;
#[cfg(test)]
mod tests;
mod toml_text;
mod trial;
mod wiring;

/// Connect a client to the gate: its tools, and with --hooks its own tool calls
///
/// Creates an agent for the client and a key of it, which is saved as a login with mode 0600; adds `toolgate mcp` with that
/// login to the MCP servers of the client; starts it and lists the tools that the client sees. Shows the change to the file
/// first and asks for confirmation; the rest of the file is not changed. Requires a login that may manage agents, or the
/// login of an agent itself with --profile.
#[derive(Args)]
#[command(
    after_help = "Example:\n  toolgate connect claude-code\n  toolgate connect cursor --project . --agent coder --hooks\n  toolgate connect vscode --import --print\n  toolgate connect claude-code --remove"
)]
pub(crate) struct Connect {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Client to connect
    client: ConnectClient,
    /// Only for the project in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "user")]
    project: Option<PathBuf>,
    /// For all projects of this user (the default)
    #[arg(long)]
    user: bool,
    /// Existing agent to use [default: an agent named after the client, created if it does not exist]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Name of the server in the settings of the client
    #[arg(long, value_name = "NAME", default_value = "toolgate", value_parser = server_name)]
    name: String,
    /// Also let the gate decide the client's own tool calls, with a hook
    #[arg(long)]
    hooks: bool,
    /// Only the hook, with the login of this command
    #[arg(long, conflicts_with_all = ["hooks", "import", "name"])]
    hooks_only: bool,
    /// Mount the other MCP servers of the client behind the gate, and remove them from its settings
    #[arg(long, conflicts_with = "remove")]
    import: bool,
    /// With --import: add servers that are processes to this file of mounts (see `mounts.file`)
    #[arg(long, value_name = "FILE", requires = "import")]
    mounts_file: Option<PathBuf>,
    /// Restore the settings of the client
    #[arg(long)]
    remove: bool,
    /// Only show what would be changed
    #[arg(long)]
    print: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// All changes of files, and what they need.
struct Plan {
    identity: Identity,
    launch: Launch,
    wiring: Option<Wiring>,
    import: Option<Import>,
    /// The file of the servers, then that of the hooks if it is another one, then that of mounts.
    changes: Vec<Change>,
    /// The place of the hooks in `changes`.
    hooks_at: usize,
}

impl Connect {
    pub(crate) async fn run(&self) -> Result<Report, Failure> {
        let place = match &self.project {
            Some(directory) => {
                let place = wiring::project(directory);
                place.map_err(|error| Failure::io(directory.display().to_string(), error))?
            }
            None => Place::User,
        };
        if self.hooks_only || self.hooks {
            let hooks = self
                .client
                .hooks()
                .ok_or_else(|| Failure::Usage(format!("{} has no hooks; leave out --hooks", self.client.title())))?;
            if self.hooks_only {
                return self.hooks_only(hooks, &place).await;
            }
        }
        if self.remove {
            return self.restore(&place);
        }
        let access = self.connection.access()?;
        let client = access.client()?;
        let identity = Identity::plan(&access, &client, self.agent.as_deref(), self.client).await?;
        let plan = self.plan(&client, identity, &place).await?;
        self.carry_out(&client, plan).await
    }

    async fn plan(&self, client: &Client, identity: Identity, place: &Place) -> Result<Plan, Failure> {
        let program = program()?;
        let launch = Launch {
            command: program.clone(),
            arguments: ["mcp", "--stdio", "--profile", &identity.profile].map(str::to_owned).to_vec(),
            environment: launch_environment(),
        };
        let mut change = Change::of(self.servers_file(place)?)?;
        let mut mounts = self.mounts_file.clone().map(Change::of).transpose()?;
        let format = self.client.servers_file();
        let unchanged = |reason: String| Failure::Said(format!("{} was not changed: {reason}", change.file.display()));
        let servers = format.servers(change.text()).map_err(|error| unchanged(error.to_string()))?;
        let taken = servers.get(&self.name).filter(|entry| !is_own(entry, &program));
        if taken.is_some() {
            return Err(unchanged(format!("it has another server `{}`; pass --name", clean(&self.name))));
        }
        let entry = self.client.entry(&launch);
        let text = format.with(change.text(), &self.name, &entry).map_err(|error| unchanged(error.to_string()))?;
        let (import, text) = if self.import {
            let import = Import::plan(client, servers, &self.name, mounts.as_mut()).await?;
            let text = import.without_imported(format, &text).map_err(unchanged)?;
            (Some(import), text)
        } else {
            (None, text)
        };
        change.new = Some(text);
        let mut changes = vec![change];
        let wiring = self.client.hooks().filter(|_| self.hooks).map(|hooks| {
            let target =
                Target { url: Some(identity.url.clone()), profile: Some(identity.profile.clone()), agent: None };
            Wiring::new(hooks, &program, &target)
        });
        let mut hooks_at = 0;
        if let Some(wiring) = &wiring {
            let change = Change::of(hooks::file(wiring, place)?)?;
            // The servers and the hooks of some clients are in one file.
            if changes.iter().all(|other| other.file != change.file) {
                hooks_at = changes.len();
                changes.push(change);
            }
            if let Some(change) = changes.get_mut(hooks_at) {
                hooks::add(change, wiring)?;
            }
        }
        changes.extend(mounts);
        Ok(Plan { identity, launch, wiring, import, changes, hooks_at })
    }

    async fn carry_out(&self, client: &Client, mut plan: Plan) -> Result<Report, Failure> {
        let redacted = |text: String| plan.import.as_ref().map_or(text.clone(), |import| import.redacted(&text));
        let diffs: Vec<String> = plan.changes.iter().filter(|change| change.is_needed()).map(Change::diff).collect();
        let diff = clean_lines(&redacted(diffs.concat()));
        let mut announced = vec![plan.identity.announcement()];
        announced.extend(plan.import.iter().flat_map(Import::announcement));
        let entries = plan.import.as_ref().map(|import| clean_lines(&import.entries())).unwrap_or_default();
        let shown = [announced.join("\n"), diff.clone(), entries.clone()];
        let shown: Vec<String> = shown.into_iter().filter(|part| !part.is_empty()).collect();
        let mut value = json!({
            "client": self.client.name(), "agent": plan.identity.agent, "profile": plan.identity.profile,
            "url": plan.identity.url, "files": plan.changes.iter().map(|change| change.file.display().to_string()).collect::<Vec<_>>(),
            "changed": false, "diff": diff, "announced": announced, "mounts_entries": entries,
        });
        if self.print {
            return Ok(Report::new(value, shown.join("\n\n")));
        }
        output::say(&shown.join("\n\n"));
        let is_changed = plan.changes.iter().any(Change::is_needed);
        if is_changed || plan.identity.is_missing() {
            prompt::confirm(&format!("this connects {}", self.client.title()), self.yes)?;
        }
        plan.changes.iter().try_for_each(Change::check)?;
        plan.identity.establish(client, self.client).await?;
        let mut done = self.import(client, &mut plan).await?;
        self.write(&plan)?;
        let trial = trial::tools(&plan.launch).await;
        if let Some(members) = value.as_object_mut() {
            members.insert("changed".to_owned(), json!(is_changed));
            members.insert("imported".to_owned(), json!(done));
            members.insert("tools".to_owned(), json!(trial.as_ref().ok()));
            members.insert("failure".to_owned(), json!(trial.as_ref().err()));
        }
        let is_failed = trial.is_err();
        done.extend(self.closing(&plan, trial));
        Ok(Report::new(value, done.join("\n")).refused_if(is_failed))
    }

    /// Imports the servers. Those that could not be imported are put back.
    async fn import(&self, client: &Client, plan: &mut Plan) -> Result<Vec<String>, Failure> {
        let (Some(import), Some(change)) = (&plan.import, plan.changes.first_mut()) else { return Ok(Vec::new()) };
        let (done, failed) = import.carry_out(client).await?;
        if !failed.is_empty() {
            let old = change.old.clone().unwrap_or_default();
            let format = self.client.servers_file();
            let servers = format.servers(&old).map_err(|error| Failure::Said(error.to_string()))?;
            for name in failed {
                let Some(entry) = servers.get(&name) else { continue };
                let text =
                    format.with(change.text(), &name, entry).map_err(|error| Failure::Said(error.to_string()))?;
                change.new = Some(text);
            }
        }
        Ok(done)
    }

    /// Writes the files, after noting what they were.
    fn write(&self, plan: &Plan) -> Result<(), Failure> {
        let records = records()?;
        for (place, change) in plan.changes.iter().enumerate().filter(|(_, change)| change.is_needed()) {
            // The file of mounts belongs to the operator and is not restored.
            let is_of_client = place == 0 || (plan.wiring.is_some() && place == plan.hooks_at);
            if let Some(new) = change.new.as_deref().filter(|_| is_of_client) {
                let clean = self.without_own(&change.file, change.old.as_deref())?;
                records.remember(&change.file, change.old.as_deref(), clean, new)?;
            }
            change.write()?;
        }
        Ok(())
    }

    fn closing(&self, plan: &Plan, trial: Result<Vec<String>, String>) -> Vec<String> {
        let (title, agent) = (self.client.title(), clean(&plan.identity.agent));
        let mut lines = match trial {
            Ok(tools) if tools.is_empty() => vec![format!(
                "{title} is connected as agent {agent}, which sees no tools yet: grant it some, see `toolgate grant create --help`."
            )],
            Ok(tools) => {
                let count = tools.len();
                let mut lines = vec![format!("{title} is connected as agent {agent}, which sees {count} tools:")];
                lines.extend(tools.iter().map(|tool| format!("  {}", clean(tool))));
                lines
            }
            Err(reason) => vec![format!(
                "The settings of {title} were written, but the test failed: {}. Correct that and run the command again, or \
                 undo it with --remove.",
                clean(&reason)
            )],
        };
        lines.push(self.client.next_step().to_owned());
        if let (Some(wiring), Some(change)) = (&plan.wiring, plan.changes.get(plan.hooks_at)) {
            lines.push(format!("The hook is in {}. {}", clean(&change.file.display().to_string()), wiring.next_step()));
            lines.extend(hooks::warning(change, wiring));
        }
        lines
    }

    fn servers_file(&self, place: &Place) -> Result<PathBuf, Failure> {
        self.client.file(place, |name| std::env::var_os(name)).map_err(|missing| match missing {
            NoFile::Home => Failure::Said("HOME is not set; pass --project DIR".to_owned()),
            NoFile::Project => {
                Failure::Usage(format!("{} has no servers of projects; leave out --project", self.client.title()))
            }
        })
    }
}

/// Whether an entry is one of Toolgate.
fn is_own(entry: &serde_json::Value, program: &str) -> bool {
    Launch::of_entry(entry).is_some_and(|launch| launch.is_own(program))
}

/// What the command needs besides the usual environment, to find its login.
fn launch_environment() -> Vec<(String, String)> {
    let moved = std::env::var("XDG_CONFIG_HOME").ok().filter(|path| path.starts_with('/'));
    moved.map(|path| ("XDG_CONFIG_HOME".to_owned(), path)).into_iter().collect()
}

fn records() -> Result<Records, Failure> {
    let home = Environment::of_process().configuration_home();
    let home = home.ok_or_else(|| Failure::Said("neither HOME nor XDG_CONFIG_HOME is set; set HOME".to_owned()))?;
    Ok(Records::below(&home))
}

fn program() -> Result<String, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::io("could not determine the path of this program", error))?;
    let text = program.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Said("the path of this program is not valid UTF-8".to_owned()))
}

fn server_name(text: &str) -> Result<String, String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if (1..=64).contains(&text.len()) && text.chars().all(allowed) {
        return Ok(text.to_owned());
    }
    Err("use at most 64 letters, digits, _ and -".to_owned())
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
