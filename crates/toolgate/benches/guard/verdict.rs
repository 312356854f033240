//! The verdict of the gate's own policies, as the gate asks for it: the active set looked up, the rules that concern the
//! call found and evaluated, and the record of it made. With few policies and many, with and without the past.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_cli::starter_policies;
use toolgate_gate::ports::guardian::{Guardian, Hooked};
use toolgate_gate::ports::ledger::{ApplyPolicies, PolicyChange};
use toolgate_guardian::composition::{Guardians, LogAlarm};
use toolgate_guardian::policy::PolicyEngine;
use toolgate_model::guard::{PolicyFile, Verdict};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use crate::figures::{Times, at_most, fine, in_micros};
use crate::history;
use crate::rules::{ABOUT_THE_CALL, ABOUT_THE_PAST, set};
use crate::scene::Scene;
use crate::table::{print, ratio};

const ROUNDS: usize = 20;
/// Of each kind in each round. One by one, so that the slowest are seen too.
const SAMPLES: usize = 500;
/// Fewer where each takes long.
const LONG_SAMPLES: usize = 25;
const SECRET: &[u8] = b"seven green bottles on the wall";

/// A tenant with policies of its own.
struct Subject {
    name: &'static str,
    tenant: TestTenant,
    scene: Scene,
    samples: usize,
    times: Vec<Duration>,
}

pub async fn run() -> Vec<String> {
    let fixture = LedgerFixture::sqlite().await;
    let engine = PolicyEngine::new(fixture.ledger().clone(), Arc::new(fixture.clock().clone()));
    let guardians = Guardians::new(Arc::new(engine), Vec::new(), Arc::new(LogAlarm::default()));
    let with_past: Vec<&str> = ABOUT_THE_CALL.into_iter().chain([ABOUT_THE_PAST]).collect();
    let starter: Vec<PolicyFile> = starter_policies::FILES
        .iter()
        .map(|(name, text)| PolicyFile { name: (*name).into(), text: (*text).into() })
        .collect();
    let mut subjects = Vec::new();
    for (name, files, calls) in [
        ("none", Vec::new(), 0),
        ("1", vec![set(&ABOUT_THE_CALL, 1)], 0),
        ("100", vec![set(&ABOUT_THE_CALL, 100)], 0),
        ("10,000", vec![set(&ABOUT_THE_CALL, 10_000)], 0),
        ("100, one reads the past", vec![set(&with_past, 100)], 0),
        ("the same after 1,000 calls today", vec![set(&with_past, 100)], 1_000),
        ("the same after 10,000 calls today", vec![set(&with_past, 100)], 10_000),
        ("the starter set", starter, 0),
    ] {
        subjects.push(Subject::new(&fixture, name, files, calls).await);
    }
    // In turns, so that what else the machine does falls on all alike.
    for round in 0..=ROUNDS {
        for subject in &mut subjects {
            subject.sample(&guardians).await;
            if round == 0 {
                subject.times.clear();
            }
        }
    }
    report(subjects)
}

fn report(subjects: Vec<Subject>) -> Vec<String> {
    let figures: Vec<(&str, Times)> =
        subjects.into_iter().map(|subject| (subject.name, Times::of(subject.times))).collect();
    let baseline = figures[0].1.median();
    let row = |(name, times): &(&str, Times)| {
        let [median, late] = [times.median(), times.percentile(99)];
        vec![(*name).to_owned(), fine(median), fine(late), ratio(median, baseline)]
    };
    let rows: Vec<Vec<String>> = figures.iter().map(row).collect();
    let head = ["policies", "median", "p99", "beside none"];
    print("A verdict of policies, in the process, on SQLite", &head, &rows);
    let [hundred, many] = [figures[2].1.median(), figures[3].1.median()];
    vec![
        at_most("a verdict with 100 policies, microseconds", in_micros(hundred), 25.0),
        at_most("10,000 policies beside 100, times", many.as_secs_f64() / hundred.as_secs_f64(), 2.0),
    ]
}

impl Subject {
    async fn new(fixture: &LedgerFixture, name: &'static str, files: Vec<PolicyFile>, calls: usize) -> Self {
        let tenant = fixture.tenant().await;
        if !files.is_empty() {
            apply(&tenant, files).await;
        }
        history::fill(fixture, &tenant, calls);
        let samples = if calls == 0 { SAMPLES } else { LONG_SAMPLES };
        Self { name, scene: Scene::new(&tenant), tenant, samples, times: Vec::new() }
    }

    async fn sample(&mut self, guardians: &Guardians) {
        let event = self.scene.event(&self.tenant);
        let hooked = self.scene.hooked(&event);
        for _ in 0..self.samples {
            self.times.push(timed(guardians, &hooked).await);
        }
    }
}

/// How long one verdict takes, asked for as the gate does: again with the secret of the call where that is needed.
pub async fn timed(guardians: &Guardians, hooked: &Hooked<'_>) -> Duration {
    let secrets = Some([SECRET].as_slice());
    let begun = Instant::now();
    let mut ruling = guardians.judge(hooked).await.unwrap();
    if ruling.lacks_secrets {
        let marks = hooked.marks.clone();
        ruling = guardians.judge(&Hooked { secrets, marks, ..*hooked }).await.unwrap();
    }
    let took = begun.elapsed();
    assert_eq!(ruling.verdict, Verdict::allow());
    took
}

async fn apply(tenant: &TestTenant, files: Vec<PolicyFile>) {
    let command = ApplyPolicies {
        audit: tenant.audit(),
        change: PolicyChange::Applied,
        files,
        note: None,
        expected: None,
        rules: 0,
        shadowed: 0,
    };
    tenant.ledger.apply_policies(command).await.unwrap();
}
