//! An external guardian behind a link. A consultation ends before its deadline: with a usable response, or with the
//! class of the failure. A late response is never read.

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

/// The default timeout of a guardian in shadow mode: calls wait for it, and only for the record.
pub const SHADOW_TIMEOUT: Duration = Duration::from_millis(100);

/// How a guardian is asked, and how its decisions count.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// The name in records and in messages to agents.
    pub name: String,
    pub dialect: Dialect,
    /// The events that it is asked about.
    pub selector: Selector,
    /// Its position: the lowest comes first, and of equals the one that was declared first.
    pub order: i32,
    /// Whether its decisions are enforced.
    pub mode: GuardMode,
    /// Whether it may modify content.
    pub may_modify: bool,
    pub timeout: Duration,
    /// What happens if it gives no decision.
    pub on_failure: OnFailure,
    /// The maximum number of requests in flight.
    pub max_concurrency: usize,
    pub breaker: BreakerSettings,
    /// What is redacted from its requests.
    pub redaction: Redaction,
    pub max_request_bytes: usize,
    /// Whether a failed connection attempt is repeated once.
    pub retries_connecting: bool,
}

impl RemoteSettings {
    /// The strictest settings: enforced, no modifications, and a failure is a denial.
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

pub struct RemoteGuardian {
    settings: RemoteSettings,
    link: Arc<dyn Link>,
    filter: Filter,
    places: Semaphore,
    breaker: Breaker,
    asked: AtomicU64,
}

/// The outcome of a consultation.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteResult {
    pub said: Result<RemoteDecision, Failed>,
    /// The guardian's own reason.
    pub reason: Option<String>,
    /// The guardian's own rule.
    pub policy: Option<PolicyRef>,
    pub timeout: Duration,
    pub latency: Duration,
}

/// The decision of an external guardian.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteDecision {
    Allow,
    Deny,
    /// Allowed with this content instead, which differs from what was sent.
    Modify(Box<Content<'static>>),
}

/// Why there is no usable decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    pub class: FailureClass,
    /// Whether the cause is the content of the request. The caller writes it, and must not bypass a guardian that way.
    pub by_question: bool,
}

impl From<FailureClass> for Failed {
    fn from(class: FailureClass) -> Self {
        Self { class, by_question: false }
    }
}

impl RemoteGuardian {
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

    pub fn settings(&self) -> &RemoteSettings {
        &self.settings
    }

    /// Whether a failure counts as an allow.
    pub fn passes(&self, failed: Failed) -> bool {
        self.settings.on_failure == OnFailure::Allow && !failed.class.always_denies() && !failed.by_question
    }

    /// Writes the request about an event, with these secrets redacted. This is the gate's own work, and the caller
    /// determines its amount: the guardian's timeout starts only when the request is sent.
    pub fn prepare<'a>(&'a self, event: &'a HookEvent<'_>, secrets: &[&[u8]]) -> Prepared<'a> {
        let started = now();
        let question = self.question(event, secrets);
        Prepared { guardian: self, event, question, preparing: started.elapsed() }
    }

    /// Prepares a request and sends it.
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
            // A guardian that sends an unusable decision is alive: opening the circuit could turn its denial into an
            // allow.
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

    /// A request id that is unique for this guardian in this process.
    fn next_id(&self, event: &HookEvent<'_>) -> String {
        format!("{:x}-{}", event.time.as_millis(), self.asked.fetch_add(1, Ordering::Relaxed))
    }
}

/// A request that has been written and not sent, or the reason why it cannot be.
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
    /// Sends the request. Ends at the given time, or at the guardian's own timeout if that is earlier.
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
            // A modification without a difference is an allow.
            if content == event.content { RemoteDecision::Allow } else { RemoteDecision::Modify(Box::new(content)) }
        }
    };
    Ok((said, given.reason, given.policy))
}

/// Whether a content type is JSON, by its name or its suffix.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.strip_prefix("application/").is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}
