//! The steps of a run: each is announced, timed and counted, and a failed one does not prevent later ones.

use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct Steps {
    passed: u64,
    ignored: u64,
    failed: u64,
    failures: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TestCounts {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
}

impl Steps {
    /// Runs a step that passes or fails as a whole.
    pub fn check<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T, String>) -> Option<T> {
        let outcome = self.timed(name, step);
        match outcome {
            Some(_) => self.passed += 1,
            None => self.failed += 1,
        }
        outcome
    }

    /// Runs a step that counts its tests itself. An error means that not all of them could run: one more failure.
    pub fn tests(&mut self, name: &str, step: impl FnOnce(&mut TestCounts) -> Result<(), String>) {
        let mut counts = TestCounts::default();
        let complete = self.timed(name, || match step(&mut counts) {
            Ok(()) if counts.failed > 0 => Err(format!("{} of the tests failed", counts.failed)),
            outcome => outcome,
        });
        self.passed += counts.passed;
        self.ignored += counts.ignored;
        self.failed += if complete.is_none() { counts.failed.max(1) } else { 0 };
    }

    /// Prints the summary, with the two counts alone on the last line.
    pub fn finish(self) -> ExitCode {
        println!();
        for failure in &self.failures {
            println!("failed: {failure}");
        }
        if self.ignored > 0 {
            println!("{} tests are marked as ignored and did not run", self.ignored);
        }
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn timed<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T, String>) -> Option<T> {
        println!("\n==> {name}");
        let started = Instant::now();
        let outcome = step();
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(value) => {
                println!("==> {name}: done in {seconds:.1} s");
                Some(value)
            }
            Err(error) => {
                println!("==> {name}: FAILED after {seconds:.1} s: {error}");
                self.failures.push(format!("{name}: {error}"));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_and_every_test_is_counted_once() {
        let mut steps = Steps::default();
        assert_eq!(steps.check("good", || Ok(1)), Some(1));
        assert_eq!(steps.check("bad", || Err::<u8, _>("no".to_owned())), None);
        steps.tests("some", |counts| {
            *counts = TestCounts { passed: 5, failed: 2, ignored: 1 };
            Ok(())
        });
        assert_eq!((steps.passed, steps.failed, steps.ignored), (6, 3, 1));
        assert_eq!(steps.failures, ["bad: no", "some: 2 of the tests failed"]);
    }

    #[test]
    fn tests_that_could_not_run_are_a_failure() {
        let mut steps = Steps::default();
        steps.tests("unbuildable", |_| Err("does not build".to_owned()));
        assert_eq!((steps.passed, steps.failed), (0, 1));
    }
}
