//! Every known way out of the root, for every tool that takes a path.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolgate_workspace::{Limits, Workspace, WorkspaceError, WorkspaceTool};

use crate::place::{Place, object};

use WorkspaceTool::{Bash, Edit, Glob, Grep, Read, Write};

/// A call of each tool on the path.
fn calls(path: &str) -> [(WorkspaceTool, Value); 6] {
    [
        (Read, json!({ "file_path": path })),
        (Write, json!({ "file_path": path, "content": "changed" })),
        (Edit, json!({ "file_path": path, "old_string": "needle", "new_string": "changed" })),
        (Glob, json!({ "pattern": "*", "path": path })),
        (Grep, json!({ "pattern": "needle", "path": path })),
        (Bash, json!({ "command": "true", "working_directory": path })),
    ]
}

async fn assert_all_refused(place: &Place, path: &str) {
    for (tool, arguments) in calls(path) {
        let refused = place.refused(tool, arguments).await;
        assert_eq!(refused, WorkspaceError::OutsideRoot, "{tool:?} {path}");
    }
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "needle outside");
    assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn parent_directories_and_absolute_paths_elsewhere_are_refused() {
    let place = Place::new();
    fs::create_dir(place.root.join("inside")).unwrap();
    let secret = place.outside.join("secret");
    let upwards = format!("{}/../outside/secret", place.root.display());
    let lookalike = format!("{}-other/file", place.root.display());
    for path in [
        "../outside/secret",
        "inside/../../outside/secret",
        "inside/..",
        "..",
        "/",
        "/proc/self/root/etc/passwd",
        secret.to_str().unwrap(),
        &upwards,
        &lookalike,
    ] {
        assert_all_refused(&place, path).await;
    }
}

#[tokio::test]
async fn links_to_files_and_directories_outside_are_refused() {
    let place = Place::new();
    place.link(place.outside.join("secret"), "absolute");
    place.link("../outside/secret", "relative");
    place.link("../outside", "directory");
    place.link("relative", "chain");
    place.link("/proc/self/root", "everything");
    place.link("/proc/self/cwd", "here");
    let magic = place.outside.strip_prefix("/").unwrap().join("secret");
    for path in [
        "absolute",
        "relative",
        "chain",
        "directory",
        "directory/secret",
        "directory/new",
        "everything",
        &format!("everything/{}", magic.display()),
        "here",
    ] {
        assert_all_refused(&place, path).await;
    }
}

#[tokio::test]
async fn a_link_to_nothing_is_not_written_through() {
    let place = Place::new();
    place.link(place.outside.join("new"), "outward");
    place.link("missing", "inward");
    place.write("other", "");
    for path in ["outward", "inward"] {
        place.refused(Write, json!({ "file_path": path, "content": "x" })).await;
    }
    assert!(!place.outside.join("new").exists());
    assert!(!place.root.join("missing").exists());
}

#[tokio::test]
async fn a_link_that_stays_inside_is_followed_and_kept() {
    let place = Place::new();
    place.write("real/file", "needle");
    place.link("real/file", "link");
    place.link("real", "directory");
    assert_eq!(place.text(Read, json!({ "file_path": "link" })).await, "needle");
    assert_eq!(place.text(Read, json!({ "file_path": "directory/file" })).await, "needle");
    place.call(Write, json!({ "file_path": "link", "content": "changed" })).await.unwrap();
    assert_eq!(place.content("real/file"), "changed");
    assert!(fs::symlink_metadata(place.root.join("link")).unwrap().is_symlink());
}

#[tokio::test]
async fn searches_do_not_follow_links() {
    let place = Place::new();
    place.write("file", "needle");
    place.link("../outside", "out");
    place.link("../outside/secret", "secret");
    place.link(".", "loop");
    assert_eq!(place.text(Grep, json!({ "pattern": "needle" })).await, "file:1:needle\n");
    assert_eq!(place.text(Glob, json!({ "pattern": "**/*" })).await, "file\nloop\nout\nsecret");
}

#[tokio::test]
async fn another_name_of_a_file_outside_keeps_the_old_content() {
    let place = Place::new();
    fs::hard_link(place.outside.join("secret"), place.root.join("twin")).unwrap();
    place.call(Write, json!({ "file_path": "twin", "content": "changed" })).await.unwrap();
    assert_eq!(place.content("twin"), "changed");
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "needle outside");
}

#[tokio::test]
async fn a_directory_that_is_swapped_for_a_link_meanwhile_leads_nowhere() {
    let place = Place::new();
    place.write("real/secret", "inside");
    place.link("real", "swap");
    let done = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (root, done) = (place.root.clone(), Arc::clone(&done));
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for target in ["../outside", "real"] {
                    std::os::unix::fs::symlink(target, root.join("next")).unwrap();
                    fs::rename(root.join("next"), root.join("swap")).unwrap();
                }
            }
        })
    };
    for _ in 0..300 {
        if let Ok(output) = place.call(Read, json!({ "file_path": "swap/secret" })).await {
            assert_ne!(output.text, "needle outside");
        }
        let _either = place.call(Write, json!({ "file_path": "swap/new", "content": "x" })).await;
        if let Ok(output) = place.call(Grep, json!({ "pattern": "needle", "path": "swap" })).await {
            assert_eq!(output.details["matches"], 0);
        }
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn special_files_are_refused_and_not_waited_for() {
    let place = Place::new();
    let status = std::process::Command::new("mkfifo").arg(place.root.join("pipe")).status().unwrap();
    assert!(status.success());
    let _listener = std::os::unix::net::UnixListener::bind(place.root.join("socket")).unwrap();
    for path in ["pipe", "socket"] {
        assert_eq!(place.refused(Read, json!({ "file_path": path })).await, WorkspaceError::Special);
        let write = json!({ "file_path": path, "content": "x" });
        assert_eq!(place.refused(Write, write).await, WorkspaceError::Special);
        let grep = json!({ "pattern": "x", "path": path });
        assert_eq!(place.refused(Grep, grep).await, WorkspaceError::Special);
    }
    assert_eq!(place.text(Grep, json!({ "pattern": "x" })).await, "no matches");
}

#[tokio::test]
async fn a_root_that_is_a_link_is_followed_once() {
    let place = Place::new();
    place.write("file", "inside");
    let named = place.outside.join("link");
    std::os::unix::fs::symlink(&place.root, &named).unwrap();
    let workspace = Workspace::open(&named, Limits::default()).unwrap();
    assert_eq!(workspace.root(), place.root);
    fs::remove_file(&named).unwrap();
    std::os::unix::fs::symlink("/", &named).unwrap();
    for path in ["file".into(), named.join("file"), place.root.join("file")] {
        let arguments = object(json!({ "file_path": path }));
        assert_eq!(workspace.call(Read, &arguments).await.unwrap().text, "inside");
    }
}

#[test]
fn a_root_that_is_everything_a_file_or_meets_what_is_hidden_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("data/below")).unwrap();
    fs::write(base.join("file"), "").unwrap();
    let open = |root: &Path, hidden: &Path| {
        let limits = Limits { hidden: vec![hidden.to_path_buf()], ..Limits::default() };
        Workspace::open(root, limits).err()
    };
    assert_eq!(open(Path::new("/"), &base), Some(WorkspaceError::RootIsEverything));
    assert!(matches!(open(&base.join("file"), &base.join("data")), Some(WorkspaceError::Root { .. })));
    assert!(matches!(open(&base.join("missing"), &base.join("data")), Some(WorkspaceError::Root { .. })));
    std::os::unix::fs::symlink(base.join("data"), base.join("link")).unwrap();
    for (root, hidden) in [("data", "data"), ("data/below", "data"), ("data", "data/below"), ("data", "link/new")] {
        let refused = open(&base.join(root), &base.join(hidden));
        assert!(matches!(refused, Some(WorkspaceError::RootMeetsHidden { .. })), "{root} {hidden} {refused:?}");
    }
}
