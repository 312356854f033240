//! Calls that always need approval, whatever the mode and earlier decisions: messages to people, and changes to
//! Toolgate itself or to files that start code later. This checks names and where they lead, so that nothing of the
//! kind passes by mistake; commands in a sandbox are confined by the sandbox.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate_model::approval::Workspace;

use crate::arguments::{command_lines, directories, own_name, paths};
use crate::glance::{commands, pieces, program_name};
use crate::links::{Links, Site, joined};
use crate::place::{Directory, Place};

/// Read-only tools.
const READERS: [&str; 14] = [
    "read",
    "glob",
    "grep",
    "ls",
    "view",
    "notebookread",
    "read_file",
    "read_many_files",
    "list_directory",
    "list_dir",
    "search_file_content",
    "grep_search",
    "file_search",
    "codebase_search",
];

/// Subcommands of Toolgate that only a person may run. Without arguments it serves.
const OWN_COMMANDS: [&str; 17] = [
    "agent",
    "approvals",
    "config",
    "connect",
    "credential",
    "decide",
    "grant",
    "host",
    "key",
    "login",
    "recover",
    "serve",
    "service",
    "stop",
    "tenant",
    "tool",
    "vault",
];

/// The longest command line that is checked: no program accepts a longer one.
const LONGEST: usize = 32 * 1024;

/// How many directories of a line are followed.
const DIRECTORIES: usize = 4;

/// How many different words are resolved through links, over all directories of a line.
const FOLLOWED: usize = 2048;

/// Settings of git that name programs.
const GIT_SETTINGS: [&str; 8] = [
    "core.hookspath",
    "core.fsmonitor",
    "core.sshcommand",
    "core.pager",
    "core.editor",
    "credential.helper",
    "include.path",
    "init.templatedir",
];

/// Why a call always needs approval, if it does.
pub fn is_protected(tool: &str, arguments: &Value, workspace: Option<&Workspace>, links: &dyn Links) -> Option<String> {
    let name = own_name(tool).to_lowercase();
    if matches!(name.replace(['_', '-'], "").as_str(), "sendmessage" | "hostsendmessage") {
        return Some("it sends a message to people".to_owned());
    }
    let site = Site { tool, workspace, links };
    let directory = Directory::of(workspace);
    let of_commands = || {
        // Without a directory in the call, commands run in the workspace.
        let mut starts = directories(arguments);
        if starts.is_empty() {
            starts.push("");
        }
        let lines = command_lines(tool, arguments);
        lines.iter().find_map(|line| starts.iter().find_map(|start| line_runs_protected(line, start, &directory, site)))
    };
    let of_paths = || {
        let paths = if READERS.contains(&name.as_str()) { Vec::new() } else { paths(tool, arguments) };
        paths.into_iter().find_map(|path| {
            let led = || site.resolve("", path).and_then(|led| named(&Place::of(&led, &directory)));
            named(&Place::of(path, &directory)).or_else(led)
        })
    };
    of_paths().or_else(of_commands).map(|runs| runs.to_string())
}

/// Whether a path inside a workspace is protected, by its name alone.
pub fn is_protected_place(path: &str) -> bool {
    named(&Place::of(path, &Directory::of(None))).is_some()
}

/// What a command does that always needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// It names a protected path.
    Names(&'static str),
    /// It runs Toolgate itself.
    Toolgate,
    /// It schedules programs.
    Crontab,
    /// It lets git run programs.
    Git,
    /// More than can be checked.
    Unclear,
}

impl std::fmt::Display for Runs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Names(what) => write!(formatter, "it may change {what}"),
            Self::Toolgate => formatter.write_str("it runs toolgate, which only a person may do"),
            Self::Crontab => formatter.write_str("it may change programs that the system starts automatically"),
            Self::Unclear => formatter.write_str("it is too long, or visits too many directories, to be checked"),
            Self::Git => formatter.write_str("it may change settings of version control, which run commands later"),
        }
    }
}

/// What a command line does that always needs approval, from every directory that it may change to.
fn line_runs_protected(line: &str, start: &str, workspace: &Directory, site: Site<'_>) -> Option<Runs> {
    if line.len() > LONGEST {
        return Some(Runs::Unclear);
    }
    let commands = commands(line);
    let mut current = if start.is_empty() { workspace.clone() } else { Directory::at(Place::of(start, workspace)) };
    let mut directories = vec![current.clone()];
    // The same directories as the call spells them: normalized names do not resolve in a file system.
    let mut spelled = vec![start.to_owned()];
    for words in &commands {
        let goes = words.first().is_some_and(|first| matches!(program_name(first).as_str(), "cd" | "pushd"));
        let Some(target) = words.get(1).filter(|_| goes) else { continue };
        current = Directory::at(Place::of(target, &current));
        let next = joined(spelled.last().map_or("", String::as_str), target);
        if !spelled.contains(&next) {
            spelled.push(next);
        }
        // From any other directory, a path leads only to what it says itself.
        if current.matters && !directories.contains(&current) {
            directories.push(current.clone());
        }
        if directories.len() > DIRECTORIES {
            return Some(Runs::Unclear);
        }
    }
    let by_name = directories.iter().find_map(|one| commands.iter().find_map(|words| runs_protected(words, one)));
    by_name.or_else(|| leads_to_protected(&commands, &spelled, workspace, site))
}

/// What words of the commands lead to through links, from each of the directories.
fn leads_to_protected(
    commands: &[Vec<String>],
    directories: &[String],
    workspace: &Directory,
    site: Site<'_>,
) -> Option<Runs> {
    // If the directory cannot be resolved, nothing in it can.
    site.resolve("", ".")?;
    let words: BTreeSet<&str> = commands.iter().flatten().flat_map(|word| pieces(word)).collect();
    if words.len().saturating_mul(directories.len()) > FOLLOWED {
        return Some(Runs::Unclear);
    }
    let led = |directory: &String, word: &&str| site.resolve(directory, word);
    directories.iter().find_map(|directory| {
        words.iter().filter_map(|word| led(directory, word)).find_map(|to| named(&Place::of(&to, workspace)))
    })
}

/// What one command does that always needs approval.
pub(crate) fn runs_protected(words: &[String], directory: &Directory) -> Option<Runs> {
    let (first, arguments) = words.split_first()?;
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(&word.to_lowercase().as_str()));
    match program_name(first).as_str() {
        "crontab" => return Some(Runs::Crontab),
        "toolgate" if arguments.is_empty() || has(&OWN_COMMANDS) => return Some(Runs::Toolgate),
        // Toolgate run from its sources is the same program.
        "cargo" if has(&["toolgate"]) && has(&["run"]) && has(&OWN_COMMANDS) => return Some(Runs::Toolgate),
        "git" if arguments.iter().flat_map(|word| pieces(word)).any(is_git_setting) => return Some(Runs::Git),
        _ => {}
    }
    // A plain name is protected only by its directory.
    let matter = |word: &&String| directory.matters || word.contains(['.', '/', '\\']);
    words.iter().filter(matter).find_map(|word| {
        let is_option = word.starts_with('-');
        pieces(word).into_iter().find_map(|piece| {
            let place = Place::of(piece, directory);
            if is_option { place.protection().map(Runs::Names) } else { named(&place) }
        })
    })
}

fn named(place: &Place) -> Option<Runs> {
    let held = || place.holds_protected().then_some("a directory that decides what runs later");
    place.protection().or_else(held).map(Runs::Names)
}

fn is_git_setting(piece: &str) -> bool {
    let name = piece.to_lowercase();
    GIT_SETTINGS.contains(&name.as_str()) || name.starts_with("alias.") || name.starts_with("filter.")
}
