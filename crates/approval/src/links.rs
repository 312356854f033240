//! Where paths really lead. A name says nothing where a link can stand for it, so names are resolved before they are
//! judged; the tool that opens a file judges it once more.

use toolgate_model::approval::Workspace;

/// Follows links.
pub trait Links: Send + Sync {
    /// The absolute path to which a path of a call leads, links followed as far as there is anything. A relative one
    /// leads from the directory that the tool works in. `None` where that directory is not on this machine.
    fn resolve(&self, tool: &str, workspace: Option<&Workspace>, path: &str) -> Option<String>;
}

/// Follows none: only names count.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLinks;

impl Links for NoLinks {
    fn resolve(&self, _tool: &str, _workspace: Option<&Workspace>, _path: &str) -> Option<String> {
        None
    }
}

/// A call, as far as it decides from where its paths lead.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) tool: &'a str,
    pub(crate) workspace: Option<&'a Workspace>,
    pub(crate) links: &'a dyn Links,
}

impl Site<'_> {
    /// Where a path leads from a directory, which is given as the call gives it; none is that of the tool.
    pub(crate) fn resolve(&self, directory: &str, path: &str) -> Option<String> {
        self.links.resolve(self.tool, self.workspace, &joined(directory, path))
    }

    /// Whether a path leads out of the directory that the tool works in, although its text does not.
    pub(crate) fn leads_out(&self, directory: &str, path: &str) -> bool {
        let Some(root) = self.resolve("", ".") else { return false };
        let below = |to: String| to == root || to.strip_prefix(&root).is_some_and(|rest| rest.starts_with('/'));
        !self.resolve(directory, path).is_none_or(below)
    }
}

/// A path from a directory; an absolute one stays what it is.
pub(crate) fn joined(directory: &str, path: &str) -> String {
    if directory.is_empty() || path.starts_with(['/', '~']) {
        return path.to_owned();
    }
    format!("{}/{path}", directory.trim_end_matches('/'))
}
