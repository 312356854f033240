//! The hooks of a client: planned on the same files as its servers, and on their own with `--hooks-only`.

use std::path::PathBuf;

use serde_json::json;
use toolgate_api::agents::{ShowAgent, Whoami};
use toolgate_model::permission::Permission;

use super::change::Change;
use super::wiring::{Place, Target, Wiring};
use super::{Connect, program, settings, unusable};
use crate::command::Failure;
use crate::hook::HookClient;
use crate::output::{self, Report, clean, clean_lines};
use crate::prompt;

/// The file of the hooks.
pub(super) fn file(wiring: &Wiring, place: &Place) -> Result<PathBuf, Failure> {
    let file = wiring.file(place, |name| std::env::var_os(name));
    file.ok_or_else(|| Failure::Said("HOME is not set; pass --project DIR".to_owned()))
}

/// Adds the hook to a change of its file.
pub(super) fn add(change: &mut Change, wiring: &Wiring) -> Result<(), Failure> {
    let new = settings::connected(change.text(), wiring).map_err(|error| unchanged(change, &error))?;
    change.new = Some(new);
    Ok(())
}

/// Removes the hook; the file too, if it contains nothing else.
pub(super) fn remove(change: &mut Change, wiring: &Wiring) -> Result<(), Failure> {
    // A missing file has no hook.
    if change.new.is_some() {
        change.new = settings::disconnected(change.text(), wiring).map_err(|error| unchanged(change, &error))?;
    }
    Ok(())
}

fn unchanged(change: &Change, error: &settings::SettingsError) -> Failure {
    Failure::Said(format!("{} was not changed: {error}", change.file.display()))
}

/// A setting in the file that disables all hooks.
pub(super) fn warning(change: &Change, wiring: &Wiring) -> Option<String> {
    let settings = change.new.as_deref().and_then(|text| settings::checked(text).ok())?;
    let switch = wiring.switched_off(&settings)?;
    Some(format!(
        "Warning: `{switch}` in {} disables all hooks of the client.",
        clean(&change.file.display().to_string())
    ))
}

impl Connect {
    /// Connects the hooks alone, with the login of the command.
    pub(super) async fn hooks_only(&self, client: HookClient, place: &Place) -> Result<Report, Failure> {
        let target = if self.remove { Target::default() } else { self.target().await? };
        let wiring = Wiring::new(client, &program()?, &target);
        let mut change = Change::of(file(&wiring, place)?)?;
        if self.remove {
            remove(&mut change, &wiring)?
        } else {
            add(&mut change, &wiring)?
        }
        let (name, file) = (client.name(), clean(&change.file.display().to_string()));
        if !change.is_needed() {
            let state = if self.remove { "does not have the hook" } else { "already has the hook" };
            let value =
                json!({"client": name, "file": file, "changed": false, "url": target.url, "profile": target.profile});
            return Ok(Report::new(value, format!("{file} {state}; nothing was changed.")));
        }
        let diff = clean_lines(&change.diff());
        let verb = if self.remove { "removes the hook from" } else { "adds the hook to" };
        if self.print {
            return Ok(Report::new(json!({"client": name, "file": file, "changed": false, "diff": diff}), diff));
        }
        output::say(&diff);
        prompt::confirm(&format!("this {verb} {file}"), self.yes)?;
        change.write()?;
        let value = json!({
            "client": name, "file": file, "changed": true, "diff": diff, "url": target.url, "profile": target.profile
        });
        let text = match self.remove {
            true => format!("{file} no longer has the hook: {name} decides its calls itself."),
            false => {
                let text = format!("{file} now has the hook. {}", wiring.next_step());
                warning(&change, &wiring).map_or(text.clone(), |warning| format!("{text}\n{warning}"))
            }
        };
        Ok(Report::new(value, text))
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
}
