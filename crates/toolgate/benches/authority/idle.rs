//! How fast the gate starts, and what it holds when nobody calls.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::table::print;

pub fn run() {
    let directory = tempfile::TempDir::new().unwrap();
    let first = start(directory.path());
    let again = start(directory.path());
    let rows =
        [("first start (makes keys and ledger)", first), ("later start", again)].map(|(what, (time, memory))| {
            vec![what.to_owned(), format!("{:.0} ms", time * 1e3), format!("{memory:.1} MB")]
        });
    print("Idle gate on SQLite", &["", "until it listens", "resident"], &rows);
}

fn start(directory: &std::path::Path) -> (f64, f64) {
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.join("data"))
        .env("HOME", directory)
        .env("XDG_CONFIG_HOME", directory.join("config"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let took = begun.elapsed().as_secs_f64();
    assert!(line.starts_with("toolgate listening on "), "{line}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: f64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    (took, kilobytes / 1024.0)
}
