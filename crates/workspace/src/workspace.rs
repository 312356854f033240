//! The workspace: the root, its limits, its sandbox, and the entry point for tool calls.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::error::WorkspaceError;
use crate::files::{Edit, Read, Write};
use crate::limits::Limits;
use crate::output::Output;
use crate::root::Root;
use crate::sandbox::{Sandbox, SandboxReport};
use crate::search::{Glob, Grep};
use crate::shell::Bash;
use crate::stop;
use crate::tool::WorkspaceTool;

/// The files and processes below one root directory. Clones share the same workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: Root,
    limits: Limits,
    sandbox: Sandbox,
    /// INVARIANT: held from reading a file to replacing it, so that concurrent edits in this workspace do not overwrite
    /// each other.
    writing: Mutex<()>,
}

impl Workspace {
    /// Opens the root and probes which sandbox this system offers. Blocks while it does.
    pub fn open(root: &Path, limits: Limits) -> Result<Self, WorkspaceError> {
        let limits = Limits { hidden: limits.hidden.iter().map(|path| without_links(path)).collect(), ..limits };
        let root = Root::open(root, &limits.hidden, limits.is_protected)?;
        let sandbox = Sandbox::choose(root.path(), &limits)?;
        Ok(Self { inner: Arc::new(Inner { root, limits, sandbox, writing: Mutex::default() }) })
    }

    /// The canonical path of the root.
    pub fn root(&self) -> &Path {
        self.inner.root.path()
    }

    /// What is enforced on commands.
    pub fn sandbox(&self) -> &SandboxReport {
        self.inner.sandbox.report()
    }

    /// Calls a tool. Dropping the future kills the processes that it started.
    pub async fn call(&self, tool: WorkspaceTool, arguments: &Map<String, Value>) -> Result<Output, WorkspaceError> {
        let inner = Arc::clone(&self.inner);
        let Inner { root, limits, sandbox, .. } = &*self.inner;
        let limit = limits.file_timeout;
        match tool {
            WorkspaceTool::Read => {
                let call = Read::parse(root, arguments)?;
                stop::run(limit, move |stop| call.run(&inner.root, inner.limits.read_bytes, stop)).await
            }
            WorkspaceTool::Glob => {
                let call = Glob::parse(root, arguments)?;
                stop::run(limit, move |stop| call.run(&inner.root, stop)).await
            }
            WorkspaceTool::Grep => {
                let call = Grep::parse(root, arguments)?;
                stop::run(limit, move |stop| call.run(&inner.root, inner.limits.output_bytes, stop)).await
            }
            WorkspaceTool::Write => {
                let call = Write::parse(root, arguments)?;
                stop::run(limit, move |_| {
                    let _alone = inner.writing.lock().unwrap_or_else(PoisonError::into_inner);
                    call.run(&inner.root)
                })
                .await
            }
            WorkspaceTool::Edit => {
                let call = Edit::parse(root, arguments)?;
                stop::run(limit, move |_| {
                    let _alone = inner.writing.lock().unwrap_or_else(PoisonError::into_inner);
                    call.run(&inner.root)
                })
                .await
            }
            WorkspaceTool::Bash => Bash::parse(root, limits, arguments)?.run(root, limits, sandbox).await,
            WorkspaceTool::AskUserQuestion => Err(WorkspaceError::OnlyAPersonAnswers),
        }
    }
}

/// Resolves the links of the existing part of the path; a directory may be hidden before it is created.
fn without_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for ancestor in absolute.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = absolute.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return real.components().chain(rest.components()).collect();
        }
    }
    absolute
}
