//! The workspace tools: names, descriptions and parameter schemas.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkspaceTool {
    Read,
    Glob,
    Grep,
    Write,
    Edit,
    Bash,
    /// Asks a person; its result is the person's answer.
    AskUserQuestion,
}

impl WorkspaceTool {
    /// All tools, in the order in which they are listed.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Glob, Self::Grep, Self::Write, Self::Edit, Self::Bash, Self::AskUserQuestion];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Glob => "Glob",
            Self::Grep => "Grep",
            Self::Write => "Write",
            Self::Edit => "Edit",
            Self::Bash => "Bash",
            Self::AskUserQuestion => "AskUserQuestion",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// `info`, `edit` or `exec`: the category that approval modes use.
    pub const fn category(self) -> &'static str {
        match self {
            Self::Read | Self::Glob | Self::Grep | Self::AskUserQuestion => "info",
            Self::Write | Self::Edit => "edit",
            Self::Bash => "exec",
        }
    }

    /// The description for agents.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Reads a text file of the workspace. Page through long files with offset, the first line, and limit, \
                 the number of lines."
            }
            Self::Glob => {
                "Lists the files whose path matches a glob pattern such as **/*.rs, sorted by path. Version control \
                 data is skipped and links are not followed."
            }
            Self::Grep => {
                "Lists the lines that match a regular expression as path:line:text. Binary files and version control \
                 data are skipped and links are not followed."
            }
            Self::Write => {
                "Writes a whole file atomically; an existing file is replaced and keeps its mode. Missing \
                 directories are created."
            }
            Self::Edit => {
                "Replaces old_string with new_string in a text file, atomically. old_string must occur exactly once \
                 unless replace_all is true."
            }
            Self::Bash => {
                "Runs a command with bash -c in the workspace, without standard input. Standard output and standard \
                 error are combined. Processes that the command leaves behind are killed. Where the system supports \
                 it, writes outside the workspace and network access are blocked."
            }
            Self::AskUserQuestion => "Asks the person supervising this session a question and returns the answer.",
        }
    }

    /// The JSON schema (2020-12) of the arguments.
    pub fn parameters(self) -> Value {
        let file_path = text("The file, relative to the workspace root or absolute below it.");
        let directory = text("The directory to search, relative to the workspace root; the root if absent.");
        match self {
            Self::Read => object(
                json!({
                    "file_path": file_path,
                    "offset": positive("The first line to return, counted from 1."),
                    "limit": positive("The maximum number of lines to return."),
                }),
                &["file_path"],
            ),
            Self::Glob => object(
                json!({ "pattern": text("The glob pattern, relative to path."), "path": directory }),
                &["pattern"],
            ),
            Self::Grep => object(
                json!({
                    "pattern": text("The regular expression, matched line by line."),
                    "path": text("The file or directory to search; the workspace root if absent."),
                    "glob": text("Search only files that match this glob; without a slash it matches the file name."),
                    "case_insensitive": flag("Whether to ignore case."),
                    "max_results": positive("The maximum number of lines to return."),
                }),
                &["pattern"],
            ),
            Self::Write => object(
                json!({ "file_path": file_path, "content": text("The whole new content.") }),
                &["file_path", "content"],
            ),
            Self::Edit => object(
                json!({
                    "file_path": file_path,
                    "old_string": text("The text to replace, exactly as in the file."),
                    "new_string": text("The replacement text."),
                    "replace_all": flag("Whether to replace every occurrence."),
                }),
                &["file_path", "old_string", "new_string"],
            ),
            Self::Bash => object(
                json!({
                    "command": text("The command line."),
                    "timeout_ms": positive("The timeout of the command in milliseconds."),
                    "description": text("The purpose of the command, shown to the approver."),
                    "working_directory": text("The directory to run it in; the workspace root if absent."),
                }),
                &["command"],
            ),
            Self::AskUserQuestion => object(
                json!({
                    "question": text("The question."),
                    "options": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "The answers to choose from; any answer if absent.",
                    },
                }),
                &["question"],
            ),
        }
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn positive(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_by_its_exact_name_only() {
        for tool in WorkspaceTool::ALL {
            assert_eq!(WorkspaceTool::parse(tool.name()), Some(tool));
        }
        assert_eq!(WorkspaceTool::parse("bash"), None);
        assert_eq!(WorkspaceTool::parse("Bash "), None);
    }

    #[test]
    fn every_required_argument_is_described_and_nothing_else_is_taken() {
        for tool in WorkspaceTool::ALL {
            let schema = tool.parameters();
            assert_eq!(schema["additionalProperties"], false);
            for name in schema["required"].as_array().unwrap() {
                assert!(schema["properties"][name.as_str().unwrap()]["description"].is_string(), "{tool:?} {name}");
            }
        }
    }
}
