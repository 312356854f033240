//! What a confined command cannot do. Skipped, loudly, where the system offers no sandbox.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use serde_json::json;
use toolgate_workspace::{Bounds, CONFINE_WORD, Limits, SandboxRequirement, WorkspaceTool};

use crate::place::Place;

use WorkspaceTool::Bash;

/// A place whose commands are confined in whatever way the system offers; none where it offers none.
fn sandboxed(change: impl FnOnce(&std::path::Path) -> Limits) -> Option<Place> {
    let place = Place::within(change);
    let report = place.workspace.sandbox();
    if report.kind != "none" {
        assert!(report.writes_confined);
        return Some(place);
    }
    eprintln!("SKIPPED: {}", report.note);
    None
}

/// Whether the system gives mount namespaces, so that files can be hidden.
fn gives_mount_namespaces() -> bool {
    let succeeds = |options: &[&str]| {
        let unshared = Command::new("unshare").args(options).arg("true").stderr(Stdio::null()).status();
        unshared.is_ok_and(|status| status.success())
    };
    succeeds(&["-m"]) || succeeds(&["-Urm"])
}

/// Whether the system has Landlock: a program that has nothing to hide can confine itself by it.
fn has_landlock() -> bool {
    let mut confined = Command::new(env!("CARGO_BIN_EXE_workspace-exec-test"));
    confined.args([CONFINE_WORD, "--write"]).arg(std::env::temp_dir()).args(["--", "/bin/sh", "-c", "true"]);
    confined.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A place whose commands are confined by Landlock; none where there is no such thing, or where it can hide nothing.
fn confined(change: impl FnOnce(&std::path::Path) -> Limits) -> Option<Place> {
    let place = Place::within(change);
    let report = place.workspace.sandbox();
    if report.kind == "landlock" {
        assert!(report.writes_confined);
        return Some(place);
    }
    assert!(!has_landlock() || !gives_mount_namespaces(), "Landlock is there and is not used: {}", report.note);
    eprintln!("SKIPPED: {}", report.note);
    None
}

#[tokio::test]
async fn a_confined_command_writes_below_the_root_and_nowhere_else() {
    let Some(place) = confined(|_| Limits::default()) else { return };
    let outside = place.outside.display();
    let command = format!(
        "echo in > file; mkdir -p d/e && mv file d/e/file && ln -s x d/link; echo void > /dev/null && echo void; \
         echo out > {outside}/new; echo out >> {outside}/secret; rm {outside}/secret; truncate -s 0 {outside}/secret; \
         ln {outside}/secret twin; mv {outside}/secret here; mkdir {outside}/d; echo out > ~/toolgate-escape; \
         echo out > /tmp/toolgate-escape; true"
    );
    let output = place.call(Bash, json!({ "command": command })).await.unwrap();
    assert_eq!(place.content("d/e/file"), "in\n");
    assert!(output.text.starts_with("void\n"), "{}", output.text);
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "needle outside");
    assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&place.root).unwrap().count(), 1);
    assert!(!std::path::Path::new("/tmp/toolgate-escape").exists());
    assert_eq!(output.details["sandbox"], "landlock");
}

#[tokio::test]
async fn a_confined_command_opens_no_socket() {
    let Some(place) = confined(|_| Limits::default()) else { return };
    assert!(place.workspace.sandbox().network_off);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for kind in ["tcp", "udp"] {
        let command = format!("echo x > /dev/{kind}/127.0.0.1/{port}");
        let output = place.call(Bash, json!({ "command": command })).await.unwrap();
        assert!(output.is_error && output.text.contains("Permission denied"), "{}", output.text);
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn an_allowed_network_is_reached() {
    let Some(place) = confined(|_| Limits { network: true, ..Limits::default() }) else { return };
    assert!(!place.workspace.sandbox().network_off);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let output = place.call(Bash, json!({ "command": format!("echo x > /dev/tcp/127.0.0.1/{port}") })).await.unwrap();
    assert!(!output.is_error, "{}", output.text);
}

#[tokio::test]
async fn a_hidden_directory_is_not_read_by_any_path() {
    let change = |base: &std::path::Path| Limits { hidden: vec![base.join("hidden")], ..Limits::default() };
    let Some(place) = confined(change) else { return };
    let hidden = place.outside.with_file_name("hidden");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join("key"), "classified").unwrap();
    place.link(&hidden, "link");
    let (key, secret) = (hidden.join("key"), place.outside.join("secret"));
    let command = format!(
        "cat {key}; ls {hidden}; cat link/key; cat /proc/self/root{key}; cp {key} .; ln {key} .; cat {secret}",
        key = key.display(),
        hidden = hidden.display(),
        secret = secret.display(),
    );
    let output = place.call(Bash, json!({ "command": command })).await.unwrap();
    assert!(!output.text.contains("classified"), "{}", output.text);
    assert!(!output.text.lines().any(|line| line == "key"), "{}", output.text);
    assert!(output.text.ends_with("needle outside"), "{}", output.text);
    assert_eq!(fs::read_dir(&place.root).unwrap().count(), 1);
}

#[tokio::test]
async fn a_confined_command_does_not_reach_the_process_that_started_it() {
    let Some(place) = confined(|_| Limits::default()) else { return };
    let own = std::process::id();
    let command = format!("cat /proc/{own}/environ; cat /proc/{own}/fd/0; kill -0 {own}; kill -0 $$ && echo alive");
    let output = place.call(Bash, json!({ "command": command })).await.unwrap();
    assert!(!output.text.contains("CARGO_MANIFEST_DIR"), "{}", output.text);
    for refused in ["environ: Permission denied", "fd/0: Permission denied", "Operation not permitted"] {
        assert!(output.text.contains(refused), "{}", output.text);
    }
    assert!(output.text.ends_with("alive\n"), "{}", output.text);
}

#[tokio::test]
async fn a_confined_command_makes_no_device_and_reads_only_harmless_ones() {
    let Some(place) = confined(|_| Limits::default()) else { return };
    let command = "mknod device c 1 3; cat /dev/kmsg; cat /dev/mem; ls /dev; head -c 4 /dev/urandom | wc -c";
    let output = place.call(Bash, json!({ "command": command })).await.unwrap();
    assert!(!place.root.join("device").exists());
    assert_eq!(output.text.lines().count(), 5, "{}", output.text);
    assert!(output.text.ends_with("4\n"), "{}", output.text);
}

#[tokio::test]
async fn a_confined_command_has_no_terminal() {
    let Some(place) = confined(|_| Limits::default()) else { return };
    let output = place.call(Bash, json!({ "command": "echo typed > /dev/tty" })).await.unwrap();
    assert!(output.is_error, "{}", output.text);
}

#[tokio::test]
async fn a_command_without_a_sandbox_says_so() {
    let place = Place::with(Limits { sandbox: SandboxRequirement::Off, ..Limits::default() });
    let report = place.workspace.sandbox();
    assert_eq!((report.kind, report.writes_confined, report.network_off), ("none", false, false));
    assert!(report.note.contains("WITHOUT a sandbox"), "{}", report.note);
    let output = place.call(Bash, json!({ "command": "true" })).await.unwrap();
    assert_eq!(output.details["sandbox"], "none");
}

#[tokio::test]
async fn toolgates_files_do_not_exist_for_a_command() {
    // Not among temporary files, of which bubblewrap shows none in any case.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [hidden, file] = ["hidden", "master.key"].map(|name| elsewhere.path().canonicalize().unwrap().join(name));
    let limits = Limits { hidden: vec![file.clone(), hidden.clone()], ..Limits::default() };
    let Some(place) = sandboxed(|_| limits) else { return };
    fs::create_dir(&hidden).unwrap();
    for path in [hidden.join("toolgate.toml"), file.clone()] {
        fs::write(&path, "classified").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let command = format!(
        "cat {file} {hidden}/toolgate.toml; chmod 644 {file} {hidden} {hidden}/toolgate.toml; touch {file}; \
         chown 1:1 {file} {hidden}/toolgate.toml; mv {file} x; test -s {file} && echo seen; \
         test -e {hidden}/toolgate.toml && echo seen; chmod 755 . && echo own",
        file = file.display(),
        hidden = hidden.display(),
    );
    let output = place.call(Bash, json!({ "command": command })).await.unwrap();
    assert!(!output.text.contains("classified"), "{}", output.text);
    assert!(output.text.ends_with("own\n"), "its own files are still its own: {}", output.text);
    if !place.workspace.sandbox().own_files_hidden {
        assert!(!gives_mount_namespaces(), "they can be hidden: {}", place.workspace.sandbox().note);
        eprintln!("SKIPPED in part: {}", place.workspace.sandbox().note);
        return;
    }
    assert!(!output.text.contains("seen"), "{}", output.text);
    for path in [hidden.join("toolgate.toml"), file] {
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.uid()), (0o600, rustix::process::getuid().as_raw()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "classified");
    }
    assert_eq!(fs::metadata(&hidden).unwrap().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn a_confined_command_of_root_changes_no_owner_and_no_mode_of_another_account() {
    let Some(place) = sandboxed(|_| Limits::default()) else { return };
    if !rustix::process::getuid().is_root() {
        eprintln!("SKIPPED: nobody but root could");
        return;
    }
    place.write("own", "");
    let theirs = place.outside.join("secret");
    std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
    let before = fs::metadata(&theirs).unwrap();
    let command = format!("chown 1:1 own; chmod 0604 {theirs}; chown 0:0 {theirs}; true", theirs = theirs.display());
    place.call(Bash, json!({ "command": command })).await.unwrap();
    let after = fs::metadata(&theirs).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_eq!(fs::metadata(place.root.join("own")).unwrap().uid(), 0);
}

#[tokio::test]
async fn a_confined_command_makes_no_namespace_and_shares_no_memory_by_number() {
    let Some(place) = sandboxed(|_| Limits::default()) else { return };
    for command in ["unshare -U true", "unshare -Ur true", "unshare -m true", "ipcmk -M 4096", "ipcmk -S 1", "ipcmk -Q"]
    {
        let output = place.call(Bash, json!({ "command": command })).await.unwrap();
        assert!(output.is_error && !output.text.contains("not found"), "{command}: {}", output.text);
    }
    // Programs and threads are started as ever.
    assert_eq!(place.text(Bash, json!({ "command": "(echo a) | cat; echo b & wait" })).await, "a\nb\n");
}

#[tokio::test]
async fn what_a_command_takes_is_bounded() {
    for sandbox in [SandboxRequirement::WherePossible, SandboxRequirement::Off] {
        let bounds = Bounds { memory: 64 << 20, processes: 64, file_size: 1 << 20 };
        let place = Place::with(Limits { bounds, sandbox, ..Limits::default() });
        let text = place.text(Bash, json!({ "command": "ulimit -d; ulimit -f; ulimit -c; ulimit -u" })).await;
        let numbers: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers[..3], [64 << 10, 1 << 10, 0]);
        let own = rustix::process::getrlimit(rustix::process::Resource::Nproc).maximum.unwrap_or(u64::MAX);
        assert!((64..own).contains(&numbers[3]), "{text}");
        let output = place.call(Bash, json!({ "command": "head -c 2000000 /dev/zero > large" })).await.unwrap();
        assert!(output.is_error, "{}", output.text);
        assert_eq!(fs::metadata(place.root.join("large")).unwrap().len(), 1 << 20);
        let output = place.call(Bash, json!({ "command": "x=$(head -c 90000000 /dev/zero | tr '\\0' x); echo ${#x}" }));
        let output = output.await.unwrap();
        assert!(!output.text.contains("90000000"), "{}", output.text);
        let output = place.call(Bash, json!({ "command": "ulimit -d unlimited" })).await.unwrap();
        assert!(output.is_error, "a bound cannot be lifted: {}", output.text);
    }
}
