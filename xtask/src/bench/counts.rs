//! `cargo xtask bench counts` and `cargo xtask bench check`: instructions and allocations of one governed, durably recorded
//! HTTP call on SQLite, counted by valgrind. The machine and its load do not change them by more than about 1 %.
//!
//! A dense and a sparse load take the same time in one process, and the difference is divided by the difference in calls:
//! start-up and background tasks, which run by the clock, cancel out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::callgrind::Profile;
use self::record::Counts;
use super::gate::programs;
use super::gate::scratch::Scratch;
use super::gate::store::Store;
use super::gate::subject::{Prepared, Subject};
use super::gate::upstream::Upstream;
use super::options::{Options, build_directory};
use super::table;
use crate::process::program;

mod callgrind;
mod record;

/// One caller has a commit for each record; of many, several share one.
const CONNECTIONS: [u32; 2] = [1, 16];

/// Calls before anything is counted: caches, pools and the translated code are warm after them.
const WARM_UP: u32 = 384;
const DENSE: u32 = 960;
const SPARSE: u32 = 192;

/// Background tasks finish a load in this time.
const REST: Duration = Duration::from_secs(3);

const GRANTS: u64 = 10;

/// By how much a figure may be worse than the one in the repository.
const TOLERANCE: f64 = 0.05;

/// Without ERMS and FSRM: valgrind counts each byte that `rep movsb` copies as an instruction.
const TUNABLES: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-ERMS,-FSRM";

/// Events are integrated once a second, so that both loads have the same number of integrations.
const INTEGRATION: &str = "TOOLGATE_AUDIT_INTEGRATE_MILLISECONDS=1000";

/// Counts, prints a table, and with `--update` writes the figures into the repository.
pub fn run(options: &Options) -> Result<(), String> {
    let counts = count(options)?;
    if options.update {
        record::write(&counts)?;
        println!("\nwritten to {}", record::FILE);
    }
    Ok(())
}

/// Counts and fails where a figure is worse than the one in the repository by more than the tolerance.
pub fn check(options: &Options) -> Result<(), String> {
    let recorded = record::read()?;
    let counts = count(options)?;
    let comparison = record::compare(&recorded, &counts, TOLERANCE)?;
    table::print(
        "Beside the figures in the repository",
        &["connections", "", "recorded", "now", "ratio"],
        &comparison.rows,
    );
    if !comparison.regressions.is_empty() {
        return Err(format!(
            "more than {:.0} % above {}: {}; make the call cheaper, or say why it costs more and run \
             `cargo xtask bench counts --update`",
            TOLERANCE * 100.0,
            record::FILE,
            comparison.regressions.join(", ")
        ));
    }
    if comparison.improved {
        println!("\na figure is more than {:.0} % better: run `cargo xtask bench counts --update`", TOLERANCE * 100.0);
    }
    Ok(())
}

fn count(options: &Options) -> Result<Vec<Counts>, String> {
    crate::programs::install(&["nginx", "sqlite3", "valgrind"])?;
    let binary = options.binary()?;
    let scratch = Scratch::make(&build_directory()?)?;
    let upstream = Upstream::start(&scratch)?;
    let mut counts = Vec::new();
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        println!("counting {} calls on {connections} connections", WARM_UP + DENSE + SPARSE);
        let name = format!("counts_{connections}");
        let store = Store::sqlite(&scratch.path().join(&name));
        let prepared = Prepared::make(&binary, &scratch, &name, store, &upstream, GRANTS)?;
        let valgrind = Valgrind::below(scratch.path(), &name);
        let mut subject = prepared.start(&valgrind.command(&binary))?;
        let mut load = |calls: u32, span: Duration| {
            subject.call(connections, calls / connections, span)?;
            programs::pause(REST);
            valgrind.dump(&subject)
        };
        load(WARM_UP, Duration::ZERO)?;
        let begun = Instant::now();
        let dense = load(DENSE, Duration::ZERO)?;
        let span = begun.elapsed().saturating_sub(REST);
        let sparse = load(SPARSE, span)?;
        subject.finish()?;
        let calls = f64::from(DENSE - SPARSE);
        let per_call = |figure: fn(&Profile) -> u64| (figure(&dense) as f64 - figure(&sparse) as f64) / calls;
        let instructions = per_call(|profile| profile.instructions);
        let hashing = per_call(|profile| profile.hashing);
        let [new, grown, of_c] = [
            per_call(|profile| profile.allocated),
            per_call(|profile| profile.reallocated),
            per_call(|profile| profile.of_c),
        ];
        if new <= 0.0 {
            return Err(
                "no allocation was counted: the allocator's functions have other names than expected".to_owned()
            );
        }
        let allocations = new + grown + of_c;
        rows.push(vec![
            connections.to_string(),
            format!("{instructions:.0}"),
            format!("{hashing:.0}"),
            format!("{allocations:.1}"),
            format!("{new:.1}"),
            format!("{grown:.1}"),
            format!("{of_c:.1}"),
            format!("{:.2}", per_call(|profile| profile.flushes)),
        ]);
        counts.push(Counts { connections, instructions, allocations });
    }
    let head =
        ["connections", "instructions", "of them SHA-256", "allocations", "new", "grown", "of C libraries", "flushes"];
    table::print("A governed, recorded HTTP call on SQLite, as valgrind counts it", &head, &rows);
    println!("\nvalgrind has no SHA extensions: on a processor that has them, SHA-256 takes about a twentieth.");
    Ok(counts)
}

/// Where one gate below valgrind leaves its profiles.
struct Valgrind {
    profile: PathBuf,
    pipes: PathBuf,
}

impl Valgrind {
    fn below(directory: &Path, name: &str) -> Self {
        Self { profile: directory.join(format!("{name}.callgrind")), pipes: directory.join(format!("{name}-vgdb")) }
    }

    /// The command that starts `binary`. Fair scheduling of threads keeps the batches of the ledger alike in all runs.
    fn command(&self, binary: &Path) -> Vec<OsString> {
        let option = |name: &str, path: &Path| {
            let mut option = OsString::from(name);
            option.push(path);
            option
        };
        let mut command: Vec<OsString> =
            ["env", TUNABLES, INTEGRATION, "valgrind", "--tool=callgrind", "--fair-sched=yes"]
                .map(OsString::from)
                .into();
        command.push(option("--vgdb-prefix=", &self.pipes));
        command.push(option("--callgrind-out-file=", &self.profile));
        command.push(binary.into());
        command
    }

    /// What was counted since the last dump.
    fn dump(&self, subject: &Subject) -> Result<Profile, String> {
        let mut command = program("vgdb", &[]);
        let mut prefix = OsString::from("--vgdb-prefix=");
        prefix.push(&self.pipes);
        command.arg(prefix).args([&format!("--pid={}", subject.process()), "dump"]);
        programs::output(&mut command)?;
        let newest = self.newest()?;
        let text = std::fs::read(&newest).map_err(|error| format!("{}: {error}", newest.display()))?;
        let profile = Profile::read(&String::from_utf8_lossy(&text));
        profile.ok_or_else(|| format!("{} has another shape than expected", newest.display()))
    }

    /// Dumps are numbered from 1.
    fn newest(&self) -> Result<PathBuf, String> {
        let numbered = |number: u32| PathBuf::from(format!("{}.{number}", self.profile.display()));
        let last = (1..).map(numbered).take_while(|path| path.exists()).last();
        last.ok_or_else(|| "valgrind wrote no profile".to_owned())
    }
}
