//! The choice of a sandbox, and bubblewrap where it is installed: most systems that run these tests have Landlock,
//! which would be chosen before it.

use std::fs;

use super::probe::output_of;
use super::*;
use crate::limits::Bounds;

fn limits(sandbox: SandboxRequirement) -> Limits {
    // Neither a confiner nor anything else that could be one.
    Limits { sandbox, confiner: Some("/dev/null".into()), ..Limits::default() }
}

#[test]
fn a_program_that_does_not_confine_itself_is_no_sandbox() {
    let shell = PathBuf::from("/bin/sh");
    let place = tempfile::tempdir().unwrap();
    let echo = find_program("echo").unwrap();
    for confiner in [PathBuf::from("/dev/null"), echo, std::env::current_exe().unwrap()] {
        let method = Method::Landlock { confiner };
        probe(&method, &shell, place.path()).unwrap_err();
    }
}

#[test]
fn what_is_not_enforced_is_said() {
    let report =
        report(None, &limits(SandboxRequirement::WherePossible), &["landlock: no kernel".to_owned()], Path::new("sh"));
    assert_eq!((report.kind, report.writes_confined, report.network_off), ("none", false, false));
    assert!(report.note.contains("WITHOUT a sandbox"), "{}", report.note);
    assert!(report.note.contains("landlock: no kernel"), "{}", report.note);
    assert!(report.note.contains("bash is not installed"), "{}", report.note);
}

#[test]
fn a_required_sandbox_that_is_missing_refuses_every_command() {
    let root = tempfile::tempdir().unwrap();
    let mut sandbox = Sandbox::choose(root.path(), &limits(SandboxRequirement::Off)).unwrap();
    sandbox.command("true", root.path()).unwrap();
    sandbox.refused = Some("none here".to_owned());
    let refused = sandbox.command("true", root.path()).unwrap_err();
    assert_eq!(refused, WorkspaceError::NoSandbox { why: "none here".to_owned() });
}

#[test]
fn bubblewrap_confines_writes_hides_directories_and_has_no_network() {
    let Some(program) = find_program("bwrap") else {
        eprintln!("SKIPPED: bubblewrap is not installed");
        return;
    };
    // Built for the tests beside these, which lie one directory deeper.
    let own = std::env::current_exe().unwrap();
    let confiner = own.ancestors().nth(2).unwrap().join("workspace-exec-test");
    if !confiner.exists() {
        eprintln!("SKIPPED: {} is not built", confiner.display());
        return;
    }
    let method = Method::Bubblewrap { program, confiner };
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let shell = find_program("bash").unwrap();
    if let Err(why) = probe(&method, &shell, &base) {
        eprintln!("SKIPPED: bubblewrap does not work here: {why}");
        return;
    }
    let (root, hidden) = (base.join("root"), base.join("hidden"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("key"), "secret").unwrap();
    let confinement = Confinement {
        level: Level::Inside,
        bounds: Bounds::default(),
        writable: vec![root.clone()],
        hidden: vec![hidden.clone()],
        network: false,
    };
    let line = format!(
        "echo in > file; cat {key} 2>&1; echo out > {base}/file; ls /sys/class/net; cat < /dev/tcp/127.0.0.1/1; true",
        key = hidden.join("key").display(),
        base = base.display(),
    );
    let words = [shell.as_os_str(), OsStr::new("-c"), OsStr::new(&line)];
    let said = output_of(method.command(&confinement, Some(&root), &words)).unwrap();
    assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "in\n");
    assert!(!base.join("file").exists());
    assert!(!said.stdout.contains("secret"), "{}", said.stdout);
    assert!(said.stderr.contains("/dev/tcp/127.0.0.1/1"), "{}", said.stderr);
}
