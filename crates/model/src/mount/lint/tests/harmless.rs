//! Definitions of the kind that ordinary servers have: nothing in them blocks.

use super::*;

#[test]
fn ordinary_definitions_are_not_blocked() {
    let definitions = [
        json!({
            "name": "read_text_file",
            "title": "Read a file",
            "description": "Reads the complete contents of a file as text. Use `head` to read only the first lines. Works only \
                within allowed directories. Use this tool when you need to examine one file; read_multiple_files reads several.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where the file is"},
                    "head": {"type": "number", "description": "If given, returns only the first N lines"},
                },
                "required": ["path"],
                "$schema": "http://json-schema.org/draft-07/schema#",
            },
            "annotations": {"readOnlyHint": true},
        }),
        json!({
            "name": "create_issue",
            "description": "Creates an issue in a repository. The body may contain Markdown, e.g. **bold** and [links](https://example.com).",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "owner": {"type": "string"}, "repo": {"type": "string"},
                    "labels": {"type": "array", "items": {"type": "string", "enum": ["bug", "feature ✨"]}},
                    "milestone": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
                },
            },
        }),
        json!({
            "name": "sequentialthinking",
            "description": "A tool for dynamic problem-solving through thoughts.\n\nWhen to use this tool:\n- Breaking down problems\n\
                - Planning with room for revision\n\nYou should:\n1. Start with an estimate\n2. Feel free to revise",
        }),
        json!({"name": "echo", "description": "Echoes back the input", "inputSchema": {"type": "object"}}),
        json!({"name": "get-weather", "description": "Returns the weather in °C. Voilà: größe, 天気, погода."}),
        json!({"name": "query", "description": "Runs a read-only SQL query. Returns at most 1,000 rows; otherwise the query fails."}),
        json!({
            "name": "resolve-library-id",
            "description": "Resolves a package name. You MUST call this function before 'get-library-docs' to obtain a valid id.",
        }),
    ];
    for definition in definitions {
        let findings = lint_tool(&definition, &Surroundings::default());
        let blocking: Vec<_> = findings.iter().filter(|finding| finding.severity() == Severity::Block).collect();
        assert!(blocking.is_empty(), "{}: {blocking:?}", definition["name"]);
    }
}

#[test]
fn a_claim_to_read_that_the_name_contradicts_is_shown() {
    let definition = json!({"name": "delete_branch", "annotations": {"readOnlyHint": true}});
    assert_eq!(codes(&definition), ["doubtful_hint"]);
    assert_eq!(codes(&json!({"name": "delete_branch"})), Vec::<&str>::new());
}
