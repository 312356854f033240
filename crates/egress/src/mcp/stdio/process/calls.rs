//! The in-flight calls of one process: how many there may be, and which of them gets a message of the server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use toolgate_gate::ports::mount::MountSession;
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_model::principal::PrincipalId;

use super::Origin;
use crate::mcp::listing::Listing;
use crate::mcp::message::{self, Envelope};
use crate::time::now;

/// Why a process was stopped that has done nothing wrong.
pub(super) const UNUSED: &str = "the server was stopped after the idle timeout";
/// How many requests a process has at a time, and how many of them for one principal.
const IN_FLIGHT: usize = 256;
const IN_FLIGHT_OF_AGENT: usize = 64;
/// How long a process lives that was started for an inspection and that no call has used.
const INSPECTED: Duration = Duration::from_secs(60);

/// Shared by the calls of a process and its tasks.
pub(super) struct Shared {
    calls: Mutex<Calls>,
    pub(super) listing: Listing,
    pub(super) origin: Origin,
    /// The record of what it keeps for its principal.
    kept: Mutex<Option<MountSession>>,
}

pub(super) struct Calls {
    pub(super) waiting: HashMap<u64, Waiting>,
    /// The highest id that was given to it.
    last_id: u64,
    /// When a call last used it, or when it was started. Inspections do not count.
    pub(super) used: Instant,
    was_called: bool,
    /// Why it has ended.
    pub(super) ended: Option<&'static str>,
}

pub(super) struct Waiting {
    pub(super) agent: Option<PrincipalId>,
    pub(super) response: oneshot::Sender<Result<Vec<u8>, &'static str>>,
    /// Takes what the server says before its response.
    pub(super) heard: Option<mpsc::Sender<Vec<u8>>>,
}

impl Shared {
    pub(super) fn new(origin: Origin) -> Self {
        let calls = Calls { waiting: HashMap::new(), last_id: 0, used: now(), was_called: false, ended: None };
        Self { calls: Mutex::new(calls), listing: Listing::default(), origin, kept: Mutex::default() }
    }

    /// Notes the record of what the process keeps for its principal, which ends with it.
    pub(super) fn keep(&self, session: MountSession) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        // It may have ended before.
        let ended = self.calls().ended;
        ended.into_iter().for_each(|reason| self.end(reason));
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, id: u64, waiting: Waiting) -> Result<(), SourceFailure> {
        let mut calls = self.calls();
        if let Some(reason) = calls.ended {
            return Err(SourceFailure::not_sent(FailureKind::Proxy, reason));
        }
        let of_agent = calls.waiting.values().filter(|other| other.agent == waiting.agent).count();
        if calls.waiting.len() >= IN_FLIGHT || (waiting.agent.is_some() && of_agent >= IN_FLIGHT_OF_AGENT) {
            let reason = "its server has reached its limit of in-flight calls; try again";
            return Err(SourceFailure::not_sent(FailureKind::Overloaded, reason));
        }
        if waiting.agent.is_some() {
            calls.note_use();
        }
        calls.last_id = calls.last_id.max(id);
        calls.waiting.insert(id, waiting);
        Ok(())
    }

    /// Delivers a message. Returns whether it is a response that was waited for.
    pub(super) fn route(&self, line: Vec<u8>, outgoing: &mpsc::WeakSender<Vec<u8>>) -> bool {
        match Envelope::of(&line) {
            Ok(Envelope::Response(Some(id))) => {
                let mut calls = self.calls();
                match calls.leave(id) {
                    Some(waiting) => {
                        let _ = waiting.response.send(Ok(line));
                        return true;
                    }
                    // A late response to a call that no longer waits.
                    None if id <= calls.last_id => {}
                    None => calls.fail_all("the server's response has the id of no request"),
                }
            }
            Ok(Envelope::Response(None)) => self.calls().fail_all("the server's response has the id of no request"),
            Ok(Envelope::Request { id, method }) => {
                let Err(_) = self.to_only_call(line) else { return false };
                // Refused politely, if the process reads what it is sent.
                if let Some(outgoing) = outgoing.upgrade() {
                    let mut refusal = message::refusal(&id, &method);
                    refusal.push(b'\n');
                    let _ = outgoing.try_send(refusal);
                }
            }
            Ok(Envelope::Notification { method }) if method == "notifications/tools/list_changed" => {
                self.listing.expire();
                if let Some(service) = &self.origin.service {
                    self.origin.watch.changed(&self.origin.tenant, service);
                }
            }
            Ok(Envelope::Notification { method }) if method == message::PROGRESS => {
                let Some((id, _)) = message::progress(&line) else { return false };
                let calls = self.calls();
                let heard = calls.waiting.get(&id).and_then(|waiting| waiting.heard.as_ref());
                // Left out where it comes faster than it is read.
                heard.map(|heard| heard.try_send(line));
            }
            Ok(Envelope::Notification { method }) if method == message::LOG => drop(self.to_only_call(line)),
            Ok(Envelope::Notification { .. }) => {}
            Err(_) => self.calls().fail_all("the server sent a malformed message"),
        }
        false
    }

    /// When the idle timeout is to be checked next; `None` if it is over: then the process has ended, and accepts no more
    /// calls.
    pub(super) fn next_look(&self, idle: Duration) -> Option<Instant> {
        let (mut calls, now) = (self.calls(), now());
        if !calls.waiting.is_empty() {
            return Some(now + idle);
        }
        let until = calls.used + if calls.was_called { idle } else { idle.min(INSPECTED) };
        if until <= now {
            calls.ended.get_or_insert(UNUSED);
            return None;
        }
        Some(until)
    }

    /// Delivers a message that names no call to the only call that it can belong to: what a server asks during one call
    /// must not reach the client of another one.
    fn to_only_call(&self, line: Vec<u8>) -> Result<(), Vec<u8>> {
        let calls = self.calls();
        let mut waiting = calls.waiting.values();
        match (waiting.next().and_then(|only| only.heard.as_ref()), waiting.next()) {
            (Some(heard), None) if self.origin.is_exclusive => heard.try_send(line).map_err(|full| full.into_inner()),
            _ => Err(line),
        }
    }

    pub(super) fn end(&self, reason: &'static str) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(kept) if reason != UNUSED => kept.fail(),
            kept => drop(kept),
        }
        let mut calls = self.calls();
        calls.ended.get_or_insert(reason);
        // Their senders are dropped: the waiting calls read the reason.
        calls.waiting.clear();
    }
}

impl Calls {
    pub(super) fn note_use(&mut self) {
        self.used = now();
        self.was_called = true;
    }

    /// A request is over. Until then the process was in use, if it was one of a call.
    pub(super) fn leave(&mut self, id: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        if waiting.agent.is_some() {
            self.note_use();
        }
        Some(waiting)
    }

    fn fail_all(&mut self, reason: &'static str) {
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.response.send(Err(reason));
        }
    }
}
