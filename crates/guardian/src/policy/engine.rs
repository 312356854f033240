//! The policy engine: compiles each tenant's active policies once per change and shares them among all calls. A set
//! that cannot be compiled refuses everything: it was checked when it was applied, so this is an internal error.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use toolgate_gate::ports::clock::Clock;
use toolgate_gate::ports::guardian::{Hooked, PolicyBasis, Subject};
use toolgate_gate::ports::ledger::{
    ActivePolicies, CountedRun, Freshness, History, HistoryQuery, Policies, beginning_of_day,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::guard::{Content, Denial, DenialCause, Dialect, HookEvent, VerdictKind};
use toolgate_model::principal::TenantId;

use super::facts::Facts;
use super::judge::{Evaluation, judge};
use super::policy_input::facts_of;
use super::set::CompiledSet;
use crate::composition::{InProcess, PolicyEvaluation};

/// How long the labels of called tools stay on a conversation.
pub const MARKS_LAST: Duration = Duration::from_secs(24 * 60 * 60);

/// Evaluates events against the active policies.
pub struct PolicyEngine {
    policies: Arc<dyn Policies>,
    clock: Arc<dyn Clock>,
    sets: Mutex<HashMap<TenantId, Arc<Loaded>>>,
}

/// The policies of one revision; compiled on first use.
struct Loaded {
    revision: u64,
    set: OnceCell<Result<Arc<CompiledSet>, String>>,
}

impl PolicyEngine {
    pub fn new(policies: Arc<dyn Policies>, clock: Arc<dyn Clock>) -> Self {
        Self { policies, clock, sets: Mutex::default() }
    }

    /// The set of this revision.
    async fn set(&self, tenant: &TenantId, policies: &ActivePolicies) -> Option<Result<Arc<CompiledSet>, String>> {
        let active = policies.active.as_ref()?;
        let loaded = {
            let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
            match sets.get(tenant).filter(|loaded| loaded.revision == policies.revision) {
                Some(loaded) => Arc::clone(loaded),
                None => {
                    let loaded = Arc::new(Loaded { revision: policies.revision, set: OnceCell::new() });
                    // A call that was evaluated by an older set does not restore it: the call is evaluated again
                    // anyway.
                    let newer = sets.get(tenant).is_some_and(|known| known.revision > policies.revision);
                    if !newer {
                        sets.insert(tenant.clone(), Arc::clone(&loaded));
                    }
                    loaded
                }
            }
        };
        let read = || async {
            let (version, files) = (active.version, active.files.clone());
            // Compiling thousands of rules takes a while, so it is offloaded.
            let reading = tokio::task::spawn_blocking(move || CompiledSet::compile(version, &files));
            match reading.await {
                Ok(Ok(set)) => Ok(Arc::new(set)),
                Ok(Err(problems)) => {
                    let first = problems.first().map_or_else(String::new, |problem| problem.message.clone());
                    tracing::error!(%tenant, version, first, "could not load the active policies; every call is refused");
                    Err(first)
                }
                Err(_) => Err("compilation was interrupted".to_owned()),
            }
        };
        Some(loaded.set.get_or_init(read).await.clone())
    }

    async fn history(&self, hooked: &Hooked<'_>, totals: bool) -> Result<History, Refusal> {
        let now = self.clock.now();
        let query = HistoryQuery {
            tenant: hooked.tenant.clone(),
            scope: hooked.marks.clone(),
            run: CountedRun::of(&hooked.actor.id, hooked.agent, hooked.run),
            marks_since: now.minus(MARKS_LAST),
            since: totals.then(|| beginning_of_day(now)),
        };
        self.policies.history(&query).await
    }
}

#[async_trait]
impl InProcess for PolicyEngine {
    async fn unconcerned(
        &self,
        tenant: &TenantId,
        subject: &Subject<'_>,
        freshness: Freshness,
    ) -> Result<Option<PolicyBasis>, Refusal> {
        let policies = self.policies(tenant, freshness).await?;
        let is_concerned = match self.set(tenant, &policies).await {
            None => false,
            Some(Ok(set)) => set.concerns(subject),
            Some(Err(_)) => true,
        };
        let basis = PolicyBasis { revision: policies.revision, generation: policies.generation, counts: None };
        Ok((!is_concerned).then_some(basis))
    }

    async fn judge(&self, hooked: &Hooked<'_>, content: &Content<'_>) -> Result<PolicyEvaluation, Refusal> {
        let policies = self.policies(hooked.tenant, hooked.freshness).await?;
        let evaluation = self.judge_by(&policies, hooked, content).await?;
        // An allow is checked again at admission. A refusal or an ask is not, so it must come from the newest policies.
        if hooked.freshness == Freshness::Newest || evaluation.verdict.kind() < VerdictKind::Ask {
            return Ok(evaluation);
        }
        let newest = self.policies(hooked.tenant, Freshness::Newest).await?;
        if newest.revision == policies.revision {
            return Ok(evaluation);
        }
        self.judge_by(&newest, hooked, content).await
    }
}

impl PolicyEngine {
    async fn policies(&self, tenant: &TenantId, freshness: Freshness) -> Result<Arc<ActivePolicies>, Refusal> {
        self.policies.policies(tenant, self.clock.now(), freshness).await
    }

    async fn judge_by(
        &self,
        policies: &ActivePolicies,
        hooked: &Hooked<'_>,
        content: &Content<'_>,
    ) -> Result<PolicyEvaluation, Refusal> {
        let mut basis = PolicyBasis { revision: policies.revision, generation: policies.generation, counts: None };
        let version = policies.active.as_ref().map(|active| active.version);
        let said = |evaluation: Evaluation, facts, basis| PolicyEvaluation {
            concerned: facts,
            verdict: evaluation.verdict,
            reason: evaluation.reason,
            policies: evaluation.policies,
            shadow: evaluation.shadow,
            version,
            facts: None,
            lacks_secrets: false,
            basis,
        };
        let set = match self.set(hooked.tenant, policies).await {
            None => return Ok(said(Evaluation::allow(), false, basis)),
            Some(Ok(set)) => set,
            Some(Err(_)) => {
                let denial = Denial {
                    cause: DenialCause::Unevaluable,
                    reason: "could not load the active policies; a policy administrator must apply a valid set"
                        .to_owned(),
                    policy: None,
                };
                return Ok(said(Evaluation::deny(denial, Vec::new()), true, basis));
            }
        };
        let slice = set.slice(&hooked.subject());
        if slice.is_empty() {
            return Ok(said(Evaluation::allow(), false, basis));
        }
        if hooked.secrets.is_none() && slice.looks_for_secrets() {
            return Ok(PolicyEvaluation { lacks_secrets: true, ..said(Evaluation::allow(), false, basis) });
        }
        let needs = slice.needs();
        let history = if needs.marks || needs.totals { Some(self.history(hooked, needs.totals).await?) } else { None };
        basis.counts = history.as_ref().filter(|_| needs.totals).map(|history| history.counts);
        let run = hooked.run.map(|run| run.as_str());
        let changed;
        let event = match std::ptr::eq(content, &raw const hooked.event.content) {
            true => hooked.event,
            false => {
                changed = HookEvent { content: content.clone(), ..hooked.event.clone() };
                &changed
            }
        };
        let facts = Facts {
            event,
            dialect: hooked.dialect,
            run,
            address: Some(hooked.address),
            history: history.as_ref(),
            arguments: hooked.arguments,
            // An external runtime sees what is redacted from its request, and could learn whether it guessed a
            // secret.
            secrets: hooked.secrets.filter(|_| hooked.dialect == Dialect::Native).unwrap_or_default(),
        };
        let evaluation = judge(&slice, &facts);
        let facts = facts_of(hooked, history.as_ref(), needs.totals, &evaluation.found);
        Ok(PolicyEvaluation { facts: Some(facts), ..said(evaluation, true, basis) })
    }
}
