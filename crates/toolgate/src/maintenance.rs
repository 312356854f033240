//! Work that nobody asks for: taking events into the signed log, announcing what has expired, noting which keys were
//! used, and going on with a change of the master key. A failure is logged, counted and tried again; it ends nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use toolgate_approval::Desk;
use toolgate_gate::Refusal;
use toolgate_server::App;
use toolgate_server::listener::Tls;

use crate::webhooks::{LOOK_EVERY, Tellings, Webhooks};

const SWEEP_EVERY: Duration = Duration::from_secs(1);
const HEAR_EVERY: Duration = Duration::from_millis(100);
const REAP_EVERY: Duration = Duration::from_secs(30);
const BEAT_EVERY: Duration = Duration::from_secs(5);
const FLUSH_KEY_USES_EVERY: Duration = Duration::from_secs(15);
const RELOAD_EVERY: Duration = Duration::from_secs(10);
const LOOK_FOR_REKEY_EVERY: Duration = Duration::from_secs(1);

/// What there is to do beside what every gate does.
pub struct Work {
    /// Whom approvals are told to.
    pub webhooks: Option<Arc<Webhooks>>,
    /// Certificates that may be renewed.
    pub tls: Option<Arc<Tls>>,
    /// How often events are taken into the log.
    pub integrate_every: Duration,
}

/// The background work of one gate.
pub struct Maintenance {
    app: Arc<App>,
    stop: watch::Sender<bool>,
    loops: JoinSet<()>,
}

impl Maintenance {
    /// Starts it.
    pub fn start(app: &Arc<App>, desk: &Arc<Desk>, work: Work) -> Self {
        let Work { webhooks, tls, integrate_every } = work;
        let (stop, stopped) = watch::channel(false);
        let mut loops = JoinSet::new();
        loops.spawn(integrate(Arc::clone(app), integrate_every, stopped.clone()));
        loops.spawn(sweep(Arc::clone(app), stopped.clone()));
        loops.spawn(flush_key_uses(Arc::clone(app), stopped.clone()));
        loops.spawn(hear_answers(Arc::clone(app), Arc::clone(desk), stopped.clone()));
        loops.spawn(reap(Arc::clone(app), Arc::clone(desk), stopped.clone()));
        loops.spawn(beat(Arc::clone(app), Arc::clone(desk), stopped.clone()));
        if let Some(webhooks) = webhooks {
            loops.spawn(tell(Arc::clone(app), webhooks, stopped.clone()));
        }
        if let Some(tls) = tls {
            loops.spawn(reload_certificates(tls, stopped.clone()));
        }
        loops.spawn(rekey(Arc::clone(app), stopped));
        Self { app: Arc::clone(app), stop, loops }
    }

    /// Ends it when the last request was answered: what is still to be noted is noted.
    pub async fn finish(self) {
        self.stop.send_replace(true);
        self.loops.join_all().await;
        let mut last = Watched::new(&self.app, "the last work before the end");
        last.note(self.app.gate.flush_key_uses().await);
        last.note(self.app.gate.integrate().await.map(|count| self.app.metrics.integrated(count)));
    }
}

async fn integrate(app: Arc<App>, every: Duration, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "taking events into the audit log");
    let mut ticks = Ticks::new(every, stopped);
    while ticks.next().await {
        watched.note(app.gate.integrate().await.map(|count| app.metrics.integrated(count)));
    }
}

async fn sweep(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "announcing what has expired");
    let mut ticks = Ticks::new(SWEEP_EVERY, stopped);
    while ticks.next().await {
        watched.note(app.gate.sweep().await);
        watched.note(app.gate.close_calls().await.map(drop));
        watched.note(app.gate.close_sessions().await.map(drop));
    }
}

/// Answers may be given at another gate: whoever waits here must not wait for long after that.
async fn hear_answers(app: Arc<App>, desk: Arc<Desk>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "hearing of answers from other gates");
    let mut ticks = Ticks::new(HEAR_EVERY, stopped);
    while ticks.next().await {
        watched.note(desk.collect().await);
    }
}

/// Each call has its own timer; this is for what none is left of.
async fn reap(app: Arc<App>, desk: Arc<Desk>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "ending approvals that nobody waits for");
    let mut ticks = Ticks::new(REAP_EVERY, stopped);
    while ticks.next().await {
        watched.note(desk.reap().await.map(drop));
    }
}

async fn beat(app: Arc<App>, desk: Arc<Desk>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "showing other gates that this one lives");
    let mut ticks = Ticks::new(BEAT_EVERY, stopped);
    while ticks.next().await {
        watched.note(desk.beat().await);
    }
}

/// Tells the webhook of approvals.
async fn tell(app: Arc<App>, webhooks: Arc<Webhooks>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "telling the webhook of approvals");
    let mut tellings = Tellings::new(webhooks, stopped.clone());
    let mut ticks = Ticks::new(LOOK_EVERY, stopped);
    while ticks.next().await {
        watched.note(tellings.look().await);
    }
    tellings.finish().await;
}

/// Reads certificates again that may have been renewed: watching the files would miss links that are changed above them.
async fn reload_certificates(tls: Arc<Tls>, stopped: watch::Receiver<bool>) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => return tracing::error!(%error, "certificates are not reloaded: SIGHUP cannot be waited for"),
    };
    let mut ticks = Ticks::new(RELOAD_EVERY, stopped);
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
                tracing::info!("the renewed certificate is in use");
            }
            Err(error) => {
                let error = error.to_string();
                if error != failure {
                    tracing::error!(error, "the certificate cannot be renewed; the one before stays in use");
                    failure = error;
                }
            }
        }
    }
}

async fn flush_key_uses(app: Arc<App>, stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "noting which keys were used");
    let mut ticks = Ticks::new(FLUSH_KEY_USES_EVERY, stopped);
    while ticks.next().await {
        watched.note(app.gate.flush_key_uses().await);
    }
}

async fn rekey(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let mut watched = Watched::new(&app, "changing the master key");
    let mut ticks = Ticks::new(LOOK_FOR_REKEY_EVERY, stopped.clone());
    let mut wanted = false;
    while ticks.next().await {
        wanted |= app.gate.take_rekey_request();
        if !wanted {
            continue;
        }
        // May be cut off anywhere: the next start goes on with it.
        let outcome = tokio::select! {
            outcome = app.gate.rekey() => outcome,
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

/// The beats of a loop, until the end is asked for.
struct Ticks {
    beats: tokio::time::Interval,
    stopped: watch::Receiver<bool>,
}

impl Ticks {
    fn new(every: Duration, stopped: watch::Receiver<bool>) -> Self {
        let mut beats = interval(every);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { beats, stopped }
    }

    /// Waits for the next beat; false when there is none any more.
    async fn next(&mut self) -> bool {
        tokio::select! {
            biased;
            _ = self.stopped.changed() => false,
            _ = self.beats.tick() => true,
        }
    }
}

/// Says when work begins to fail and when it works again, and nothing in between: a loop beats several times a second.
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
                tracing::info!(work = self.work, "background work succeeds again");
            }
            Ok(()) => {}
            Err(refusal) => {
                self.app.metrics.maintenance_failed();
                if !self.failing {
                    self.failing = true;
                    let code = refusal.code().as_str();
                    tracing::warn!(work = self.work, code, reason = %refusal, "background work failed and will be tried again");
                }
            }
        }
    }
}
