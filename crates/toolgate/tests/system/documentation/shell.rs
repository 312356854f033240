//! Runs the commands of a page in one shell and compares what they print.

use std::path::Path;
use std::process::{Command, Stdio};

use super::expectation::fits;
use super::page::Page;
use super::surroundings::Surroundings;

/// Runs the commands in order; the error says which one does something else than the page says.
pub fn try_out(page: &Page) -> Result<(), String> {
    let surroundings = Surroundings::of(&page.path);
    for (name, content) in &page.files {
        std::fs::write(surroundings.home.join(name), content).unwrap();
    }
    let output = shell(&surroundings).arg("-c").arg(script(page)).output().unwrap();
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

fn shell(surroundings: &Surroundings) -> Command {
    let binary = Path::new(super::BINARY).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([binary].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let home = &surroundings.home;
    let mut command = Command::new("sh");
    command.arg("-eu").env_clear().env("PATH", path).env("HOME", home).current_dir(home).stdin(Stdio::null());
    command.envs(surroundings.variables.iter().map(|(name, value)| (name, value)));
    command
}
