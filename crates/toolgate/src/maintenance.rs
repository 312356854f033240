//! Background tasks: taking events into the signed log, recording expiries, recording the last use of keys, waking
//! streams, and going on with a change of the master key. A failure is logged, counted and tried again; it ends nothing.
//! A task that panics or ends is started again, and `/readyz` names it until it has done its work once.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use toolgate_approval::ApprovalBroker;
use toolgate_gate::Refusal;
use toolgate_gate::maintenance::mount_sessions::RecordedSessions;
use toolgate_server::App;
use toolgate_server::listener::Tls;
use toolgate_server::operations::tasks::Tasks;
use toolgate_server::shutdown::Phase;

pub use self::mounts::MountChecks;
use crate::heads_file::HeadsKeeper;
use crate::telemetry::{Exporter, process_figures};
use crate::webhooks::{POLL_INTERVAL, WebhookDeliveries, Webhooks};

mod mounts;

/// The delay before an ended task is restarted.
const RESTART_AFTER: Duration = Duration::from_secs(1);
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(100);
const SAVE_HEADS_INTERVAL: Duration = Duration::from_secs(1);
const NEWS_POLL_INTERVAL: Duration = Duration::from_millis(100);
const CONTINUE_INTERVAL: Duration = Duration::from_millis(250);
const REAP_INTERVAL: Duration = Duration::from_secs(30);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
const FLUSH_KEY_USES_INTERVAL: Duration = Duration::from_secs(15);
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);
const STATISTICS_INTERVAL: Duration = Duration::from_secs(5);
const REKEY_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What this gate does besides the tasks that every gate has.
pub struct Work {
    pub webhooks: Option<Arc<Webhooks>>,
    /// Certificates that may be renewed.
    pub tls: Option<Arc<Tls>>,
    pub integrate_every: Duration,
    pub heads: Arc<HeadsKeeper>,
    /// Exports traces and metrics.
    pub exporter: Option<Arc<Exporter>>,
    /// When mounted servers are inspected.
    pub mounts: MountChecks,
}

/// The background work of one gate.
pub struct Maintenance {
    tasks: Supervisor,
    stop: watch::Sender<bool>,
    heads: Arc<HeadsKeeper>,
    mount_sessions: Arc<RecordedSessions>,
}

impl Maintenance {
    pub fn start(app: &Arc<App>, broker: &Arc<ApprovalBroker>, work: Work) -> Self {
        let Work { webhooks, tls, integrate_every, heads, exporter, mounts } = work;
        let (stop, stopped) = watch::channel(false);
        let mut tasks = Supervisor { app: Arc::clone(app), stopped, loops: JoinSet::new() };
        tasks.start("integrate", move |app, stopped| integrate(app, integrate_every, stopped));
        let kept = Arc::clone(&heads);
        tasks.start("heads", move |app, stopped| keep_heads(app, Arc::clone(&kept), stopped));
        tasks.start("statistics", sample_statistics);
        tasks.start("sweep", sweep);
        tasks.start("stores", sweep_stores);
        tasks.start("key-uses", flush_key_uses);
        let shared_broker = Arc::clone(broker);
        tasks.start("decisions", move |app, stopped| poll_decisions(app, Arc::clone(&shared_broker), stopped));
        tasks.start("streams", look_for_news);
        let shared_broker = Arc::clone(broker);
        tasks.start("reap", move |app, stopped| reap(app, Arc::clone(&shared_broker), stopped));
        let shared_broker = Arc::clone(broker);
        tasks.start("heartbeat", move |app, stopped| heartbeat(app, Arc::clone(&shared_broker), stopped));
        if let Some(webhooks) = webhooks {
            tasks.start("webhooks", move |app, stopped| deliver_webhooks(app, Arc::clone(&webhooks), stopped));
        }
        if let Some(tls) = tls {
            tasks.start("certificates", move |app, stopped| reload_certificates(app, Arc::clone(&tls), stopped));
        }
        let mount_sessions = Arc::clone(&mounts.sessions);
        tasks.start("mounts", move |app, stopped| mounts.clone().run(app, stopped));
        tasks.start("rekey", rekey);
        if let Some(exporter) = exporter {
            if let Some(interval) = exporter.metrics_interval {
                let exporter = Arc::clone(&exporter);
                let export = move |app, stopped| export_metrics(app, Arc::clone(&exporter), interval, stopped);
                tasks.start("metrics-export", export);
            }
            tasks.start("trace-export", move |app, stopped| export_spans(app, Arc::clone(&exporter), stopped));
        }
        Self { tasks, stop, heads, mount_sessions }
    }

    /// Starts to continue detached calls, on this runtime: checking and redacting a request may take long.
    pub fn continue_detached(&mut self, offload: &Handle) {
        self.tasks.start_on(offload, "detached-calls", continue_detached);
    }

    /// Stops the tasks after the last response, and writes what is still pending.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        let Supervisor { app, loops, .. } = self.tasks;
        loops.join_all().await;
        let mut last = Watched::new(&app, "the last background work before shutdown");
        last.note(app.gate.authenticator.flush_key_uses().await);
        last.note(app.gate.maintenance.sum_up_refusals(true).await);
        last.note(self.mount_sessions.close_all().await);
        last.note(integrate_once(&app).await);
        last.note(self.heads.keep(&app.gate).await);
    }
}

async fn integrate(app: Arc<App>, every: Duration, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "integrating events into the audit log");
    let mut ticks = Ticks::new(&app, "integrate", every, stopped);
    while ticks.next().await {
        watched.note(integrate_once(&app).await);
    }
}

async fn integrate_once(app: &App) -> Result<(), Refusal> {
    let begun = app.gate.clock.monotonic_nanos();
    app.gate.audit.integrate().await.map(|count| app.metrics.integrated(count, begun))
}

/// Samples the process and the ledger for metrics.
async fn sample_statistics(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "reading the statistics of the ledger");
    let mut ticks = Ticks::new(&app, "statistics", STATISTICS_INTERVAL, stopped);
    while ticks.next().await {
        let ledger = app.gate.maintenance.ledger_statistics().await;
        app.metrics.sampled(app.gate.clock.now(), process_figures(), ledger.as_ref().ok().cloned());
        watched.note(ledger.map(drop));
    }
}

/// Compares the ledger with its known heads, and stores its newest heads for later starts.
async fn keep_heads(app: Arc<App>, heads: Arc<HeadsKeeper>, stopped: watch::Receiver<bool>) {
    let mut comparing = Watched::new(&app, "comparing the ledger with its signed heads");
    let mut keeping = Watched::new(&app, "storing the signed heads");
    let mut ticks = Ticks::new(&app, "heads", SAVE_HEADS_INTERVAL, stopped);
    while ticks.next().await {
        comparing.note(app.gate.maintenance.watch_heads().await);
        keeping.note(heads.keep(&app.gate).await);
    }
}

async fn sweep(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "recording expiries");
    let mut ticks = Ticks::new(&app, "sweep", SWEEP_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(app.gate.maintenance.sweep().await);
        watched.note(app.gate.maintenance.close_calls().await.map(drop));
        watched.note(app.gate.pipeline.look_for_stops().await);
        watched.note(app.gate.maintenance.close_sessions().await.map(drop));
        watched.note(app.gate.maintenance.sweep_work().await.map(drop));
        watched.note(app.gate.maintenance.sum_up_refusals(false).await);
    }
}

/// Deletes for good what stores have forgotten.
async fn sweep_stores(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "deleting what stores have forgotten");
    let mut ticks = Ticks::new(&app, "stores", SWEEP_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(app.gate.maintenance.sweep_stores().await.map(drop));
    }
}

/// Decisions may be made on another gate: waiting calls here must learn of them soon.
async fn poll_decisions(app: Arc<App>, broker: Arc<ApprovalBroker>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "polling for decisions made on other gates");
    let mut ticks = Ticks::new(&app, "decisions", DECISION_POLL_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(broker.collect().await);
    }
}

/// One poll for all event streams.
async fn look_for_news(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "looking for events that streams wait for");
    let mut ticks = Ticks::new(&app, "streams", NEWS_POLL_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(app.gate.streams.look_for_news().await);
    }
}

/// Each call has its own timer; this is for approvals without one.
async fn reap(app: Arc<App>, broker: Arc<ApprovalBroker>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "ending approvals whose callers are gone");
    let mut ticks = Ticks::new(&app, "reap", REAP_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(broker.reap().await.map(drop));
        watched.note(app.gate.pipeline.sweep_detached().await.map(drop));
    }
}

/// Runs detached calls whose approval was decided, here or elsewhere, or whose process has stopped.
async fn continue_detached(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "continuing detached calls");
    let mut ticks = Ticks::new(&app, "detached-calls", CONTINUE_INTERVAL, stopped);
    loop {
        let goes_on = tokio::select! {
            goes_on = ticks.next() => goes_on,
            () = app.gate.pipeline.detached_ready() => true,
        };
        if !goes_on {
            return;
        }
        // A gate that stops begins nothing: another one does, or the next start.
        if app.shutdown.phase() < Phase::Draining {
            watched.note(app.gate.pipeline.continue_detached().await.map(drop));
        }
    }
}

async fn heartbeat(app: Arc<App>, broker: Arc<ApprovalBroker>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "sending heartbeats to other gates");
    let mut ticks = Ticks::new(&app, "heartbeat", HEARTBEAT_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(broker.heartbeat().await);
    }
}

/// Delivers approval events to the webhook.
async fn deliver_webhooks(app: Arc<App>, webhooks: Arc<Webhooks>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "delivering approval events to the webhook");
    let mut deliveries = WebhookDeliveries::new(webhooks, stopped.clone());
    let mut ticks = Ticks::new(&app, "webhooks", POLL_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(deliveries.look().await);
    }
    deliveries.finish().await;
}

/// Reads certificates again that may have been renewed: watching the files would miss links that are changed above them.
async fn reload_certificates(app: Arc<App>, tls: Arc<Tls>, stopped: watch::Receiver<bool>) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            return tracing::error!(%error, "could not listen for SIGHUP: certificates are not reloaded on \
            it");
        }
    };
    let mut ticks = Ticks::new(&app, "certificates", RELOAD_INTERVAL, stopped);
    let mut failure = String::new();
    loop {
        let goes_on = tokio::select! {
            goes_on = ticks.next() => goes_on,
            _ = hangups.recv() => true,
        };
        if !goes_on {
            return;
        }
        match tls.reload() {
            Ok(false) => failure.clear(),
            Ok(true) => {
                failure.clear();
                tracing::info!("loaded the renewed certificate");
            }
            Err(error) => {
                let error = error.to_string();
                if error != failure {
                    tracing::error!(error, "could not load the renewed certificate; the previous one stays in use");
                    failure = error;
                }
            }
        }
    }
}

async fn export_spans(app: Arc<App>, exporter: Arc<Exporter>, stopped: watch::Receiver<bool>) {
    exporter.export_spans(&app, stopped, || app.tasks.worked("trace-export")).await;
}

async fn export_metrics(app: Arc<App>, exporter: Arc<Exporter>, interval: Duration, stopped: watch::Receiver<bool>) {
    exporter.export_metrics(&app, interval, stopped, || app.tasks.worked("metrics-export")).await;
}

async fn flush_key_uses(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "recording the last use of keys");
    let mut ticks = Ticks::new(&app, "key-uses", FLUSH_KEY_USES_INTERVAL, stopped);
    while ticks.next().await {
        watched.note(app.gate.authenticator.flush_key_uses().await);
    }
}

async fn rekey(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "rewrapping under the current master key");
    let mut ticks = Ticks::new(&app, "rekey", REKEY_POLL_INTERVAL, stopped.clone());
    let mut wanted = false;
    while ticks.next().await {
        wanted |= app.gate.maintenance.take_rekey_request();
        if !wanted {
            continue;
        }
        // May be interrupted anywhere: the next start continues it.
        let outcome = tokio::select! {
            outcome = app.gate.maintenance.rekey() => outcome,
            _ = stopped.changed() => return,
        };
        wanted = outcome.is_err();
        watched.note(outcome.map(|done| {
            if done.damaged > 0 {
                tracing::warn!(
                    rewrapped = done.rewrapped,
                    damaged = done.damaged,
                    "some credentials stay under an old master key"
                );
            } else if done.rewrapped > 0 {
                tracing::info!(rewrapped = done.rewrapped, "everything is wrapped by the current master key");
            }
        }));
    }
}

/// The ticks of a task, until shutdown.
struct Ticks<'a> {
    tasks: &'a Tasks,
    name: &'static str,
    timer: tokio::time::Interval,
    stopped: watch::Receiver<bool>,
    begun: bool,
}

impl<'a> Ticks<'a> {
    fn new(app: &'a App, name: &'static str, every: Duration, stopped: watch::Receiver<bool>) -> Self {
        let mut timer = interval(every);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { tasks: &app.tasks, name, timer, stopped, begun: false }
    }

    /// Waits for the next tick; false after shutdown. The work of the tick before is done by then.
    async fn next(&mut self) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            self.tasks.worked(self.name);
        }
        tokio::select! {
            biased;
            _ = self.stopped.changed() => false,
            _ = self.timer.tick() => true,
        }
    }
}

/// Starts tasks, and starts them again.
struct Supervisor {
    app: Arc<App>,
    stopped: watch::Receiver<bool>,
    loops: JoinSet<()>,
}

impl Supervisor {
    fn start<F, R>(&mut self, name: &'static str, task: F)
    where
        F: Fn(Arc<App>, watch::Receiver<bool>) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.start_on(&Handle::current(), name, task);
    }

    fn start_on<F, R>(&mut self, runtime: &Handle, name: &'static str, task: F)
    where
        F: Fn(Arc<App>, watch::Receiver<bool>) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (app, stopped) = (Arc::clone(&self.app), self.stopped.clone());
        let tasks = Arc::clone(&app.tasks);
        let supervised = supervise(tasks, name, stopped.clone(), move || task(Arc::clone(&app), stopped.clone()));
        self.loops.spawn_on(supervised, runtime);
    }
}

/// Runs a task until shutdown, and restarts it whenever it ends before.
async fn supervise<R: Future<Output = ()>>(
    tasks: Arc<Tasks>,
    name: &'static str,
    mut stopped: watch::Receiver<bool>,
    task: impl Fn() -> R,
) {
    loop {
        let how = match AssertUnwindSafe(async { task().await }).catch_unwind().await {
            Ok(()) => "ended",
            Err(_) => "panicked",
        };
        if *stopped.borrow() {
            return;
        }
        tasks.failed(name, how);
        tracing::error!(task = name, "a background task {how} and is restarted");
        // A dropped sender also means shutdown.
        if tokio::time::timeout(RESTART_AFTER, stopped.wait_for(|stopped| *stopped)).await.is_ok() {
            return;
        }
    }
}

/// Logs when work begins to fail and when it succeeds again, and nothing in between: a task may run several times a
/// second.
struct Watched<'a> {
    app: &'a App,
    work: &'static str,
    failing: bool,
}

impl<'a> Watched<'a> {
    fn new(app: &'a App, work: &'static str) -> Self {
        Self { app, work, failing: false }
    }

    fn note(&mut self, outcome: Result<(), Refusal>) {
        match outcome {
            Ok(()) if self.failing => {
                self.failing = false;
                tracing::info!(work = self.work, "a background task succeeds again");
            }
            Ok(()) => {}
            Err(refusal) => {
                self.app.metrics.maintenance_failed();
                if !self.failing {
                    self.failing = true;
                    let code = refusal.code().as_str();
                    tracing::warn!(work = self.work, code, reason = %refusal, "a background task failed and will be \
                        retried");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_or_ends_is_named_and_started_again() {
        let (stop, stopped) = watch::channel(false);
        let (tasks, runs) = (Arc::new(Tasks::default()), Arc::new(AtomicUsize::new(0)));
        let (of_task, counted, ended) = (Arc::clone(&tasks), Arc::clone(&runs), stopped.clone());
        let task = move || {
            let (tasks, run, mut ended) = (Arc::clone(&of_task), counted.fetch_add(1, Ordering::SeqCst), ended.clone());
            async move {
                match run {
                    0 => panic!("a fault of the task"),
                    1 => {}
                    _ => {
                        tasks.worked("task");
                        let _ = ended.wait_for(|stopped| *stopped).await;
                    }
                }
            }
        };
        let supervised = tokio::spawn(supervise(Arc::clone(&tasks), "task", stopped, task));
        for how in ["`task` panicked", "`task` ended"] {
            while !tasks.check().is_err_and(|refusal| refusal.reason().contains(how)) {
                tokio::task::yield_now().await;
                tokio::time::advance(Duration::from_millis(100)).await;
            }
        }
        while tasks.check().is_err() {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert_eq!(runs.load(Ordering::SeqCst), 3);
        stop.send_replace(true);
        supervised.await.unwrap();
    }
}
