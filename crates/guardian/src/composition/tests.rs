//! Guardians together: with scripted policies and scripted guardians of others.

use std::sync::Mutex;

use serde_json::json;
use toolgate_model::guard::{Denial, DenialCause, FailureClass, GuardianRecord, HookDecision, VerdictKind};

use super::*;
use crate::remote::RemoteSettings;
use crate::remote::fixture::{FakeLink, World, guardian};

mod changes;
mod failures;
mod policies;
mod properties;
mod timing;

/// Policies that say what a test makes of the content.
struct FakePolicy {
    judge: Box<dyn Fn(&Value) -> Verdict + Send + Sync>,
    version: Option<u64>,
    seen: Mutex<Vec<Value>>,
}

impl FakePolicy {
    fn new(judge: impl Fn(&Value) -> Verdict + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { judge: Box::new(judge), version: Some(7), seen: Mutex::default() })
    }

    /// No policies at all.
    fn none() -> Arc<Self> {
        Arc::new(Self { judge: Box::new(|_| Verdict::allow()), version: None, seen: Mutex::default() })
    }

    fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl InProcess for FakePolicy {
    async fn unconcerned(&self, _: &TenantId, _: &Subject<'_>, _: Freshness) -> Result<Option<PolicyBasis>, Refusal> {
        let basis = PolicyBasis { revision: 3, generation: 4, counts: None };
        Ok(self.version.is_none().then_some(basis))
    }

    async fn judge(&self, _hooked: &Hooked<'_>, content: &Content<'_>) -> Result<PolicyEvaluation, Refusal> {
        let content = content.to_json();
        let verdict = (self.judge)(&content);
        self.seen.lock().unwrap().push(content);
        let rule = PolicyRef { id: format!("rule-{}", verdict.kind().as_str()), version: "7".to_owned() };
        Ok(PolicyEvaluation {
            lacks_secrets: false,
            reason: match &verdict {
                Verdict::Deny(denial) => Some(denial.reason.clone()),
                Verdict::Pass { asks, .. } => asks.first().map(|ask| ask.reason.clone()),
            },
            verdict,
            policies: self.version.map(|_| rule).into_iter().collect(),
            shadow: Vec::new(),
            concerned: self.version.is_some(),
            version: self.version,
            facts: None,
            basis: PolicyBasis { revision: 3, generation: 4, counts: None },
        })
    }
}

/// Remembers what it was told.
#[derive(Default)]
struct FakeAlarm(Mutex<Vec<(String, FailureClass, bool)>>);

impl Alarm for FakeAlarm {
    fn failed(&self, guardian: &str, class: FailureClass, open: bool) {
        self.0.lock().unwrap().push((guardian.to_owned(), class, open));
    }
}

fn guardians(policy: &Arc<FakePolicy>, remote: Vec<RemoteGuardian>) -> Guardians {
    Guardians::new(Arc::clone(policy) as Arc<dyn InProcess>, remote, Arc::new(LogAlarm::default()))
}

/// What these say about a call with these arguments, where there are no policies.
async fn ruling(remote: Vec<RemoteGuardian>, arguments: Value) -> Ruling {
    guardians(&FakePolicy::none(), remote).judge(&World::of(arguments).hooked()).await.unwrap()
}

fn decision(ruling: &Ruling) -> &HookDecision {
    ruling.decision.as_ref().unwrap()
}

fn record<'a>(ruling: &'a Ruling, name: &str) -> &'a GuardianRecord {
    decision(ruling).guardians.iter().find(|record| record.guardian == name).unwrap()
}

fn denial(ruling: &Ruling) -> &Denial {
    match &ruling.verdict {
        Verdict::Deny(denial) => denial,
        other => panic!("{other:?}"),
    }
}

/// The arguments that came out, where they are others.
fn changed(ruling: &Ruling) -> Option<Value> {
    match &ruling.verdict {
        Verdict::Pass { content, .. } => content.as_ref().map(|content| content.to_json()),
        Verdict::Deny(denial) => panic!("{denial:?}"),
    }
}
