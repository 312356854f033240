//! The tools that work on files, as they are meant to be used.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::json;
use toolgate_workspace::{Limits, WorkspaceError, WorkspaceTool};

use crate::place::{Place, object};

use WorkspaceTool::{AskUserQuestion, Edit, Glob, Grep, Read, Write};

#[tokio::test]
async fn a_file_is_read_as_it_is_by_its_relative_or_absolute_path() {
    let place = Place::new();
    place.write("src/main.rs", "fn main() {}\r\n\tend");
    let absolute = place.root.join("src/main.rs");
    for path in ["src/main.rs", "./src//main.rs", absolute.to_str().unwrap()] {
        let output = place.call(Read, json!({ "file_path": path })).await.unwrap();
        assert_eq!(output.text, "fn main() {}\r\n\tend");
        assert!(!output.is_error && !output.truncated);
        assert_eq!(output.details["lines"], 2);
    }
}

#[tokio::test]
async fn a_part_of_a_file_is_read_by_its_lines() {
    let place = Place::new();
    place.write("file", "one\ntwo\nthree\nfour\n");
    let output = place.call(Read, json!({ "file_path": "file", "offset": 2, "limit": 2 })).await.unwrap();
    assert_eq!(output.text, "two\nthree\n");
    assert!(output.truncated);
    let output = place.call(Read, json!({ "file_path": "file", "offset": 4, "limit": 9 })).await.unwrap();
    assert_eq!(output.text, "four\n");
    assert!(!output.truncated);
    let output = place.call(Read, json!({ "file_path": "file", "offset": 5 })).await.unwrap();
    assert!(output.is_error, "{}", output.text);
}

#[tokio::test]
async fn of_a_huge_file_only_the_beginning_is_read_and_no_character_is_cut() {
    let place = Place::with(Limits { read_bytes: 1000, ..Limits::default() });
    place.write("long-lines", "ä".repeat(2_000_000));
    let output = place.call(Read, json!({ "file_path": "long-lines" })).await.unwrap();
    assert_eq!(output.text, "ä".repeat(500));
    assert!(output.truncated);
    place.write("odd", "x".to_owned() + &"ä".repeat(1000));
    assert_eq!(place.text(Read, json!({ "file_path": "odd" })).await, "x".to_owned() + &"ä".repeat(499));
    let sparse = fs::File::create(place.root.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert_eq!(place.refused(Read, json!({ "file_path": "sparse" })).await, WorkspaceError::Binary);
    assert_eq!(place.text(Grep, json!({ "pattern": "x", "path": "sparse" })).await, "no matches");
}

#[tokio::test]
async fn invalid_text_is_shown_but_never_edited() {
    let place = Place::new();
    place.write("latin", b"caf\xe9 au lait\n");
    let output = place.call(Read, json!({ "file_path": "latin" })).await.unwrap();
    assert_eq!(output.text, "caf\u{fffd} au lait\n");
    assert_eq!(output.details["valid_utf8"], false);
    let edit = json!({ "file_path": "latin", "old_string": "lait", "new_string": "sucre" });
    assert_eq!(place.refused(Edit, edit).await, WorkspaceError::NotUtf8);
    assert_eq!(fs::read(place.root.join("latin")).unwrap(), b"caf\xe9 au lait\n");
}

#[tokio::test]
async fn a_written_file_is_whole_keeps_its_mode_and_leaves_nothing_beside_it() {
    let place = Place::new();
    let output = place.call(Write, json!({ "file_path": "new/deep/file", "content": "one" })).await.unwrap();
    assert_eq!(output.details, json!({ "bytes": 3, "created": true }));
    let path = place.root.join("new/deep/file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let output = place.call(Write, json!({ "file_path": "new/deep/file", "content": "" })).await.unwrap();
    assert_eq!(output.details["created"], false);
    assert_eq!(place.content("new/deep/file"), "");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_read_only_file_and_a_directory_are_not_replaced() {
    let place = Place::new();
    place.write("fixed", "old");
    fs::set_permissions(place.root.join("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    let write = |path: &str| json!({ "file_path": path, "content": "new" });
    assert_eq!(place.refused(Write, write("fixed")).await, WorkspaceError::ReadOnly);
    assert_eq!(place.refused(Write, write(".")).await, WorkspaceError::IsDirectory);
    assert_eq!(place.content("fixed"), "old");
}

#[tokio::test]
async fn an_edit_needs_a_text_that_occurs_once_or_leave_to_replace_all() {
    let place = Place::new();
    place.write("file", "red green red\n");
    let edit = |old: &str, new: &str, all: bool| {
        let file = "file";
        json!({ "file_path": file, "old_string": old, "new_string": new, "replace_all": all })
    };
    assert_eq!(place.refused(Edit, edit("red", "blue", false)).await, WorkspaceError::EditAmbiguous { count: 2 });
    assert_eq!(place.refused(Edit, edit("Red", "blue", true)).await, WorkspaceError::EditNotFound);
    assert!(matches!(place.refused(Edit, edit("", "x", true)).await, WorkspaceError::BadArgument { .. }));
    assert!(matches!(place.refused(Edit, edit("red", "red", true)).await, WorkspaceError::BadArgument { .. }));
    assert_eq!(place.content("file"), "red green red\n");
    place.call(Edit, edit("green", "$0", false)).await.unwrap();
    let output = place.call(Edit, edit("red", "blue", true)).await.unwrap();
    assert_eq!(output.details["replacements"], 2);
    assert_eq!(place.content("file"), "blue $0 blue\n");
}

#[tokio::test]
async fn edits_at_the_same_time_do_not_undo_each_other() {
    let place = Place::new();
    let words: Vec<String> = (0..20).map(|number| format!("<{number}>")).collect();
    place.write("file", words.concat());
    let calls = words.iter().map(|word| {
        let workspace = place.workspace.clone();
        let arguments = object(json!({ "file_path": "file", "old_string": word, "new_string": "." }));
        tokio::spawn(async move { workspace.call(Edit, &arguments).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(place.content("file"), ".".repeat(20));
}

#[tokio::test]
async fn glob_lists_files_by_path_in_order_and_leaves_out_version_control() {
    let place = Place::new();
    for path in ["b.rs", "a/z.rs", "a/deep/y.rs", ".git/x.rs", "a/c.txt"] {
        place.write(path, "");
    }
    assert_eq!(place.text(Glob, json!({ "pattern": "**/*.rs" })).await, "a/deep/y.rs\na/z.rs\nb.rs");
    assert_eq!(place.text(Glob, json!({ "pattern": "*.{rs,txt}", "path": "a" })).await, "a/c.txt\na/z.rs");
    assert_eq!(place.text(Glob, json!({ "pattern": "*.py" })).await, "no files match");
    assert_eq!(place.refused(Glob, json!({ "pattern": "../*" })).await, WorkspaceError::OutsideRoot);
    assert_eq!(place.refused(Glob, json!({ "pattern": "*", "path": "b.rs" })).await, WorkspaceError::NotADirectory);
}

#[tokio::test]
async fn a_search_ends_at_its_limits_and_says_so() {
    let place = Place::new();
    for number in 0..2010 {
        place.write(&format!("{number:04}"), "needle\nneedle\n");
    }
    let output = place.call(Glob, json!({ "pattern": "*" })).await.unwrap();
    assert_eq!(output.details["matches"], 2000);
    assert!(output.truncated);
    let output = place.call(Grep, json!({ "pattern": "needle", "max_results": 3 })).await.unwrap();
    assert_eq!(output.text, "0000:1:needle\n0000:2:needle\n0001:1:needle\n");
    assert!(output.truncated);
}

#[tokio::test]
async fn grep_gives_path_line_and_text_and_leaves_out_binary_files() {
    let place = Place::new();
    place.write("src/a.rs", "nothing\nlet Needle = 1;\r\n");
    place.write("src/b.txt", "needle");
    place.write("src/binary", b"needle\0");
    place.write(".git/config", "needle");
    let output = place.call(Grep, json!({ "pattern": "(?-u:N)eedle|needle" })).await.unwrap();
    assert_eq!(output.text, "src/a.rs:2:let Needle = 1;\nsrc/b.txt:1:needle\n");
    assert_eq!(output.details, json!({ "matches": 2, "files": 2, "skipped_files": 1 }));
    let arguments = json!({ "pattern": "^needle$", "path": "src", "glob": "*.txt", "case_insensitive": true });
    assert_eq!(place.text(Grep, arguments).await, "src/b.txt:1:needle\n");
    assert_eq!(place.text(Grep, json!({ "pattern": "dle", "path": "src/b.txt" })).await, "src/b.txt:1:needle\n");
}

#[tokio::test]
async fn a_pattern_that_cannot_be_read_is_refused_without_repeating_it() {
    let place = Place::new();
    for pattern in ["(hunter2", "hunter2(a{1000}){1000}", "hunter2[z-a]"] {
        let refused = place.refused(Grep, json!({ "pattern": pattern })).await;
        assert!(matches!(refused, WorkspaceError::BadPattern { .. }), "{refused:?}");
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
    }
    let refused = place.refused(Glob, json!({ "pattern": "hunter2[" })).await;
    assert!(matches!(refused, WorkspaceError::BadPattern { .. }), "{refused:?}");
}

#[tokio::test]
async fn arguments_that_are_missing_unknown_or_of_another_kind_are_refused() {
    let place = Place::new();
    let refused = place.refused(Read, json!({})).await;
    assert_eq!(refused, WorkspaceError::MissingArgument { name: "file_path" });
    let refused = place.refused(Read, json!({ "file_path": "x", "encoding": "utf-8" })).await;
    assert_eq!(refused, WorkspaceError::UnknownArgument { name: "encoding".to_owned() });
    for arguments in [
        json!({ "file_path": 7 }),
        json!({ "file_path": "x", "offset": 0 }),
        json!({ "file_path": "x", "limit": -1 }),
        json!({ "file_path": "x", "limit": 1.5 }),
    ] {
        let refused = place.refused(Read, arguments).await;
        assert!(matches!(refused, WorkspaceError::BadArgument { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn a_question_is_never_answered_by_the_workspace() {
    let place = Place::new();
    let refused = place.refused(AskUserQuestion, json!({ "question": "May I?" })).await;
    assert_eq!(refused, WorkspaceError::OnlyAPersonAnswers);
}

#[tokio::test]
async fn a_link_to_a_protected_place_is_no_way_to_write_there() {
    let is_protected = |path: &std::path::Path| path.starts_with(".git");
    let place = Place::with(Limits { is_protected, ..Limits::default() });
    place.write(".git/config", "old");
    place.write(".git/hooks/sample", "");
    place.link(".git/config", "cfg");
    place.link(".git/hooks", "scripts");
    place.link("cfg", "again");
    for (tool, arguments) in [
        (Write, json!({"file_path": "cfg", "content": "evil"})),
        (Write, json!({"file_path": "again", "content": "evil"})),
        (Edit, json!({"file_path": "cfg", "old_string": "old", "new_string": "evil"})),
        (Write, json!({"file_path": "scripts/pre-commit", "content": "evil"})),
        (Write, json!({"file_path": "scripts/deep/pre-commit", "content": "evil"})),
        (WorkspaceTool::Bash, json!({"command": "echo evil > pre-commit", "working_directory": "scripts"})),
    ] {
        assert_eq!(place.refused(tool, arguments).await, WorkspaceError::LeadsToProtected, "{tool:?}");
    }
    assert_eq!(place.content(".git/config"), "old");
    assert_eq!(fs::read_dir(place.root.join(".git/hooks")).unwrap().count(), 1, "not even a directory was made");
    // Whoever names it was asked about it.
    place.text(Edit, json!({"file_path": ".git/config", "old_string": "old", "new_string": "new"})).await;
    place.text(WorkspaceTool::Bash, json!({"command": "ls", "working_directory": ".git/hooks"})).await;
    assert_eq!(place.content(".git/config"), "new");
}

#[tokio::test]
async fn a_file_that_is_replaced_is_never_more_open_than_before() {
    let place = Place::new();
    place.write("secret", "old");
    fs::set_permissions(place.root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    // Whatever appears in the directory meanwhile is looked at as it appears.
    let (root, stop) = (place.root.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let told = std::sync::Arc::clone(&stop);
    let watcher = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while !told.load(std::sync::atomic::Ordering::Relaxed) {
            let entries = fs::read_dir(&root).unwrap().flatten();
            seen.extend(
                entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.permissions().mode() & 0o777),
            );
        }
        seen
    });
    for number in 0..200 {
        place.text(Write, json!({"file_path": "secret", "content": format!("{number}")})).await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let seen = watcher.join().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|mode| *mode == 0o600), "{seen:?}");
}
