//! What a reader has in front of them: for the pages in `docs` a gate of their own, a payments service and an MCP server on loopback,
//! for the first page what `toolgate demo --keep` leaves running, as that page says.

use std::any::Any;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use toolgate_testkit::gate_process::{GateSetup, signal};
use toolgate_testkit::mcp_server::McpServer;
use toolgate_testkit::upstream::Upstream;

use crate::a2a::network::Peer;

/// A running gate and a service behind it, for the commands of one page.
pub struct Surroundings {
    /// Variables that the shell of the reader has.
    pub variables: Vec<(&'static str, String)>,
    /// The directory of the reader.
    pub home: PathBuf,
    /// Whatever runs ends when this is dropped.
    _running: Box<dyn Any>,
}

impl Surroundings {
    /// Those that the page at this path speaks of.
    pub fn of(page: &str) -> Self {
        let setup = GateSetup::new(super::BINARY).reaching_loopback();
        let home = setup.home().join("reader");
        std::fs::create_dir_all(&home).unwrap();
        match page {
            "README.md" => Self::demo(setup, home),
            page => Self::own(&setup, home, page),
        }
    }

    fn own(setup: &GateSetup, home: PathBuf, page: &str) -> Self {
        let (gate, payments, mcp) = (setup.start(), Upstream::payments(), McpServer::start(true, false));
        let peer = page.ends_with("a2a.md").then(Peer::start);
        let mut variables = vec![
            ("TOOLGATE_URL", gate.url()),
            ("TOOLGATE_TOKEN", gate.token().to_owned()),
            ("PAYMENTS_URL", payments.url()),
            ("MCP_URL", mcp.url()),
        ];
        variables.extend(peer.as_ref().map(|peer| ("A2A_URL", peer.url.clone())));
        Self { variables, home, _running: Box::new((gate, payments, mcp, peer)) }
    }

    fn demo(setup: GateSetup, home: PathBuf) -> Self {
        let mut demo = Demo::start(&setup, &home);
        let url = demo.exported("TOOLGATE_URL");
        let token = demo.exported("TOOLGATE_TOKEN");
        let variables = vec![("TOOLGATE_URL", url), ("TOOLGATE_TOKEN", token)];
        // INVARIANT: the home goes after the demo that runs in it.
        Self { variables, home, _running: Box::new((demo, setup)) }
    }
}

/// `toolgate demo --keep`, asked to end when dropped: killed, it could not end its gate.
struct Demo {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Demo {
    fn start(setup: &GateSetup, home: &Path) -> Self {
        let mut command = setup.command();
        command.args(["demo", "--keep"]).current_dir(home).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process, said }
    }

    /// The next line that tells the reader to set this variable.
    fn exported(&mut self, name: &str) -> String {
        let wanted = format!("export {name}=");
        let mut line = String::new();
        while self.said.read_line(&mut line).unwrap() > 0 {
            if let Some(value) = line.trim().strip_prefix(&wanted) {
                return value.split(' ').next().unwrap_or_default().to_owned();
            }
            line.clear();
        }
        panic!("`toolgate demo --keep` does not say `{wanted}...`")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        signal("TERM", self.process.id());
        // Its last words must not make it wait for a reader.
        let _ = std::io::copy(&mut self.said, &mut std::io::sink());
        let _ = self.process.wait();
    }
}
