//! The hearing of guardians of others on one event, after the policies said their first word. All are asked about what
//! came, at the same time; changes are made one by one; whoever has not agreed to what came out is asked again.

use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, timeout_at};
use toolgate_gate::ports::guardian::Hooked;
use toolgate_gate::refusal::Refusal;
use toolgate_model::guard::{Ask, Content, Denial, HookEvent, Verdict};

use super::alarm::Alarm;
use super::record::Minutes;
use super::seat::{Occasion, Seat};
use super::{Guardians, InProcess, SHADOW_PATIENCE};
use crate::remote::RemoteGuardian;
use crate::time::now;

/// A hearing under way.
pub(super) struct Hearing<'a, 'm> {
    hooked: &'a Hooked<'a>,
    policy: &'a dyn InProcess,
    alarm: &'a dyn Alarm,
    seats: Vec<Seat<'a>>,
    original: Arc<Content<'a>>,
    started: Instant,
    /// When guardians have no time left.
    until: Instant,
    minutes: &'m mut Minutes<'a>,
}

/// Why a hearing ends before its end.
enum End {
    /// With a no.
    Denied(Denial),
    /// The policies are not known any more.
    Refused(Refusal),
}

impl From<Denial> for End {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<'a, 'm> Hearing<'a, 'm> {
    pub(super) fn new(
        hooked: &'a Hooked<'a>,
        guardians: &'a Guardians,
        asked: Vec<&'a RemoteGuardian>,
        minutes: &'m mut Minutes<'a>,
    ) -> Self {
        let started = now();
        Self {
            hooked,
            policy: &*guardians.policy,
            alarm: &*guardians.alarm,
            seats: asked.into_iter().map(Seat::new).collect(),
            original: Arc::new(hooked.event.content.clone()),
            started,
            until: started.checked_add(guardians.budget).unwrap_or(started),
            minutes,
        }
    }

    /// Hears them all, given what the policies said first; whatever comes of it is in the minutes.
    pub(super) async fn run(mut self, first: Verdict) -> Result<Verdict, Refusal> {
        let (redacted, asks) = match first {
            Verdict::Deny(_) => return Ok(first),
            Verdict::Pass { content, asks } => (content, asks),
        };
        let ended = self.conclude(redacted.map(|content| *content), asks).await;
        self.minutes.others = self.seats.into_iter().map(Seat::into_record).collect();
        match ended {
            Ok(verdict) => Ok(verdict),
            Err(End::Denied(denial)) => Ok(Verdict::Deny(denial)),
            Err(End::Refused(refusal)) => Err(refusal),
        }
    }

    async fn conclude(&mut self, redacted: Option<Content<'static>>, mut asks: Vec<Ask>) -> Result<Verdict, End> {
        self.ask_all().await?;
        let redacted = redacted.map_or_else(|| Arc::clone(&self.original), Arc::new);
        let content = match self.change(&redacted).await? {
            None => redacted,
            // Also where one took back what another had changed.
            Some(changed) => {
                let content = self.judge_again(changed, &mut asks).await?;
                self.confirm(&content).await?;
                content
            }
        };
        let is_changed = content != self.original;
        let content = is_changed.then(|| Box::new(Content::clone(&content).into_owned()));
        Ok(Verdict::Pass { content, asks })
    }

    /// Asks all about what came, at the same time. The first no that counts cancels the rest.
    async fn ask_all(&mut self) -> Result<(), Denial> {
        let Self { hooked, alarm, until, ref original, ref mut seats, .. } = *self;
        let ask = move |(position, seat): (usize, &Seat<'a>)| {
            let guardian = seat.guardian;
            async move { (position, guardian.ask(hooked.event, hooked.secrets.unwrap_or_default(), until).await) }
        };
        let mut answers: FuturesUnordered<_> = seats.iter().enumerate().map(ask).collect();
        let mut awaited = seats.iter().filter(|seat| seat.enforces()).count();
        let shadow_until = self.started.checked_add(SHADOW_PATIENCE).map_or(until, |at| at.min(until));
        loop {
            let next = match awaited {
                // Those in shadow may keep nobody waiting.
                0 => timeout_at(shadow_until, answers.next()).await.unwrap_or_default(),
                _ => answers.next().await,
            };
            let Some((position, asked)) = next else { break };
            let Some(seat) = seats.get_mut(position) else { continue };
            awaited = awaited.saturating_sub(usize::from(seat.enforces()));
            if let Some(denial) = seat.hear(asked, original, Occasion::Any, hooked.event.hook, alarm) {
                return Err(denial);
            }
        }
        seats.iter_mut().filter(|seat| !seat.is_heard()).for_each(|seat| seat.leave(alarm));
        Ok(())
    }

    /// Makes the changes that they want, in their order. Whoever may change something and saw something else than what
    /// the others before it made is asked again. `None` where nobody changed anything.
    async fn change(&mut self, redacted: &Arc<Content<'a>>) -> Result<Option<Arc<Content<'a>>>, Denial> {
        let mut current: Option<Arc<Content<'a>>> = None;
        for seat in self.seats.iter_mut().filter(|seat| seat.enforces() && seat.guardian.settings().may_modify) {
            let wanted = seat.change.take();
            let is_outdated = match &wanted {
                Some(_) => *current.as_ref().unwrap_or(redacted) != self.original,
                // What only the policies took out needs no second yes.
                None => current.is_some(),
            };
            let change = if is_outdated {
                let content = current.as_ref().unwrap_or(redacted);
                let event = about(self.hooked.event, content);
                let asked = seat.guardian.ask(&event, self.hooked.secrets.unwrap_or_default(), self.until).await;
                let occasion = if wanted.is_some() { Occasion::Change } else { Occasion::Any };
                if let Some(denial) = seat.hear(asked, content, occasion, event.hook, self.alarm) {
                    return Err(denial);
                }
                seat.change.take()
            } else {
                wanted
            };
            if let Some(change) = change {
                let change = Arc::new(change);
                seat.agreed = Some(Arc::clone(&change));
                current = Some(change);
            }
        }
        Ok(current)
    }

    /// Lets the policies judge what others made of it.
    async fn judge_again(&mut self, content: Arc<Content<'a>>, asks: &mut Vec<Ask>) -> Result<Arc<Content<'a>>, End> {
        let started = now();
        let judgement = self.policy.judge(self.hooked, &content).await?;
        self.minutes.add(&judgement, started.elapsed());
        match judgement.verdict {
            Verdict::Deny(denial) => Err(denial.into()),
            Verdict::Pass { content: redacted, asks: further } => {
                let further: Vec<_> = further.into_iter().filter(|ask| !asks.contains(ask)).collect();
                asks.extend(further);
                Ok(redacted.map_or(content, |redacted| Arc::new(*redacted)))
            }
        }
    }

    /// Asks all that have not agreed to just this, at the same time. Nobody can change it any more.
    async fn confirm(&mut self, content: &Arc<Content<'a>>) -> Result<(), Denial> {
        let event = &about(self.hooked.event, content);
        let Self { hooked, alarm, until, ref mut seats, .. } = *self;
        let ask = move |(position, seat): (usize, &Seat<'a>)| {
            let guardian = seat.guardian;
            async move { (position, guardian.ask(event, hooked.secrets.unwrap_or_default(), until).await) }
        };
        let open = seats.iter().enumerate().filter(|(_, seat)| seat.enforces() && !seat.agrees_to(content));
        let mut answers: FuturesUnordered<_> = open.map(ask).collect();
        while let Some((position, asked)) = answers.next().await {
            let Some(seat) = seats.get_mut(position) else { continue };
            if let Some(denial) = seat.hear(asked, content, Occasion::Last, event.hook, alarm) {
                return Err(denial);
            }
        }
        Ok(())
    }
}

/// The same event with other content.
fn about<'a>(event: &HookEvent<'a>, content: &Content<'a>) -> HookEvent<'a> {
    HookEvent { content: content.clone(), ..event.clone() }
}
