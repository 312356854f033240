//! A workspace in a temporary directory, and short words to call its tools.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tempfile::TempDir;
use toolgate_workspace::{Limits, Output, Workspace, WorkspaceError, WorkspaceTool};

/// `root` is the workspace; `outside`, beside it, is not.
pub struct Place {
    pub workspace: Workspace,
    pub root: PathBuf,
    pub outside: PathBuf,
    _base: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        Self::within(|_| limits)
    }

    /// The limits may name directories in the base, which is the parent of the root.
    pub fn within(limits: impl FnOnce(&Path) -> Limits) -> Self {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap();
        let (root, outside) = (path.join("root"), path.join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "needle outside").unwrap();
        let limits = limits(&path);
        let confiner = limits.confiner.clone().or_else(|| Some(env!("CARGO_BIN_EXE_workspace-exec-test").into()));
        let workspace = Workspace::open(&root, Limits { confiner, ..limits }).unwrap();
        Self { workspace, root, outside, _base: base }
    }

    pub async fn call(&self, tool: WorkspaceTool, arguments: Value) -> Result<Output, WorkspaceError> {
        self.workspace.call(tool, &object(arguments)).await
    }

    pub async fn text(&self, tool: WorkspaceTool, arguments: Value) -> String {
        self.call(tool, arguments).await.unwrap().text
    }

    pub async fn refused(&self, tool: WorkspaceTool, arguments: Value) -> WorkspaceError {
        self.call(tool, arguments).await.unwrap_err()
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.root.join(name)).unwrap();
    }

    pub fn content(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}
