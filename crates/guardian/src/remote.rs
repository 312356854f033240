//! A guardian of somebody else, asked over a link. Whatever comes of a question comes before its deadline: an answer
//! that can be used, or the class of what went wrong. An answer that is late is never read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use toolgate_dialect::{GuardianDecision, GuardianResponse, ask, read_response};
use toolgate_gate::ports::guardian_link::{Link, LinkFailure, LinkResponse};
use toolgate_model::guard::{Content, Dialect, FailureClass, GuardMode, HookEvent, OnFailure, PolicyRef};

use self::breaker::Breaker;
pub use self::breaker::BreakerSettings;
pub use self::outgoing::Redaction;
use self::outgoing::{Filter, Outgoing};
use crate::detector::DetectorError;
use crate::selector::Selector;
use crate::time::now;

mod breaker;
mod merge;
mod outgoing;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

/// How long a guardian in shadow has where nothing else is said: calls wait for it, and only for the record.
pub const SHADOW_TIMEOUT: Duration = Duration::from_millis(100);

/// How a guardian is asked, and what its word is worth.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// What it is called in records and in what agents are told.
    pub name: String,
    /// In whose words it is asked.
    pub dialect: Dialect,
    /// What it is asked about.
    pub selector: Selector,
    /// Its place among the others: the lowest comes first, and of equals the one that was declared first.
    pub order: i32,
    /// Whether its word counts.
    pub mode: GuardMode,
    /// Whether it may change what it is asked about.
    pub may_modify: bool,
    /// How long it has for an answer.
    pub timeout: Duration,
    /// What happens where it gives none.
    pub on_failure: OnFailure,
    /// How many questions may be in flight at a time.
    pub max_concurrency: usize,
    /// When it is left alone.
    pub breaker: BreakerSettings,
    /// What it is not shown.
    pub redaction: Redaction,
    /// How large a question may be.
    pub max_request_bytes: usize,
    /// Whether it is asked once more where no connection came about.
    pub retries_connecting: bool,
}

impl RemoteSettings {
    /// The strictest: it counts, changes nothing, and its silence is a no.
    pub fn new(name: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            name: name.into(),
            dialect,
            selector: Selector::default(),
            order: 0,
            mode: GuardMode::Enforce,
            may_modify: false,
            timeout: Duration::from_secs(1),
            on_failure: OnFailure::Deny,
            max_concurrency: 64,
            breaker: BreakerSettings::default(),
            redaction: Redaction::default(),
            max_request_bytes: 1024 * 1024,
            retries_connecting: false,
        }
    }
}

/// A guardian of somebody else.
pub struct RemoteGuardian {
    settings: RemoteSettings,
    link: Arc<dyn Link>,
    filter: Filter,
    places: Semaphore,
    breaker: Breaker,
    asked: AtomicU64,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteResult {
    /// What the guardian said.
    pub said: Result<RemoteDecision, Failed>,
    /// Why, in its words.
    pub reason: Option<String>,
    /// By which of its rules.
    pub policy: Option<PolicyRef>,
    /// How long it had.
    pub timeout: Duration,
    /// How long it took.
    pub latency: Duration,
}

/// What a guardian said.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteDecision {
    /// That it may be as it is.
    Allow,
    /// That it must not be.
    Deny,
    /// That it may be with this content instead, which is another one than it was asked about.
    Modify(Box<Content<'static>>),
}

/// Why a guardian said nothing that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    /// What went wrong.
    pub class: FailureClass,
    /// Whether it lies in the question. Whoever calls writes that, and must not get past a guardian by what it writes.
    pub by_question: bool,
}

impl From<FailureClass> for Failed {
    fn from(class: FailureClass) -> Self {
        Self { class, by_question: false }
    }
}

impl RemoteGuardian {
    /// One that is reached over this link.
    pub fn new(settings: RemoteSettings, link: Arc<dyn Link>) -> Result<Self, DetectorError> {
        Ok(Self {
            link,
            filter: Filter::new(settings.redaction.clone())?,
            places: Semaphore::new(settings.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            breaker: Breaker::new(settings.breaker),
            asked: AtomicU64::new(0),
            settings,
        })
    }

    /// How it is asked, and what its word is worth.
    pub fn settings(&self) -> &RemoteSettings {
        &self.settings
    }

    /// Whether a failure passes for a yes.
    pub fn passes(&self, failed: Failed) -> bool {
        self.settings.on_failure == OnFailure::Allow && !failed.class.always_denies() && !failed.by_question
    }

    /// Writes the question about an event, with these secrets taken out. That is the gate's own work, and as much of it as
    /// the caller makes: the guardian's time begins only when it is asked.
    pub fn prepare<'a>(&'a self, event: &'a HookEvent<'_>, secrets: &[&[u8]]) -> Prepared<'a> {
        let started = now();
        let question = self.question(event, secrets);
        Prepared { guardian: self, event, question, preparing: started.elapsed() }
    }

    /// Prepares a question and asks it.
    #[cfg(test)]
    pub(crate) async fn ask(&self, event: &HookEvent<'_>, secrets: &[&[u8]], until: Instant) -> RemoteResult {
        self.prepare(event, secrets).ask(until).await
    }

    fn question<'a>(&self, event: &'a HookEvent<'_>, secrets: &[&[u8]]) -> Result<Question<'a>, Failed> {
        let unwritable = Failed { class: FailureClass::Malformed, by_question: true };
        let outgoing = self.filter.outgoing(event, secrets).ok_or(unwritable)?;
        let id = self.next_id(event);
        let body = ask(self.settings.dialect, &outgoing.event, &id).ok_or(unwritable)?.to_string().into_bytes();
        if body.len() > self.settings.max_request_bytes {
            return Err(Failed { class: FailureClass::Oversize, by_question: true });
        }
        Ok(Question { outgoing, id, body })
    }

    async fn put(
        &self,
        event: &HookEvent<'_>,
        question: Question<'_>,
        deadline: Instant,
    ) -> Result<ParsedDecision, Failed> {
        let Question { outgoing, id, body } = question;
        if now() >= deadline {
            return Err(FailureClass::Timeout.into());
        }
        let turn = self.breaker.turn().ok_or(FailureClass::CircuitOpen)?;
        let place = timeout_at(deadline, self.places.acquire()).await;
        let Ok(Ok(_place)) = place else { return Err(FailureClass::Busy.into()) };
        let exchanged = timeout_at(deadline, self.exchange(body, deadline)).await.unwrap_or(Err(FailureClass::Timeout));
        let given =
            exchanged.and_then(|response| read_response(self.settings.dialect, &response.body, &id, &outgoing.event));
        match &given {
            // One that says what cannot be used is there all the same: leaving it alone could turn its no into a pass.
            Err(class) if !class.always_denies() => turn.failed(),
            _ => turn.responded(),
        }
        Ok(parse_decision(given?, event, &outgoing)?)
    }

    async fn exchange(&self, question: Vec<u8>, deadline: Instant) -> Result<LinkResponse, FailureClass> {
        let timeout = || deadline.saturating_duration_since(now());
        let again = self.settings.retries_connecting.then(|| question.clone());
        let response = match (self.link.post(question, timeout()).await, again) {
            (Err(LinkFailure::Connect), Some(question)) => self.link.post(question, timeout()).await,
            (response, _) => response,
        };
        let response = response.map_err(|failure| match failure {
            LinkFailure::Connect => FailureClass::Connect,
            LinkFailure::Tls => FailureClass::Tls,
            LinkFailure::Timeout => FailureClass::Timeout,
            LinkFailure::Oversize => FailureClass::Oversize,
            LinkFailure::Broken => FailureClass::Malformed,
        })?;
        if response.status != 200 {
            return Err(FailureClass::Status);
        }
        if !response.content_type.as_deref().is_some_and(is_json) {
            return Err(FailureClass::ContentType);
        }
        Ok(response)
    }

    /// An id that no other question to this guardian has, as far as one process can tell.
    fn next_id(&self, event: &HookEvent<'_>) -> String {
        format!("{:x}-{}", event.time.as_millis(), self.asked.fetch_add(1, Ordering::Relaxed))
    }
}

/// A question that is written and not asked yet, or why it cannot be.
pub struct Prepared<'a> {
    guardian: &'a RemoteGuardian,
    event: &'a HookEvent<'a>,
    question: Result<Question<'a>, Failed>,
    preparing: Duration,
}

struct Question<'a> {
    outgoing: Outgoing<'a>,
    id: String,
    body: Vec<u8>,
}

impl Prepared<'_> {
    /// Asks. Over at the given time, and earlier if the guardian's own time is.
    pub async fn ask(self, until: Instant) -> RemoteResult {
        let Self { guardian, event, question, preparing } = self;
        let started = now();
        let timeout = until.saturating_duration_since(started).min(guardian.settings.timeout);
        let given = match question {
            Ok(question) => guardian.put(event, question, started + timeout).await,
            Err(failed) => Err(failed),
        };
        let (said, reason, policy) = match given {
            Err(failed) => (Err(failed), None, None),
            Ok((said, reason, policy)) => (Ok(said), reason, policy),
        };
        RemoteResult { said, reason, policy, timeout, latency: preparing + started.elapsed() }
    }
}

type ParsedDecision = (RemoteDecision, Option<String>, Option<PolicyRef>);

fn parse_decision(
    given: GuardianResponse,
    event: &HookEvent<'_>,
    outgoing: &Outgoing<'_>,
) -> Result<ParsedDecision, FailureClass> {
    let said = match given.decision {
        GuardianDecision::Allow => RemoteDecision::Allow,
        GuardianDecision::Deny => RemoteDecision::Deny,
        GuardianDecision::Modify(responded) => {
            let content = outgoing.restored(responded).ok_or(FailureClass::BadModify)?;
            // One that changes nothing agrees.
            if content == event.content { RemoteDecision::Allow } else { RemoteDecision::Modify(Box::new(content)) }
        }
    };
    Ok((said, given.reason, given.policy))
}

/// Whether a content type says JSON, by its own name or by its ending.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.strip_prefix("application/").is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}
