//! The fault matrix: what the gate does when the machine under it, or a client before it, misbehaves. `cargo xtask faults`
//! runs these together with the tests that stand elsewhere, and `docs/faults.md` tells operators about each.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use crate::tool_user::{ToolUser, bearer};
use crate::world::{World, block_on, setup};

mod clients;
mod clock;
mod database;
mod floods;
mod keys;
mod names;
mod resources;
mod storage;

/// Makes a test of each scenario for each engine. They are no part of `cargo test`, because they load the machine.
macro_rules! fault {
    ($($scenario:ident,)+) => {
        mod sqlite {
            $(#[test] #[ignore = "cargo xtask faults runs it"] fn $scenario() {
                super::$scenario(crate::faults::Engine::Sqlite);
            })+
        }
        mod postgres {
            $(#[test] #[ignore = "cargo xtask faults runs it"] fn $scenario() {
                super::$scenario(crate::faults::Engine::Postgres);
            })+
        }
    };
}
pub(crate) use fault;

/// Where the ledger is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// A gate with what this changes about it.
    fn world(self, change: impl FnOnce(GateSetup) -> GateSetup) -> World {
        self.world_of(change(setup()))
    }

    fn world_of(self, setup: GateSetup) -> World {
        let setup = setup.reaching_loopback();
        match self {
            Self::Sqlite => World::of(&setup, None),
            Self::Postgres => {
                let database = block_on(TestDatabase::create());
                World::of(&setup.database(database.url()), Some(database))
            }
        }
    }
}

/// Somebody who has nothing to do with a fault, and must be served all the same.
pub struct Bystander {
    service: Upstream,
    user: ToolUser,
    calls: usize,
}

impl Bystander {
    fn of(world: &World) -> Self {
        let service = Upstream::start(|_| Answer::json(200, json!({"done": true})));
        let user = ToolUser::of(world, bearer(&service));
        Self { service, user, calls: 0 }
    }

    /// Calls a tool, which must succeed.
    #[track_caller]
    fn is_served(&mut self) {
        let reply = self.user.calls("any", json!({"number": self.calls}));
        assert_eq!(reply.ok()["status"], "success");
        self.calls += 1;
        assert_eq!(self.service.count(), self.calls);
    }

    /// Calls a tool, which must be refused with this code before anything is sent; returns the error.
    #[track_caller]
    fn is_refused(&self, status: u16, code: &str) -> Value {
        let error = self.user.calls("any", json!({})).refused(status, code);
        assert_eq!(self.service.count(), self.calls, "nothing was sent");
        error
    }

    /// Checks that everything acknowledged is in the history, and nothing else.
    #[track_caller]
    fn has_lost_nothing(&self) {
        let history = self.user.history();
        assert_eq!(history.iter().filter(|call| call["status"] == "success").count(), self.calls);
    }
}

/// Does something that must not take longer than this.
fn within<T: Send>(limit: Duration, what: &str, action: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (tell, told) = channel();
        scope.spawn(move || drop(tell.send(action())));
        told.recv_timeout(limit).unwrap_or_else(|_| panic!("{what} failed, or took longer than {limit:?}"))
    })
}

/// Makes a vault; returns the status.
fn makes_vault(gate: &GateProcess, name: &str) -> (u16, Value) {
    gate.request("POST", "/api/v1/vaults", Some(&json!({"name": name})))
}

/// The names of all vaults, oldest first.
fn vaults(gate: &GateProcess) -> Vec<String> {
    let (status, list) = gate.request("GET", "/api/v1/vaults?limit=1000", None);
    assert_eq!(status, 200, "{list}");
    list["vaults"].as_array().unwrap().iter().map(|vault| vault["name"].as_str().unwrap().to_owned()).collect()
}

/// A binary that runs the gate below what the shell says first, such as `ulimit`.
fn below(shell: &str) -> (GateSetup, TempDir) {
    let directory = TempDir::new().unwrap();
    let wrapper = directory.path().join("toolgate");
    let binary = env!("CARGO_BIN_EXE_toolgate");
    std::fs::write(&wrapper, format!("#!/bin/sh\n{shell}\nexec '{binary}' \"$@\"\n")).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    (GateSetup::new(&wrapper), directory)
}

/// The control words of `faults/shim.c`, which is loaded into the gate.
pub struct Shim {
    control: File,
    path: PathBuf,
    _directory: TempDir,
}

/// A word of the shim, by its place.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    /// Seconds that the wall clock is wrong by.
    ClockOffset = 0,
    /// Whether the disk fails to take what was written.
    SyncFails = 1,
    /// Whether names are looked up for ever.
    NamesHang = 2,
    /// Whether no name can be looked up.
    NamesFail = 3,
}

impl Shim {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("control");
        std::fs::write(&path, [0; 4096]).unwrap();
        let control = OpenOptions::new().write(true).open(&path).unwrap();
        Self { control, path, _directory: directory }
    }

    /// Loads it into the gates of this setup.
    pub fn loaded_into(&self, setup: GateSetup) -> GateSetup {
        setup.environment("LD_PRELOAD", library()).environment("TOOLGATE_TEST_FAULTS", &self.path)
    }

    pub fn set(&self, word: Word, value: i64) {
        self.control.write_all_at(&value.to_ne_bytes(), 8 * word as u64).unwrap();
    }
}

/// The compiled shim; made once.
fn library() -> &'static PathBuf {
    static LIBRARY: OnceLock<(PathBuf, TempDir)> = OnceLock::new();
    let (library, _) = LIBRARY.get_or_init(|| {
        let directory = TempDir::new().unwrap();
        let library = directory.path().join("faults.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/system/faults/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).args([source, "-ldl"]);
        let made = compiler.output().expect("a C compiler, which the build needs too");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        (library, directory)
    });
    library
}
