//! Resolves the paths of calls on this machine, for rules that match them by name.

use std::fs;
use std::path::{Path, PathBuf};

use toolgate_approval::Links;
use toolgate_gate::builtin;
use toolgate_model::approval::Workspace;

/// The maximum length of a chain of dangling links.
const LINKS: usize = 40;

/// Follows the links of this machine's files.
#[derive(Debug)]
pub struct FileLinks {
    /// The directory that the tools of this machine are limited to.
    root: Option<PathBuf>,
}

impl FileLinks {
    /// With the root of the workspace, if there is one.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self { root }
    }
}

impl Links for FileLinks {
    fn resolve(&self, tool: &str, workspace: Option<&Workspace>, path: &str) -> Option<String> {
        // The workspace tools work in its root whatever the session says; others work in the directory of their
        // session.
        let base = match &self.root {
            Some(root) if builtin::is_workspace_tool(tool) => root,
            _ => Path::new(workspace?.as_str()),
        };
        if !base.is_absolute() || path.contains('\0') || path.starts_with(['~', '$']) {
            return None;
        }
        let path = path.strip_prefix("file://").unwrap_or(path);
        Some(follow(&base.join(path), LINKS).to_string_lossy().into_owned())
    }
}

/// The path without links, as far as it exists. A dangling link is followed too: writing to it creates its target.
fn follow(path: &Path, links: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_path_buf() };
    match fs::read_link(path) {
        Ok(target) if links > 0 => follow(&parent.join(target), links - 1),
        _ => follow(parent, links).join(name),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::write(root.join(".git/config"), "").unwrap();
        symlink(".git/config", root.join("cfg")).unwrap();
        symlink("cfg", root.join("again")).unwrap();
        symlink(".git/hooks", root.join("scripts")).unwrap();
        symlink(".git/hooks/pre-commit", root.join("dangling")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let workspace = Workspace::parse(&root.to_string_lossy()).unwrap();
        let resolve = |path: &str| FileLinks::new(None).resolve("a.Edit", Some(&workspace), path);
        let at = |path: &str| Some(root.join(path).to_string_lossy().into_owned());
        for (path, leads) in [
            ("cfg", ".git/config"),
            ("again", ".git/config"),
            ("scripts/pre-commit", ".git/hooks/pre-commit"),
            ("scripts/new/file", ".git/hooks/new/file"),
            ("dangling", ".git/hooks/pre-commit"),
            ("plain/new", "plain/new"),
            ("circle", "circle"),
        ] {
            assert_eq!(resolve(path), at(leads), "{path}");
        }
        assert_eq!(FileLinks::new(None).resolve("a.Edit", None, "cfg"), None);
    }
}
