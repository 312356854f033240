//! Landlock rules: reads everywhere except in hidden directories, writes only where allowed, no signals or sockets to
//! processes outside. The kernel enforces them on the process and all its descendants.

use std::fs::{self, File, FileType};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::{ConfineError, Confinement};

/// The first version with the truncate right; without it a command could empty files outside.
const NEEDED: ABI = ABI::V3;

/// The newest version whose rights are used if the kernel has them.
const KNOWN: ABI = ABI::V9;

/// Excluded except for `HARMLESS`: root could read whole disks there.
const DEVICES: &str = "/dev";

/// Devices that store and reveal nothing.
const HARMLESS: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Confines this thread and the program that it executes.
pub fn restrict(confinement: &Confinement) -> Result<(), ConfineError> {
    let confine_error = |error: RulesetError| ConfineError::Landlock(error.to_string());
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .map_err(|_| ConfineError::Unsupported)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .map_err(confine_error)?;
    if !confinement.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN)).map_err(confine_error)?;
    }
    let mut created = ruleset.create().map_err(confine_error)?;

    let mut hidden = confinement.hidden.clone();
    hidden.push(DEVICES.into());
    let mut readable = Vec::new();
    find_readable(Path::new("/"), &hidden, &mut readable);
    for path in readable {
        // A path that cannot be opened cannot be read either.
        if let Ok((place, kind)) = open(&path)
            && !kind.is_symlink()
        {
            created = created.add_rule(rule(place, kind, AccessFs::from_read(KNOWN))).map_err(confine_error)?;
        }
    }
    for path in HARMLESS.map(Path::new) {
        if let Ok((place, kind)) = open(path) {
            created = created.add_rule(rule(place, kind, AccessFs::from_all(KNOWN))).map_err(confine_error)?;
        }
    }
    // A device node created below the root would give access to the disk behind it.
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    for path in &confinement.writable {
        let (place, kind) = open(path).map_err(|error| ConfineError::Landlock(error.kind().to_string()))?;
        created = created.add_rule(rule(place, kind, AccessFs::from_all(KNOWN) & !devices)).map_err(confine_error)?;
    }
    let status = created.restrict_self().map_err(confine_error)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(ConfineError::Unsupported),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// Collects the paths that cover everything below `place` except the hidden directories. Landlock has no exceptions, so
/// the parents of a hidden directory are left out and all their other entries are added.
fn find_readable(place: &Path, hidden: &[PathBuf], found: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| place.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(place)) {
        found.push(place.to_path_buf());
        return;
    }
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        // A link could lead to a hidden directory; its target is covered by its own path.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            find_readable(&entry.path(), hidden, found);
        }
    }
}

/// Opens the path itself without following a link in its last component.
fn open(path: &Path) -> io::Result<(File, FileType)> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let kind = file.metadata()?.file_type();
    Ok((file, kind))
}

fn rule(place: File, kind: FileType, rights: BitFlags<AccessFs>) -> PathBeneath<File> {
    let rights = if kind.is_dir() { rights } else { rights & AccessFs::from_file(KNOWN) };
    PathBeneath::new(place, rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_directories_and_the_links_and_ways_to_them_are_left_out() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        for place in ["a/secret", "a/open", "b"] {
            fs::create_dir_all(base.join(place)).unwrap();
        }
        fs::write(base.join("a/file"), "").unwrap();
        std::os::unix::fs::symlink(base.join("a"), base.join("back")).unwrap();
        let mut found = Vec::new();
        find_readable(base, &[base.join("a/secret"), base.join("b/not-yet-made")], &mut found);
        found.sort();
        assert_eq!(found, [base.join("a/file"), base.join("a/open")]);
    }

    #[test]
    fn with_nothing_hidden_one_rule_covers_all() {
        let mut found = Vec::new();
        find_readable(Path::new("/"), &[], &mut found);
        assert_eq!(found, [Path::new("/")]);
    }
}
