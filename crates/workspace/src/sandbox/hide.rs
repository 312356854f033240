//! Takes files out of sight: in a mount namespace of its own, what is hidden is covered by something empty that cannot be
//! changed. Landlock keeps a command from reading such files, but not from changing their mode or owner by name.

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

/// Where this process is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Nothing is out of sight: there is nothing to hide, or this system gives no namespace.
    No,
    /// In a mount namespace.
    Mounts,
    /// In a mount namespace within a user namespace, in which processes are counted apart.
    MountsAndUsers,
}

/// Hides what the confinement says, where the system lets it. What failed half-way is an error.
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
    // A file system of its own for the two empty things; mounted where the command has its temporary files until these
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
    // What lies in another hidden directory is out of sight already.
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    mount_bind(if metadata.is_dir() { directory } else { file }, path)?;
    mount_remount(path, flags | MountFlags::BIND | MountFlags::RDONLY, c"")?;
    Ok(())
}

/// Enters a mount namespace: as root by itself, as anybody else within a user namespace.
fn enter() -> io::Result<Hidden> {
    match unshare(UnshareFlags::NEWNS) {
        Ok(()) => return Ok(Hidden::Mounts),
        Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
    // Everybody keeps their number, so that files look as they do outside.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(Hidden::MountsAndUsers)
}

/// The table of open files stays shared, which is all that could be unsound about the call; and there is one thread.
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    #[expect(deprecated, reason = "its successor is an unsafe function, for the sake of a flag that is not used here")]
    rustix::thread::unshare(flags)
}
