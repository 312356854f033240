//! Hides files: in a separate mount namespace, hidden paths are covered by empty, immutable mounts. Landlock keeps a
//! command from reading such files, but not from changing their mode or owner.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount,
};
use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;

use super::Confinement;

/// The namespaces that this process is in after [`hide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Nothing is hidden: there is nothing to hide, or this system does not allow the namespace.
    No,
    Mounts,
    /// In a mount namespace inside a user namespace, in which processes are counted separately.
    MountsAndUsers,
}

/// Hides the paths of the confinement if the system allows it. A partial failure is an error.
pub fn hide(confinement: &Confinement) -> io::Result<Hidden> {
    let exists = |path: &&std::path::PathBuf| fs::symlink_metadata(path).is_ok();
    let (Some(scratch), true) = (confinement.writable.last(), confinement.hidden.iter().any(|path| exists(&path)))
    else {
        return Ok(Hidden::No);
    };
    let hidden = match enter() {
        Ok(hidden) => hidden,
        Err(_unavailable) => return Ok(Hidden::No),
    };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // A separate file system for the two empty objects. It is mounted over the command's temporary directory until they
    // are in place.
    mount("tmpfs", scratch, "tmpfs", flags, c"size=64k,mode=0700")?;
    let (directory, file) = (scratch.join("directory"), scratch.join("file"));
    fs::create_dir(&directory)?;
    OpenOptions::new().create_new(true).write(true).mode(0o400).open(&file)?;
    for path in &confinement.hidden {
        cover(path, &directory, &file, flags)?;
    }
    unmount(scratch, UnmountFlags::DETACH)?;
    Ok(hidden)
}

fn cover(path: &Path, directory: &Path, file: &Path, flags: MountFlags) -> io::Result<()> {
    // Paths inside another hidden directory are already hidden.
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    mount_bind(if metadata.is_dir() { directory } else { file }, path)?;
    mount_remount(path, flags | MountFlags::BIND | MountFlags::RDONLY, c"")?;
    Ok(())
}

/// Enters a mount namespace: directly as root, otherwise inside a user namespace.
fn enter() -> io::Result<Hidden> {
    match unshare(UnshareFlags::NEWNS) {
        Ok(()) => return Ok(Hidden::Mounts),
        Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    // Map the user to itself, so that file owners look the same as outside.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(Hidden::MountsAndUsers)
}

/// Sound: the file descriptor table stays shared, and the process has one thread.
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    #[expect(deprecated, reason = "its replacement is unsafe because of a flag that is not used here")]
    rustix::thread::unshare(flags)
}
