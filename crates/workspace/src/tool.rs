//! The tools by name: what each is called, what it is for, and what arguments it takes.

use serde_json::{Value, json};

/// A tool of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkspaceTool {
    /// Reads a text file.
    Read,
    /// Finds files by name.
    Glob,
    /// Finds lines by regular expression.
    Grep,
    /// Writes a whole file.
    Write,
    /// Replaces text in a file.
    Edit,
    /// Runs a command.
    Bash,
    /// Asks a person; only a person's answer is its output.
    AskUserQuestion,
}

impl WorkspaceTool {
    /// Every tool, in the order in which they are listed.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Glob, Self::Grep, Self::Write, Self::Edit, Self::Bash, Self::AskUserQuestion];

    /// The name by which agents call it.
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

    /// The tool of that exact name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// `info`, `edit` or `exec`: the word by which modes speak of it.
    pub const fn category(self) -> &'static str {
        match self {
            Self::Read | Self::Glob | Self::Grep | Self::AskUserQuestion => "info",
            Self::Write | Self::Edit => "edit",
            Self::Bash => "exec",
        }
    }

    /// What it is for, told to an agent.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Read => {
                "Reads a text file of the workspace as plain text. Long files come in parts: give the first line as \
                 offset and the number of lines as limit."
            }
            Self::Glob => {
                "Lists the files whose path matches a glob pattern such as **/*.rs, sorted by path. Version control \
                 data is left out and links are not followed."
            }
            Self::Grep => {
                "Lists the lines that match a regular expression as path:line:text. Binary files and version control \
                 data are left out and links are not followed."
            }
            Self::Write => {
                "Writes a whole file, in one step; an existing file is replaced and keeps its mode. Missing \
                 directories are made."
            }
            Self::Edit => {
                "Replaces old_string with new_string in a text file, in one step. old_string must occur exactly once \
                 unless replace_all is true."
            }
            Self::Bash => {
                "Runs a command with bash -c in the workspace, without standard input. Standard output and standard \
                 error come together. Everything that the command started is ended with it. Where the system offers \
                 it, writes outside the workspace and the network are off."
            }
            Self::AskUserQuestion => "Asks the person who watches this session a question and gives back the answer.",
        }
    }

    /// The JSON schema (2020-12) of its arguments.
    pub fn parameters(self) -> Value {
        let file_path = text("The file, relative to the workspace root or absolute below it.");
        let directory = text("The directory to search, relative to the workspace root; the root if absent.");
        match self {
            Self::Read => object(
                json!({
                    "file_path": file_path,
                    "offset": positive("The first line to give, counted from 1."),
                    "limit": positive("How many lines to give at most."),
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
                    "glob": text("Search only files that match this glob; without a slash it is the file's name."),
                    "case_insensitive": flag("Whether upper and lower case are alike."),
                    "max_results": positive("How many lines to give at most."),
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
                    "old_string": text("The text to replace, exactly as it stands in the file."),
                    "new_string": text("The text to put in its place."),
                    "replace_all": flag("Whether to replace every occurrence."),
                }),
                &["file_path", "old_string", "new_string"],
            ),
            Self::Bash => object(
                json!({
                    "command": text("The command line."),
                    "timeout_ms": positive("After how many milliseconds the command is ended."),
                    "description": text("What the command is for, for the person who approves it."),
                    "working_directory": text("Where to run it; the workspace root if absent."),
                }),
                &["command"],
            ),
            Self::AskUserQuestion => object(
                json!({
                    "question": text("The question."),
                    "options": {
                        "type": "array",
                        "items": { "type": "string" },
                        "description": "Answers to choose from, if the answer is not free.",
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
