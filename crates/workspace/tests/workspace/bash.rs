//! Commands: what they print, how they end, and that nothing of them stays behind.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolgate_workspace::{Limits, Output, SandboxRequirement, WorkspaceError, WorkspaceTool};

use crate::place::{Place, object};

use WorkspaceTool::Bash;

/// Commands that run without a sandbox too must end as a whole.
fn places() -> [Place; 2] {
    [Place::new(), Place::with(Limits { sandbox: SandboxRequirement::Off, ..Limits::default() })]
}

/// Calls without waiting for the output.
fn start(place: &Place, arguments: Value) -> JoinHandle<Result<Output, WorkspaceError>> {
    let workspace = place.workspace.clone();
    let arguments = object(arguments);
    tokio::spawn(async move { workspace.call(Bash, &arguments).await })
}

/// Waits until a command has written its number.
async fn wait_for(root: &Path, file: &str) {
    while !fs::read_to_string(root.join(file)).unwrap_or_default().ends_with('\n') {
        tokio::task::yield_now().await;
    }
}

/// Waits until the process is gone: the kernel removes it after it was killed, not at once.
async fn assert_gone(root: &Path, file: &str) {
    let text = fs::read_to_string(root.join(file)).unwrap();
    let process = Path::new("/proc").join(text.trim());
    let gone = async {
        while fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the process goes on");
}

#[tokio::test]
async fn output_and_errors_come_together_in_their_order() {
    for place in places() {
        let output = place.call(Bash, json!({ "command": "echo one; echo two >&2; printf three" })).await.unwrap();
        assert_eq!(output.text, "one\ntwo\nthree");
        assert!(!output.is_error && !output.truncated);
        assert_eq!(output.details["exit_code"], 0);
        assert_eq!(output.details["sandbox"], place.workspace.sandbox().kind);
    }
}

#[tokio::test]
async fn a_command_that_fails_says_how() {
    for place in places() {
        let output = place.call(Bash, json!({ "command": "echo bad; exit 3" })).await.unwrap();
        assert_eq!((output.text.as_str(), output.is_error), ("bad\n(exit status 3)", true));
        assert_eq!(output.details["exit_code"], 3);
        let output = place.call(Bash, json!({ "command": "kill -TERM $$" })).await.unwrap();
        assert_eq!((output.text.as_str(), output.is_error), ("(killed by signal 15)", true));
    }
}

#[tokio::test]
async fn a_command_runs_where_it_is_told_without_input() {
    for place in places() {
        fs::create_dir_all(place.root.join("a/b")).unwrap();
        let output = place.text(Bash, json!({ "command": "pwd; cat; echo $?", "working_directory": "a/b" })).await;
        assert_eq!(output, format!("{}/a/b\n0\n", place.root.display()));
    }
}

#[tokio::test]
async fn a_command_has_a_clean_environment_and_its_own_temporary_directory() {
    for place in places() {
        // Cargo gives these to every test.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let text = place.text(Bash, json!({ "command": "env; echo x > \"$TMPDIR/x\" && echo wrote" })).await;
        assert!(!text.contains("CARGO_MANIFEST_DIR"), "{text}");
        assert!(text.contains("PATH="), "{text}");
        assert!(text.contains("toolgate-workspace-"), "{text}");
        assert!(text.ends_with("wrote\n"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_out_of_time_ends_with_its_grandchildren() {
    for place in places() {
        let command = "echo $$ > own; echo started; bash -c 'echo $$ > grandchild; exec sleep 1000' & wait";
        let call = start(&place, json!({ "command": command, "timeout_ms": 5000 }));
        wait_for(&place.root, "grandchild").await;
        tokio::time::advance(Duration::from_millis(4900)).await;
        assert!(!call.is_finished());
        tokio::time::advance(Duration::from_millis(200)).await;
        let output = call.await.unwrap().unwrap();
        assert_eq!(output.text, "started\n(killed after the timeout of 5000 ms)");
        assert!(output.is_error);
        assert_eq!(output.details["timed_out"], true);
        assert_eq!(output.details["exit_code"], json!(null));
        tokio::time::resume();
        assert_gone(&place.root, "own").await;
        assert_gone(&place.root, "grandchild").await;
        tokio::time::pause();
    }
}

#[tokio::test]
async fn a_child_in_the_background_neither_holds_up_the_answer_nor_survives_it() {
    for place in places() {
        let output = place.call(Bash, json!({ "command": "sleep 1000 & echo $! > child; echo done" })).await.unwrap();
        assert_eq!((output.text.as_str(), output.is_error), ("done\n", false));
        assert_gone(&place.root, "child").await;
    }
}

#[tokio::test]
async fn no_child_can_leave_the_group_that_is_killed_with_a_sandbox_or_without() {
    for place in places() {
        let command = "set -m; setsid bash -c 'echo $$ > child; exec sleep 1000' & until [ -s child ]; do :; done";
        let output = place.call(Bash, json!({ "command": command })).await.unwrap();
        assert!(!output.is_error, "{}", output.text);
        assert_gone(&place.root, "child").await;
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_ends_its_command() {
    for place in places() {
        let call = start(&place, json!({ "command": "sleep 1000 & echo $! > child; wait" }));
        wait_for(&place.root, "child").await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert_gone(&place.root, "child").await;
    }
}

#[tokio::test]
async fn of_long_output_the_beginning_and_the_end_are_kept() {
    let place = Place::with(Limits { output_bytes: 100, ..Limits::default() });
    let output = place.call(Bash, json!({ "command": "echo first; yes | head -c 5000; echo last" })).await.unwrap();
    assert!(output.text.starts_with("first\ny\n"), "{}", output.text);
    assert!(output.text.contains("\n... 4911 bytes omitted ...\n"), "{}", output.text);
    assert!(output.text.ends_with("y\nlast\n"), "{}", output.text);
    assert!(output.truncated && !output.is_error);
}

#[tokio::test]
async fn a_flood_of_output_ends_the_command() {
    for sandbox in [SandboxRequirement::WherePossible, SandboxRequirement::Off] {
        let place = Place::with(Limits { flood_bytes: 1 << 20, sandbox, ..Limits::default() });
        let output = place.call(Bash, json!({ "command": "echo $$ > own; (yes) & yes" })).await.unwrap();
        assert!(output.text.ends_with("(killed because it exceeded the output limit)"));
        assert!(output.is_error && output.truncated);
        assert_gone(&place.root, "own").await;
    }
}

#[tokio::test]
async fn limits_and_commands_beyond_bounds_are_refused() {
    let place = Place::new();
    let refused = place.refused(Bash, json!({ "command": "true", "timeout_ms": 600_001 })).await;
    assert_eq!(refused, WorkspaceError::TimeoutTooLong { longest: Duration::from_secs(600) });
    for command in ["", "echo a\0b", &"x".repeat(100_001)] {
        let refused = place.refused(Bash, json!({ "command": command })).await;
        assert!(matches!(refused, WorkspaceError::BadArgument { .. }), "{refused:?}");
    }
    let output = place.text(Bash, json!({ "command": format!("echo {}", "x".repeat(90_000)) })).await;
    assert_eq!(output.len(), 90_001);
}
