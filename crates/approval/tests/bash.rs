//! The recogniser against bash itself: whatever it approves, bash must start exactly the commands that it has read, with
//! exactly these arguments, and each must begin with a granted prefix. Lines that are refused are never run.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "this is a test, and its helpers too"
)]

use std::collections::BTreeSet;
use std::thread;

use toolgate_approval::shell::{PlainCommand, Prefix, Separator, Surroundings, covered, read};

use self::generator::Generator;
use self::recorder::{Run, record};

#[path = "bash/generator.rs"]
mod generator;
#[path = "bash/recorder.rs"]
mod recorder;

/// How many lines are made up and judged, over all seeds.
const LINES: usize = 240_000;

/// One thread for each.
const SEEDS: [u64; 2] = [0x70_6f_6c_67, 0x61_74_65_31];

/// How many lines one bash runs.
const BATCH: usize = 2_000;

fn granted() -> Vec<Prefix> {
    ["cargo ", "tool run", "x"].iter().map(|text| Prefix::parse(text).unwrap()).collect()
}

#[test]
fn no_approved_line_starts_anything_but_what_was_read() {
    let threads = SEEDS.map(|seed| thread::spawn(move || differ(seed, LINES / SEEDS.len())));
    let mut run = 0;
    let mut commands = 0;
    for thread in threads {
        let (lines, started) = thread.join().unwrap();
        run += lines;
        commands += started;
    }
    println!("{LINES} lines judged, {run} different ones approved and run, {commands} commands started");
    assert!(run > LINES / 20, "only {run} lines were approved: the generator has lost its way");
}

/// Judges lines and runs the approved ones; how many these were, and how many commands they started.
fn differ(seed: u64, lines: usize) -> (usize, usize) {
    let granted = granted();
    let mut generator = Generator::new(seed);
    let mut approved = BTreeSet::new();
    for _ in 0..lines {
        let line = generator.line();
        if begins_as_granted(&line, &granted) {
            approved.insert(line);
        }
    }
    let approved: Vec<String> = approved.into_iter().collect();
    let mut started = 0;
    for (number, batch) in approved.chunks(BATCH).enumerate() {
        // Every other batch fails its commands, so that what follows `||` is started instead of what follows `&&`.
        let succeed = number % 2 == 0;
        let runs: Vec<Run> = record(batch, succeed);
        assert_eq!(runs.len(), batch.len(), "bash stopped early");
        for (line, mut run) in batch.iter().zip(runs) {
            let read = read(line).unwrap();
            let mut expected: Vec<Vec<String>> = reached(&read, succeed).map(arguments).collect();
            started += run.len();
            for command in &run {
                let covered = granted.iter().any(|prefix| command.starts_with(prefix.words()));
                assert!(covered, "{line:?} starts {command:?}, which nobody granted");
            }
            // The parts of a pipeline start in any order.
            expected.sort();
            run.sort();
            assert_eq!(run, expected, "{line:?} is read differently by bash");
        }
    }
    (approved.len(), started)
}

/// Whether the line is read, and each of its commands begins with a granted prefix. What is covered is a part of these.
fn begins_as_granted(line: &str, granted: &[Prefix]) -> bool {
    let begins = |command: &PlainCommand, prefix: &Prefix| {
        let mut words = command.words.iter();
        prefix.words().iter().all(|own| words.next().is_some_and(|word| word.plain && word.text == *own))
    };
    let is_granted =
        read(line).is_ok_and(|read| read.iter().all(|command| granted.iter().any(|prefix| begins(command, prefix))));
    assert!(is_granted || !covered(line, granted, Surroundings::UNKNOWN).approve, "{line:?} is covered");
    is_granted
}

/// The commands that are reached if all of them succeed, or all of them fail.
fn reached(commands: &[PlainCommand], succeed: bool) -> impl Iterator<Item = &PlainCommand> {
    let mut reached = true;
    commands.iter().filter(move |command| {
        match command.separator {
            Separator::First | Separator::Then => reached = true,
            Separator::And => reached = succeed,
            Separator::Or => reached = !succeed,
            // As the command before it in the pipeline.
            Separator::Pipe => {}
        }
        reached
    })
}

fn arguments(command: &PlainCommand) -> Vec<String> {
    command.words.iter().map(|word| word.text.clone()).collect()
}

#[test]
fn the_recorder_sees_what_lines_start_in_unusual_ways() {
    let lines = [
        "cargo build; evil one",
        "cargo $(evil two)",
        "cargo `evil three`",
        "cargo | evil four",
        "cargo && evil five || evil six",
        "(evil seven)",
        "eval evil eight",
        "cargo 'a\nb'",
        "export evil; trap evil EXIT; exec evil",
        "cargo '",
        "evil &>/dev/null",
    ];
    let seen: Vec<String> = record(&lines.map(str::to_owned), true)
        .into_iter()
        .map(|run| run.iter().map(|command| command.join(" ")).collect::<Vec<_>>().join("; "))
        .collect();
    assert_eq!(
        seen,
        [
            "cargo build; evil one",
            "evil two; cargo",
            "evil three; cargo",
            &seen[3],
            "cargo; evil five",
            "evil seven",
            "evil eight",
            "cargo a\nb",
            "export evil; trap evil EXIT; exec evil",
            "",
            "evil",
        ]
    );
    assert!(seen[3].contains("cargo") && seen[3].contains("evil four"), "{}", seen[3]);
}
