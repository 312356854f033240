//! Somebody at the command line, and a folder of policies.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::world::{Actor, World};

/// What a command said.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Somebody who works in a folder.
pub struct Terminal<'a> {
    world: &'a World,
    key: String,
    place: TempDir,
}

impl<'a> Terminal<'a> {
    /// Of somebody with this key, in an empty folder.
    pub fn of(world: &'a World, somebody: &Actor) -> Self {
        Self { world, key: somebody.key.clone(), place: tempfile::tempdir().unwrap() }
    }

    /// Runs the binary in the folder.
    pub fn says(&self, arguments: &[&str]) -> Said {
        let mut command: Command = self.world.gate.cli();
        command.current_dir(self.place.path()).env("TOOLGATE_TOKEN", &self.key).args(arguments);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What a command prints for people; it must succeed.
    #[track_caller]
    pub fn reads(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{arguments:?}: {}", said.stdout);
        said.stdout
    }

    /// What a command prints for programs; it must succeed.
    #[track_caller]
    pub fn gets(&self, arguments: &[&str]) -> Value {
        let said = self.says(&[arguments, &["--json"]].concat());
        assert_eq!(said.code, 0, "{arguments:?}: {}{}", said.stdout, said.stderr);
        serde_json::from_str(&said.stdout).unwrap()
    }

    /// What a command says that must fail.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str]) -> String {
        let said = self.says(arguments);
        assert_eq!(said.code, 1, "{arguments:?}: {}{}", said.stdout, said.stderr);
        format!("{}{}", said.stdout, said.stderr)
    }

    /// Writes a file of the folder `policies`.
    pub fn writes(&self, name: &str, text: &str) {
        fs::create_dir_all(self.folder()).unwrap();
        fs::write(self.folder().join(name), text).unwrap();
    }

    /// What stands in a file of the folder `policies`.
    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.place.path().join("policies")
    }
}
