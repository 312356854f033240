//! The verdict of a slice on an event. Grants give; a satisfied rule takes away, unless its remedy helps. Whatever cannot
//! be evaluated refuses, and what was changed is judged again as it would be sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{AuthorizationError, Authorizer, EvaluationError, Request};
use serde_json::Value;
use toolgate_model::guard::{Ask, Content, Denial, DenialCause, Hook, PolicyRef, Verdict, VerdictKind, WouldBe};

use super::facts::{Facts, UnavailableFact};
use super::remedy::{Asking, Redaction, Remedy};
use super::rule::Rule;
use super::slice::{Ruleset, Slice, Stage};

/// How often content is changed before it must have come to rest.
const MAX_ROUNDS: usize = 3;

/// What the rules say about an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What they say together.
    pub verdict: Verdict,
    /// The rules that made it so.
    pub policies: Vec<PolicyRef>,
    /// What those would have said that only watch.
    pub shadow: Vec<WouldBe>,
    /// Why, where it is not simply allowed.
    pub reason: Option<String>,
    /// What was looked for in the content, and whether it was found.
    pub found: BTreeMap<String, bool>,
}

impl Judgement {
    /// That it may be as it is.
    pub(super) fn allow() -> Self {
        Self {
            verdict: Verdict::allow(),
            policies: Vec::new(),
            shadow: Vec::new(),
            reason: None,
            found: BTreeMap::new(),
        }
    }

    pub(super) fn deny(denial: Denial, policies: Vec<PolicyRef>) -> Self {
        Self { reason: Some(denial.reason.clone()), verdict: Verdict::Deny(denial), policies, ..Self::allow() }
    }
}

/// Judges an event.
pub fn judge(slice: &Slice, facts: &Facts<'_>) -> Judgement {
    let stage = match &slice.stage {
        Ok(_) if slice.is_empty() => return Judgement::allow(),
        Ok(stage) => stage,
        Err(fault) => {
            let reason = format!("the policies cannot be evaluated: {fault}");
            return Judgement::deny(Denial { cause: DenialCause::Unevaluable, reason, policy: None }, Vec::new());
        }
    };
    let shadow = would_be(slice, stage, &slice.rules.shadow, facts);
    Judgement { shadow, ..enforce(slice, stage, &slice.rules.enforced, facts) }
}

/// What rules say that count.
pub(super) fn enforce(slice: &Slice, stage: &Stage, rules: &Ruleset, facts: &Facts<'_>) -> Judgement {
    if rules.is_empty() {
        return Judgement::allow();
    }
    let mut content = Cow::Borrowed(&facts.event.content);
    let mut remedies = Remedies::default();
    for _ in 0..=MAX_ROUNDS {
        let satisfied = match evaluate(slice, stage, rules, facts, &content) {
            Ok(satisfied) => satisfied,
            Err(denial) => {
                let policies = denial.policy.iter().cloned().collect();
                return Judgement::deny(denial, policies);
            }
        };
        if let Some(judgement) = refuse(slice, stage, &satisfied) {
            return judgement;
        }
        remedies.add(satisfied);
        let Some(redacted) = remedies.redact(&content, facts.secrets) else { return remedies.pass(slice, content) };
        match content.with_json(redacted) {
            Some(changed) => content = Cow::Owned(changed),
            None => return remedies.refuse(slice, "what a policy takes out cannot be taken out of this"),
        }
    }
    remedies.refuse(slice, "what policies take out comes back in another form")
}

/// The remedies that were needed so far, in the order of their rules. One that was needed once stays: nothing that another
/// one does may bring back what it is against.
#[derive(Default)]
struct Remedies<'r> {
    asking: BTreeMap<&'r str, (&'r Rule, &'r Asking)>,
    redacting: BTreeMap<&'r str, (&'r Rule, &'r Redaction)>,
    /// Those that found something.
    effective: BTreeSet<&'r str>,
}

impl<'r> Remedies<'r> {
    fn add(&mut self, satisfied: Vec<&'r Rule>) {
        for rule in satisfied {
            match &rule.remedy {
                Some(Remedy::Ask(asking)) => drop(self.asking.insert(&rule.id, (rule, asking))),
                Some(Remedy::Redact(redaction)) => drop(self.redacting.insert(&rule.id, (rule, redaction))),
                None => {}
            }
        }
    }

    /// What the content becomes; `None` where nothing is found in it.
    fn redact(&mut self, content: &Content<'_>, secrets: &[&[u8]]) -> Option<Value> {
        if self.redacting.is_empty() {
            return None;
        }
        let json = content.to_json();
        let mut changed = None;
        for (id, (_, redaction)) in &self.redacting {
            if let Some(redacted) = redaction.apply(changed.as_ref().unwrap_or(&json), secrets) {
                changed = Some(redacted);
                self.effective.insert(id);
            }
        }
        changed
    }

    /// That it may be with this content, after people said yes.
    fn pass(self, slice: &Slice, content: Cow<'_, Content<'_>>) -> Judgement {
        let asks: Vec<Ask> =
            self.asking.values().map(|(rule, asking)| asking.ask(rule.question(), slice.name(rule))).collect();
        let redacting = self.redacting.values().filter(|(rule, _)| self.effective.contains(rule.id.as_str()));
        let determining: Vec<&Rule> =
            self.asking.values().map(|(rule, _)| *rule).chain(redacting.map(|(rule, _)| *rule)).collect();
        let mut found = BTreeMap::new();
        for (rule, redaction) in self.redacting.values() {
            *found.entry(redaction.wanted.clone()).or_insert(false) |= self.effective.contains(rule.id.as_str());
        }
        Judgement {
            found,
            policies: determining.iter().map(|rule| slice.name(rule)).collect(),
            shadow: Vec::new(),
            reason: match asks.first() {
                Some(ask) => Some(ask.reason.clone()),
                None => determining.iter().find_map(|rule| rule.reason.clone()),
            },
            verdict: match content {
                Cow::Borrowed(_) => Verdict::Pass { content: None, asks },
                Cow::Owned(content) => Verdict::Pass { content: Some(Box::new(content.into_owned())), asks },
            },
        }
    }

    /// That it must not be, because what is to be taken out cannot be.
    fn refuse(self, slice: &Slice, reason: &str) -> Judgement {
        let policies: Vec<PolicyRef> = self.redacting.values().map(|(rule, _)| slice.name(rule)).collect();
        let policy = policies.first().cloned();
        Judgement::deny(Denial { cause: DenialCause::Policy, reason: reason.to_owned(), policy }, policies)
    }
}

/// The rules that are satisfied by an event with this content, in the order of their ids.
pub(super) fn evaluate<'r>(
    slice: &Slice,
    stage: &Stage,
    rules: &'r Ruleset,
    facts: &Facts<'_>,
    content: &Content<'_>,
) -> Result<Vec<&'r Rule>, Denial> {
    let context = facts.context(stage, &rules.reads, content).map_err(|unseen| hidden(slice, rules, &unseen))?;
    let (principal, action, resource) = (stage.principal.clone(), stage.action.clone(), stage.resource.clone());
    let request = Request::new(principal, action, resource, context, None).map_err(|_| Denial {
        cause: DenialCause::Unevaluable,
        reason: "the policies cannot be evaluated: the event is no request of Cedar".to_owned(),
        policy: None,
    })?;
    let response = Authorizer::new().is_authorized(&request, &rules.policies, &stage.entities);
    // Cedar passes over a rule that it cannot evaluate, which would let pass what the rule forbids.
    let failed = response.diagnostics().errors().map(|AuthorizationError::PolicyEvaluationError(error)| error);
    if let Some(error) = failed.min_by_key(|error| error.policy_id().clone()) {
        let id: &str = error.policy_id().as_ref();
        return Err(Denial {
            cause: DenialCause::Unevaluable,
            reason: format!("policy `{id}` cannot be evaluated for this: {}", explain(error.inner())),
            policy: rules.rules.get(error.policy_id()).map(|rule| slice.name(rule)),
        });
    }
    // All rules are forbids: what Cedar gives as the reason are those that are satisfied.
    let mut satisfied: Vec<&Rule> =
        response.diagnostics().reason().filter_map(|id| rules.rules.get(id)).map(|rule| &**rule).collect();
    satisfied.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(satisfied)
}

/// That it must not be, where a satisfied rule has no remedy, or one that cannot apply.
fn refuse(slice: &Slice, stage: &Stage, satisfied: &[&Rule]) -> Option<Judgement> {
    let refusing: Vec<&Rule> = satisfied.iter().copied().filter(|rule| refuses(stage, rule)).collect();
    let first = refusing.first()?;
    let reason = match &first.remedy {
        None => first.refusal(),
        Some(_) => format!("{}; nobody can be asked about a result any more", first.question()),
    };
    let denial = Denial { cause: DenialCause::Policy, reason, policy: Some(slice.name(first)) };
    Some(Judgement::deny(denial, refusing.into_iter().map(|rule| slice.name(rule)).collect()))
}

fn refuses(stage: &Stage, rule: &Rule) -> bool {
    match rule.remedy {
        None => true,
        Some(Remedy::Ask(_)) => stage.hook == Hook::ToolCallResult,
        Some(Remedy::Redact(_)) => false,
    }
}

/// What rules would have said that only watch. Nothing that happens here counts.
pub(super) fn would_be(slice: &Slice, stage: &Stage, rules: &Ruleset, facts: &Facts<'_>) -> Vec<WouldBe> {
    if rules.is_empty() {
        return Vec::new();
    }
    let content = &facts.event.content;
    let word = |rule: &Rule, verdict| WouldBe { policy: slice.name(rule), verdict };
    if let Ok(satisfied) = evaluate(slice, stage, rules, facts, content) {
        let would = |rule: &&Rule| Some(word(rule, would_say(stage, rule, content, facts.secrets)?));
        return satisfied.iter().filter_map(would).collect();
    }
    // One of them cannot be evaluated, which says nothing about the others.
    let mut words = Vec::new();
    for rule in rules.rules.values() {
        let alone = Ruleset::of(std::iter::once(rule));
        let satisfied = alone.as_ref().map(|alone| evaluate(slice, stage, alone, facts, content));
        match satisfied {
            Ok(Ok(satisfied)) if satisfied.is_empty() => {}
            Ok(Ok(_)) => {
                words.extend(would_say(stage, rule, content, facts.secrets).map(|verdict| word(rule, verdict)))
            }
            Ok(Err(_)) | Err(_) => words.push(word(rule, VerdictKind::Deny)),
        }
    }
    words
}

/// What a satisfied rule would say; `None` where it finds nothing to take out.
fn would_say(stage: &Stage, rule: &Rule, content: &Content<'_>, secrets: &[&[u8]]) -> Option<VerdictKind> {
    match &rule.remedy {
        _ if refuses(stage, rule) => Some(VerdictKind::Deny),
        Some(Remedy::Redact(redaction)) => {
            let json = content.to_json();
            let redacted = redaction.apply(&json, secrets)?;
            Some(if content.with_json(redacted).is_some() { VerdictKind::Modify } else { VerdictKind::Deny })
        }
        Some(Remedy::Ask(_)) | None => Some(VerdictKind::Ask),
    }
}

fn hidden(slice: &Slice, rules: &Ruleset, unseen: &UnavailableFact) -> Denial {
    let reader = rules.rules.values().find(|rule| rule.reads.attribute(unseen.attribute).is_some());
    let who = reader.map_or_else(String::new, |rule| format!(", which policy `{}` reads", rule.id));
    Denial {
        cause: DenialCause::Unevaluable,
        reason: format!("the policies cannot be evaluated: {}{who}", unseen.reason),
        policy: reader.map(|rule| slice.name(rule)),
    }
}

/// What went wrong, without the values that Cedar would tell.
fn explain(error: &EvaluationError) -> &'static str {
    match error {
        EvaluationError::RecordAttrDoesNotExist(_) | EvaluationError::EntityAttrDoesNotExist(_) => {
            "it reads something that is not there; write `has` before it"
        }
        EvaluationError::EntityDoesNotExist(_) => "it reads an entity that is not there",
        EvaluationError::TypeError(_) => "it takes something for another type than it is",
        EvaluationError::IntegerOverflow(_) => "a number in it becomes too large",
        EvaluationError::FailedExtensionFunctionExecution(_) => "a function in it does not take what it is given",
        EvaluationError::RecursionLimit(_) => "it is nested too deeply",
        _ => "it cannot be computed",
    }
}
