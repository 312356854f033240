//! Resolves paths. A name is meaningless if it can be a link, so names are resolved before they are checked; the tool
//! that opens a file checks it again.

use toolgate_model::approval::Workspace;

/// Follows links.
pub trait Links: Send + Sync {
    /// The absolute path that a path of a call leads to, with links followed as far as it exists. A relative path
    /// starts at the working directory of the tool. `None` if that directory is not on this machine.
    fn resolve(&self, tool: &str, workspace: Option<&Workspace>, path: &str) -> Option<String>;
}

/// Follows no links: only names count.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLinks;

impl Links for NoLinks {
    fn resolve(&self, _tool: &str, _workspace: Option<&Workspace>, _path: &str) -> Option<String> {
        None
    }
}

/// The parts of a call that determine where its paths lead.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) tool: &'a str,
    pub(crate) workspace: Option<&'a Workspace>,
    pub(crate) links: &'a dyn Links,
}

impl Site<'_> {
    /// Where a path leads from a directory, which is given as in the call; an empty one is that of the tool.
    pub(crate) fn resolve(&self, directory: &str, path: &str) -> Option<String> {
        self.links.resolve(self.tool, self.workspace, &joined(directory, path))
    }

    /// Whether a path leads out of the working directory of the tool, although its text does not.
    pub(crate) fn leads_out(&self, directory: &str, path: &str) -> bool {
        let Some(root) = self.resolve("", ".") else { return false };
        let below = |to: String| to == root || to.strip_prefix(&root).is_some_and(|rest| rest.starts_with('/'));
        !self.resolve(directory, path).is_none_or(below)
    }
}

/// Joins a directory and a path; an absolute path is returned unchanged.
pub(crate) fn joined(directory: &str, path: &str) -> String {
    if directory.is_empty() || path.starts_with(['/', '~']) {
        return path.to_owned();
    }
    format!("{}/{path}", directory.trim_end_matches('/'))
}
