//! Runs lines in bash without letting them do anything: no program can be found, builtins are replaced, files cannot
//! grow, and every command that would be started is written down instead.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// The commands that one line started, each with its arguments.
pub type Run = Vec<Vec<String>>;

/// In an empty directory, which is all that is searched for programs, reads a list of lines, each ended by a NUL byte, and evaluates one after the other. The record goes to descriptor 9:
/// for each command the number of its words and the words, for the end of a line an `E`. A line end within a word is
/// written as the byte 1, so that a record is one write and never mixed with that of another part of a pipeline.
const SCRIPT: &str = r#"
PATH=$PWD
mapfile -d '' -t lines
exec 9>&1 </dev/null >/dev/null 2>/dev/null
ulimit -f 0
ulimit -c 0
record() {
    builtin printf '%s\0' "$#" "${@//$'\n'/$'\1'}" >&9
    builtin return "$status"
}
command_not_found_handle() { record "$@"; }
# Functions spare the fork before a program is found missing.
for name in cargo tool x $(compgen -b); do
    case $name in
        builtin | printf | eval | return | '[' | : | .) ;;
        *) eval "$name() { record $name \"\$@\"; }" ;;
    esac
done
for line in "${lines[@]}"; do
    builtin eval "$line"
    builtin printf 'E\0' >&9
done
"#;

/// Runs the lines in one bash, in which every command succeeds or every command fails.
pub fn record(lines: &[String], succeed: bool) -> Vec<Run> {
    let empty = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-c", SCRIPT]).current_dir(empty.path());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .env("status", if succeed { "0" } else { "1" });
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bash = command.spawn().expect("these tests need bash: install the package `bash`");
    let mut input = bash.stdin.take().unwrap();
    let text: Vec<u8> = lines.iter().flat_map(|line| line.bytes().chain([0])).collect();
    let writer = thread::spawn(move || input.write_all(&text));
    let output = bash.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    runs(&String::from_utf8(output.stdout).unwrap())
}

fn runs(record: &str) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut run = Run::new();
    let mut fields = record.split_terminator('\0');
    while let Some(field) = fields.next() {
        if field == "E" {
            runs.push(std::mem::take(&mut run));
        } else {
            let count: usize = field.parse().unwrap();
            run.push(fields.by_ref().take(count).map(|word| word.replace('\u{1}', "\n")).collect());
        }
    }
    runs
}
