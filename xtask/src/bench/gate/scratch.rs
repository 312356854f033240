//! A directory for one run, in the build directory: that is on a disk, while the system's temporary directory may be in
//! memory, where a flush costs nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// Removed on drop.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a new one below `parent`.
    pub fn make(parent: &Path) -> Result<Self, String> {
        let path = parent.join(format!("bench-gate-{}", std::process::id()));
        // Left by an earlier run of the same number that was killed.
        if path.exists() {
            fs::remove_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The worst that a failure leaves behind is files in the build directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_directory_is_gone_with_its_files() {
        let scratch = Scratch::make(&std::env::temp_dir()).unwrap();
        let file = scratch.write("file", "text").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        drop(scratch);
        assert!(!file.exists());
    }
}
