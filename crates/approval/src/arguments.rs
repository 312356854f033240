//! Command lines, files and texts in a call's arguments. The tools of different agents name these arguments
//! differently.

use serde_json::Value;

/// Names of arguments with a command line, as one string or word by word.
const COMMAND_LINES: [&str; 4] = ["command", "cmd", "script", "shell_command"];

/// Names of arguments with the path of a file or a directory.
const PATHS: [&str; 14] = [
    "file_path",
    "path",
    "notebook_path",
    "target_file",
    "absolute_path",
    "file",
    "filename",
    "filepath",
    "file_name",
    "new_path",
    "destination",
    "target",
    "uri",
    "paths",
];

/// Names of arguments with the working directory of a command.
const DIRECTORIES: [&str; 8] = [
    "working_directory",
    "working_dir",
    "workingdirectory",
    "workdir",
    "cwd",
    "current_directory",
    "directory",
    "dir_path",
];

/// The prefixes of file names in a patch.
const PATCHED: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The command line that the shell recognizer decides on.
pub(crate) fn command_line(arguments: &Value) -> Option<&str> {
    arguments.get("command").and_then(Value::as_str)
}

/// Every command line, at any depth.
pub(crate) fn command_lines(tool: &str, arguments: &Value) -> Vec<String> {
    named(arguments, &COMMAND_LINES)
        .into_iter()
        .filter(|_| !is_patching(tool))
        .filter_map(|value| match value {
            Value::String(line) => Some(line.clone()),
            Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
            _ => None,
        })
        .collect()
}

/// Every directory in which a command line of the call may run.
pub(crate) fn directories(arguments: &Value) -> Vec<&str> {
    named(arguments, &DIRECTORIES).into_iter().filter_map(Value::as_str).collect()
}

/// Every path, at any depth.
pub(crate) fn paths<'a>(tool: &str, arguments: &'a Value) -> Vec<&'a str> {
    let mut paths = Vec::new();
    if is_patching(tool) {
        let lines = texts(arguments).into_iter().flat_map(str::lines);
        paths.extend(lines.filter_map(|line| PATCHED.iter().find_map(|mark| line.trim_start().strip_prefix(mark))));
    }
    for value in named(arguments, &PATHS) {
        match value {
            Value::Array(values) => paths.extend(values.iter().filter_map(Value::as_str)),
            value => paths.extend(value.as_str()),
        }
    }
    paths
}

/// Every string, including names of arguments.
pub(crate) fn texts(arguments: &Value) -> Vec<&str> {
    match arguments {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| std::iter::once(name.as_str()).chain(texts(value))).collect()
        }
        _ => Vec::new(),
    }
}

/// The name of the tool without its service: `send_message` of `slack.send_message`.
pub(crate) fn own_name(tool: &str) -> &str {
    let name = tool.rsplit(['.', '/', ':']).next().unwrap_or(tool);
    name.rsplit("__").next().unwrap_or(name)
}

/// Whether the tool takes a patch in the argument in which others take a command line.
fn is_patching(tool: &str) -> bool {
    own_name(tool).eq_ignore_ascii_case("apply_patch")
}

fn named<'a>(arguments: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    match arguments {
        Value::Array(values) => values.iter().flat_map(|value| named(value, names)).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                let own = names.contains(&name.to_lowercase().as_str()).then_some(value);
                own.into_iter().chain(named(value, names))
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_lines_are_found_as_text_and_word_by_word() {
        let arguments = json!({"command": ["bash", "-lc", "ls"], "steps": [{"cmd": "cargo build"}]});
        assert_eq!(command_lines("a.Bash", &arguments), ["bash -lc ls", "cargo build"]);
        assert_eq!(command_line(&arguments), None);
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let arguments = json!({"edits": [{"file_path": "a"}], "paths": ["b", "c"], "content": "d"});
        assert_eq!(paths("a.Edit", &arguments), ["a", "b", "c"]);
    }

    #[test]
    fn a_patch_is_no_command_line_and_names_the_files_that_it_changes() {
        let patch = "*** Begin Patch\n*** Update File: a\n+rm -r x\n*** Move to: b\n*** Add File: c\n*** End Patch";
        let arguments = json!({"command": patch});
        assert_eq!(paths("apply_patch", &arguments), ["a", "b", "c"]);
        assert!(command_lines("apply_patch", &arguments).is_empty());
        assert_eq!(command_lines("Bash", &arguments), [patch]);
    }

    #[test]
    fn a_tool_is_known_without_its_service() {
        for tool in ["slack.send_message", "mcp__slack__send_message", "a/b:send_message", "send_message"] {
            assert_eq!(own_name(tool), "send_message", "{tool}");
        }
    }
}
