//! The test programs of the workspace: built together, then run side by side. `cargo test` runs one after the other, and
//! most of them leave a core idle while they wait for processes and databases.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::process::{cargo, describe};
use crate::steps::TestCounts;

/// The program that takes as long as all others together: it starts first, and has more threads, which mostly wait.
const LONGEST: &str = "system";
/// Programs at a time.
const AT_ONCE: usize = 2;

/// A built test program.
#[derive(Debug, PartialEq, Eq)]
struct TestProgram {
    name: String,
    package: PathBuf,
    executable: PathBuf,
}

/// Builds and runs all tests of the workspace, those in documentation included. `prepare` sets the environment of each.
pub fn run(counts: &mut TestCounts, prepare: &(dyn Fn(&mut Command) + Sync)) -> Result<(), String> {
    let mut programs = build()?;
    programs.sort_by_key(|program| program.name != LONGEST);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut commands: VecDeque<Command> = programs.iter().map(|program| program.command(cores)).collect();
    commands.push_back(cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]));
    commands.iter_mut().for_each(prepare);

    let (queue, total, incomplete) = (Mutex::new(commands), Mutex::new(TestCounts::default()), Mutex::new(Vec::new()));
    // A function, because a guard in the condition of the loop would be held while the program runs.
    let next = || locked(&queue).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(mut command) = next() {
                    if let Err(error) = run_program(&mut command, &total) {
                        locked(&incomplete).push(error);
                    }
                }
            });
        }
    });
    *counts = *locked(&total);
    let incomplete = locked(&incomplete).join("; ");
    match *counts {
        _ if !incomplete.is_empty() => Err(incomplete),
        TestCounts { passed: 0, failed: 0, .. } => Err("no test was run".to_owned()),
        _ => Ok(()),
    }
}

impl TestProgram {
    fn command(&self, cores: usize) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.package);
        if self.name == LONGEST {
            command.arg(format!("--test-threads={}", 2 * cores));
        }
        command
    }
}

/// Builds every test program, and lists them.
fn build() -> Result<Vec<TestProgram>, String> {
    let mut command = cargo(&["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let failed = |error: std::io::Error| format!("cargo test could not be run: {error}");
    let output = command.stderr(Stdio::inherit()).output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", describe(&command), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(artifact).collect())
}

/// Reads a message of cargo about a built test program. Other messages are ignored.
fn artifact(message: &str) -> Option<TestProgram> {
    if !message.starts_with(r#"{"reason":"compiler-artifact""#) || !message.contains(r#""test":true},"features""#) {
        return None;
    }
    let executable = PathBuf::from(text_member(message, "executable")?);
    let package = Path::new(&text_member(message, "manifest_path")?).parent()?.to_path_buf();
    // The member of the target: that of the package is an id.
    let name = text_member(message.split_once(r#""target":{"#)?.1, "name")?;
    Some(TestProgram { name, package, executable })
}

/// A member with a text that has no escapes, as paths and names of packages have none.
fn text_member(json: &str, name: &str) -> Option<String> {
    let rest = json.split_once(&format!(r#""{name}":""#))?.1;
    rest.split_once('"').map(|(text, _)| text.to_owned())
}

/// Runs a program, prints what it printed as a whole, and adds its results.
fn run_program(command: &mut Command, total: &Mutex<TestCounts>) -> Result<(), String> {
    let name = describe(command);
    println!("running {name}");
    let failed = |error: std::io::Error| format!("{name} could not be run: {error}");
    let started = Instant::now();
    // One pipe for both, so that what a test prints stays beside its result.
    let (mut reader, writer) = std::io::pipe().map_err(failed)?;
    let also = writer.try_clone().map_err(failed)?;
    let mut process = command.stdin(Stdio::null()).stdout(writer).stderr(also).spawn().map_err(failed)?;
    // The command holds the ends that its process writes to: without them the pipe ends with the process.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut output = Vec::new();
    reader.read_to_end(&mut output).map_err(failed)?;
    let status = process.wait().map_err(failed)?;
    let output = String::from_utf8_lossy(&output);
    let mut total = locked(total);
    println!("\n{output}\n{name} took {:.1} s", started.elapsed().as_secs_f64());
    let mut counts = TestCounts::default();
    for result in output.lines().filter_map(result_line) {
        counts.passed += result.passed;
        counts.failed += result.failed;
        counts.ignored += result.ignored;
    }
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.ignored += counts.ignored;
    match status.success() || counts.failed > 0 {
        true => Ok(()),
        false => Err(format!("{name} did not finish: {status}")),
    }
}

/// Reads `test result: ok. 5 passed; 0 failed; 1 ignored; ...`.
fn result_line(line: &str) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    for part in line.strip_prefix("test result: ")?.split(['.', ';']) {
        if let Some((number, what)) = part.trim().split_once(' ') {
            let field = match what {
                "passed" => &mut counts.passed,
                "failed" => &mut counts.failed,
                "ignored" => &mut counts.ignored,
                _ => continue,
            };
            *field = number.parse().ok()?;
        }
    }
    Some(counts)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.05s";
        assert_eq!(result_line(line), Some(TestCounts { passed: 12, failed: 3, ignored: 1 }));
        assert_eq!(result_line("test a_rule ... ok"), None);
        assert_eq!(result_line("running 3 tests"), None);
    }

    #[test]
    fn a_program_that_dies_without_a_result_did_not_finish() {
        let total = Mutex::default();
        let script = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            command
        };
        let died = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'; exit 101";
        let error = run_program(&mut script(died), &total).unwrap_err();
        assert!(error.ends_with("did not finish: exit status: 101"), "{error}");
        let failed = "echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101";
        assert_eq!(run_program(&mut script(failed), &total), Ok(()));
        assert_eq!(*locked(&total), TestCounts { passed: 3, failed: 1, ignored: 0 });
    }

    #[test]
    fn the_programs_that_cargo_built_are_found() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///p#0.1.0","manifest_path":"/w/crates/model/Cargo.toml","target":{{"kind":["lib"],"name":"toolgate_model","test":true}},"profile":{{"opt_level":"0","test":{test}}},"features":[],"executable":{executable},"fresh":true}}"#
            )
        };
        let found = TestProgram {
            name: "toolgate_model".to_owned(),
            package: PathBuf::from("/w/crates/model"),
            executable: PathBuf::from("/w/target/debug/deps/toolgate_model-1"),
        };
        assert_eq!(artifact(&message(true, r#""/w/target/debug/deps/toolgate_model-1""#)), Some(found));
        assert_eq!(artifact(&message(false, r#""/w/target/debug/toolgate""#)), None);
        assert_eq!(artifact(&message(false, "null")), None);
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
