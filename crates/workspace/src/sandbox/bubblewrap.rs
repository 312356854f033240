//! bubblewrap, for systems without Landlock: the shell starts in separate mount, process and network namespaces.

use std::ffi::OsString;
use std::path::Path;

use super::Confinement;

/// The arguments between `bwrap` and the shell. Later mounts cover earlier ones.
pub fn arguments(confinement: &Confinement, directory: Option<&Path>) -> Vec<OsString> {
    let mut words: Vec<OsString> = [
        "--die-with-parent",
        "--new-session",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        // The directories with the sockets of services that could act for the command outside the sandbox.
        "--tmpfs",
        "/tmp",
        "--tmpfs",
        "/run",
    ]
    .map(OsString::from)
    .to_vec();
    if confinement.network {
        words.extend(["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"].map(OsString::from));
    } else {
        words.push("--unshare-net".into());
    }
    for path in &confinement.writable {
        words.extend(["--bind".into(), path.into(), path.into()]);
    }
    // A mount point cannot be created in a directory that is not writable.
    for path in confinement.hidden.iter().filter(|path| path.exists()) {
        if path.is_dir() {
            words.extend(["--tmpfs".into(), path.into(), "--remount-ro".into(), path.into()]);
        } else {
            words.extend(["--ro-bind".into(), "/dev/null".into(), path.into()]);
        }
    }
    if let Some(directory) = directory {
        words.extend(["--chdir".into(), directory.into()]);
    }
    words.push("--".into());
    words
}
