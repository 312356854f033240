//! The consultation of external guardians on one event, after the first evaluation of the policies. They are asked in
//! order: those up to the next one that may modify concurrently, and those after it about the content that it modified,
//! so that a modifier keeps the original from all that follow. A guardian that has not agreed to the final content is
//! asked again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use toolgate_gate::ports::guardian::Hooked;
use toolgate_gate::refusal::Refusal;
use toolgate_model::guard::{Ask, Content, Denial, HookEvent, Verdict};

use super::alarm::Alarm;
use super::participant::{Participant, Round};
use super::record::DecisionRecord;
use super::{Guardians, InProcess};
use crate::remote::RemoteGuardian;
use crate::time::now;

/// A consultation in progress.
pub(super) struct Consultation<'a, 'm> {
    hooked: &'a Hooked<'a>,
    policy: &'a dyn InProcess,
    alarm: &'a dyn Alarm,
    participants: Vec<Participant<'a>>,
    original: Arc<Content<'a>>,
    /// The remaining time of all guardians together. The gate's own work does not count.
    left: Duration,
    decision_record: &'m mut DecisionRecord<'a>,
}

/// Why a consultation ends early.
enum End {
    Denied(Denial),
    /// The state of the policies is no longer known.
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

impl<'a, 'm> Consultation<'a, 'm> {
    pub(super) fn new(
        hooked: &'a Hooked<'a>,
        guardians: &'a Guardians,
        asked: Vec<&'a RemoteGuardian>,
        decision_record: &'m mut DecisionRecord<'a>,
    ) -> Self {
        Self {
            hooked,
            policy: &*guardians.policy,
            alarm: &*guardians.alarm,
            participants: asked.into_iter().map(Participant::new).collect(),
            original: Arc::new(hooked.event.content.clone()),
            left: guardians.budget,
            decision_record,
        }
    }

    /// Consults all guardians, given the first verdict of the policies; all decisions are added to the record.
    pub(super) async fn run(mut self, first: Verdict) -> Result<Verdict, Refusal> {
        let (redacted, asks) = match first {
            Verdict::Deny(_) => return Ok(first),
            Verdict::Pass { content, asks } => (content, asks),
        };
        let ended = self.conclude(redacted.map(|content| *content), asks).await;
        self.decision_record.others = self.participants.into_iter().map(Participant::into_record).collect();
        match ended {
            Ok(verdict) => Ok(verdict),
            Err(End::Denied(denial)) => Ok(Verdict::Deny(denial)),
            Err(End::Refused(refusal)) => Err(refusal),
        }
    }

    async fn conclude(&mut self, redacted: Option<Content<'static>>, mut asks: Vec<Ask>) -> Result<Verdict, End> {
        let mut content = redacted.map_or_else(|| Arc::clone(&self.original), Arc::new);
        let mut is_modified = false;
        let mut next = 0;
        while next < self.participants.len() {
            let modifier = self.participants.iter().skip(next).position(Participant::modifies);
            let end = modifier.map_or(self.participants.len(), |modifier| next + modifier + 1);
            self.round((next..end).collect(), &content, Round::Any).await?;
            if let Some(change) = self.participants.get_mut(end - 1).and_then(Participant::take_change) {
                content = change;
                is_modified = true;
            }
            next = end;
        }
        // Also if one guardian reverted what another had modified.
        if is_modified {
            content = self.judge_again(content, &mut asks).await?;
            let open = self
                .participants
                .iter()
                .enumerate()
                .filter(|(_, participant)| participant.enforces() && !participant.agrees_to(&content));
            let open = open.map(|(position, _)| position).collect();
            self.round(open, &content, Round::Last).await?;
        }
        let is_changed = content != self.original;
        let content = is_changed.then(|| Box::new(Content::clone(&content).into_owned()));
        Ok(Verdict::Pass { content, asks })
    }

    /// Asks these guardians concurrently. The first enforced denial cancels the rest.
    async fn round(&mut self, positions: Vec<usize>, content: &Arc<Content<'a>>, round: Round) -> Result<(), Denial> {
        let Self { hooked, alarm, left, ref mut participants, .. } = *self;
        let event = &about(hooked.event, content);
        let secrets = hooked.secrets.unwrap_or_default();
        let of_round = positions.into_iter().filter_map(|position| Some((position, participants.get(position)?)));
        let prepared: Vec<_> =
            of_round.map(|(position, participant)| (position, participant.guardian.prepare(event, secrets))).collect();
        // All requests are written before the first is sent, so that no guardian's time is spent on the request to
        // another.
        let started = now();
        let until = started.checked_add(left).unwrap_or(started);
        let asking =
            prepared.into_iter().map(|(position, prepared)| async move { (position, prepared.ask(until).await) });
        let mut pending: FuturesUnordered<_> = asking.collect();
        let mut spent = Duration::ZERO;
        while let Some((position, asked)) = pending.next().await {
            let Some(participant) = participants.get_mut(position) else { continue };
            if participant.enforces() {
                // Guardians in shadow mode do not use up the time of the others.
                spent = started.elapsed();
            }
            if let Some(denial) = participant.apply_decision(asked, content, round, event.hook, alarm) {
                return Err(denial);
            }
        }
        self.left = left.saturating_sub(spent);
        Ok(())
    }

    /// Evaluates the policies on the modified content.
    async fn judge_again(&mut self, content: Arc<Content<'a>>, asks: &mut Vec<Ask>) -> Result<Arc<Content<'a>>, End> {
        let started = now();
        let evaluation = self.policy.judge(self.hooked, &content).await?;
        self.decision_record.add(&evaluation, started.elapsed());
        match evaluation.verdict {
            Verdict::Deny(denial) => Err(denial.into()),
            Verdict::Pass { content: redacted, asks: further } => {
                let further: Vec<_> = further.into_iter().filter(|ask| !asks.contains(ask)).collect();
                asks.extend(further);
                Ok(redacted.map_or(content, |redacted| Arc::new(*redacted)))
            }
        }
    }
}

/// The same event with other content.
fn about<'a>(event: &HookEvent<'a>, content: &Content<'a>) -> HookEvent<'a> {
    HookEvent { content: content.clone(), ..event.clone() }
}
