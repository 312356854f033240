//! Resource limits of a command: memory and file size of each process, and the number of processes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Resource, Rlimit, getuid, setrlimit};

use super::hide::Hidden;
use crate::limits::Bounds;

/// Limits this process and everything that it starts.
pub fn restrict(bounds: Bounds, hidden: Hidden) -> io::Result<()> {
    // In a separate user namespace the kernel counts the processes of the command only, otherwise all processes of the
    // user.
    let others = if hidden == Hidden::MountsAndUsers { 0 } else { tasks_of_user() };
    limit(Resource::Data, bounds.memory)?;
    limit(Resource::Fsize, bounds.file_size)?;
    limit(Resource::Nproc, bounds.processes.saturating_add(others))?;
    limit(Resource::Core, 0)?;
    Ok(())
}

/// Sets the soft and the hard limit, so that the command cannot raise it; never above the existing hard limit.
fn limit(resource: Resource, most: u64) -> rustix::io::Result<()> {
    let before = rustix::process::getrlimit(resource);
    let most = before.maximum.map_or(most, |maximum| maximum.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
}

/// The number of threads that the user has now; approximate, because threads may end while they are counted.
fn tasks_of_user() -> u64 {
    let user = getuid().as_raw();
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let own = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user);
    let tasks = |entry: fs::DirEntry| fs::metadata(entry.path().join("task")).ok();
    // Each thread is a directory, and each directory adds a link to the two of its parent.
    processes.flatten().filter(own).filter_map(tasks).map(|tasks| tasks.nlink().saturating_sub(2)).sum()
}
