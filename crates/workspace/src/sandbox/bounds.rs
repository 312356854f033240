//! How much a command may take: memory and file size of each of its processes, and their number.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Resource, Rlimit, getuid, setrlimit};

use super::hide::Hidden;
use crate::limits::Bounds;

/// Bounds this process, and all that it starts.
pub fn restrict(bounds: Bounds, hidden: Hidden) -> io::Result<()> {
    // In a user namespace of its own the processes of the command are counted, else all of the user's.
    let others = if hidden == Hidden::MountsAndUsers { 0 } else { tasks_of_user() };
    limit(Resource::Data, bounds.memory)?;
    limit(Resource::Fsize, bounds.file_size)?;
    limit(Resource::Nproc, bounds.processes.saturating_add(others))?;
    limit(Resource::Core, 0)?;
    Ok(())
}

/// Both limits, so that the command cannot raise what it has; never above what there was.
fn limit(resource: Resource, most: u64) -> rustix::io::Result<()> {
    let before = rustix::process::getrlimit(resource);
    let most = before.maximum.map_or(most, |maximum| maximum.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
}

/// How many threads the user has now. One that ends meanwhile is counted or not.
fn tasks_of_user() -> u64 {
    let user = getuid().as_raw();
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let own = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user);
    let tasks = |entry: fs::DirEntry| fs::metadata(entry.path().join("task")).ok();
    // Each thread is a directory, and each directory a link besides the two of the directory itself.
    processes.flatten().filter(own).filter_map(tasks).map(|tasks| tasks.nlink().saturating_sub(2)).sum()
}
