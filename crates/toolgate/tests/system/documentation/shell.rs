//! Runs the commands of a page in one shell and compares what they print.

use std::path::Path;
use std::process::{Command, Stdio};

use super::expectation::fits;
use super::page::{Page, root};
use super::surroundings::Surroundings;
use crate::openintent_sdk::python;

/// Runs the commands in order; the error says which one does something else than the page says.
pub fn try_out(page: &Page) -> Result<(), String> {
    let surroundings = Surroundings::of(&page.path);
    for (name, content) in &page.files {
        std::fs::write(surroundings.home.join(name), content).unwrap();
    }
    let output = shell(&surroundings, page).arg("-c").arg(script(page)).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut sections = printed.split(MARK).skip(1);
    for step in &page.steps {
        let place = format!("{}:{}: {}", page.path, step.line, step.command);
        let Some(section) = sections.next() else {
            return Err(format!("{place}\n  was not reached: the command before it failed"));
        };
        let lines: Vec<&str> = section.trim_matches('\n').lines().collect();
        if !fits(&step.expected, &lines) {
            return Err(format!(
                "{place}\n  printed\n{}\n  and the page says\n{}",
                lines.join("\n"),
                step.expected.join("\n")
            ));
        }
    }
    if output.status.success() {
        return Ok(());
    }
    let last = page.steps.last().map_or("", |step| step.command.as_str());
    Err(format!("{}: {last}\n  ended with {}", page.path, output.status))
}

/// Stands before the output of each command.
const MARK: &str = "\n==== next command ====\n";

fn script(page: &Page) -> String {
    let commands = page.steps.iter().map(|step| format!("printf '{}'\n{}\n", MARK.replace('\n', "\\n"), step.command));
    format!("exec 2>&1\n{}", commands.collect::<String>())
}

fn shell(surroundings: &Surroundings, page: &Page) -> Command {
    let mut programs = vec![Path::new(super::BINARY).parent().unwrap().to_owned()];
    let home = &surroundings.home;
    let mut command = Command::new("sh");
    command.arg("-eu").env_clear().env("HOME", home).current_dir(home).stdin(Stdio::null());
    if page.files.iter().any(|(name, _)| name.ends_with(".py")) {
        programs.push(python().parent().unwrap().to_owned());
        command.env("PYTHONPATH", root().join("clients/python/src")).env("PYTHONDONTWRITEBYTECODE", "1");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env("PATH", std::env::join_paths(programs.into_iter().chain(std::env::split_paths(&path))).unwrap());
    command.envs(surroundings.variables.iter().map(|(name, value)| (name, value)));
    command
}
