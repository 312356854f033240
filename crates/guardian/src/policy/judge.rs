//! The verdict of a slice on an event. Grants permit; a matching rule denies, unless its remedy applies. Whatever
//! cannot be evaluated is denied, and modified content is evaluated again as it would be sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use cedar_policy::{AuthorizationError, Authorizer, EvaluationError, Request};
use serde_json::Value;
use toolgate_model::guard::{Ask, Content, Denial, DenialCause, Hook, PolicyRef, Verdict, VerdictKind, WouldBe};

use super::facts::{Facts, UnavailableFact};
use super::remedy::{Asking, Redaction, Remedy};
use super::rule::Rule;
use super::slice::{Ruleset, Slice, Stage};

/// The maximum number of modifications before the content must be stable.
const MAX_ROUNDS: usize = 3;

/// The verdict of the rules on an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The combined verdict.
    pub verdict: Verdict,
    /// The rules that decided.
    pub policies: Vec<PolicyRef>,
    /// What the rules in shadow mode would have decided.
    pub shadow: Vec<WouldBe>,
    /// The reason, unless it is simply allowed.
    pub reason: Option<String>,
    /// What was searched for in the content, and whether it was found.
    pub found: BTreeMap<String, bool>,
}

impl Evaluation {
    /// The event is allowed as it is.
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

/// Evaluates an event.
pub fn judge(slice: &Slice, facts: &Facts<'_>) -> Evaluation {
    let stage = match &slice.stage {
        Ok(_) if slice.is_empty() => return Evaluation::allow(),
        Ok(stage) => stage,
        Err(fault) => {
            let reason = format!("could not evaluate the policies: {fault}");
            return Evaluation::deny(Denial { cause: DenialCause::Unevaluable, reason, policy: None }, Vec::new());
        }
    };
    let shadow = would_be(slice, stage, &slice.rules.shadow, facts);
    Evaluation { shadow, ..enforce(slice, stage, &slice.rules.enforced, facts) }
}

/// Evaluates the enforced rules.
pub(super) fn enforce(slice: &Slice, stage: &Stage, rules: &Ruleset, facts: &Facts<'_>) -> Evaluation {
    if rules.is_empty() {
        return Evaluation::allow();
    }
    let mut content = Cow::Borrowed(&facts.event.content);
    let mut remedies = Remedies::default();
    for _ in 0..=MAX_ROUNDS {
        let satisfied = match evaluate(slice, stage, rules, facts, &content) {
            Ok(satisfied) => satisfied,
            Err(denial) => {
                let policies = denial.policy.iter().cloned().collect();
                return Evaluation::deny(denial, policies);
            }
        };
        if let Some(evaluation) = refuse(slice, stage, &satisfied) {
            return evaluation;
        }
        remedies.add(satisfied);
        let Some(redacted) = remedies.redact(&content, facts.secrets) else { return remedies.pass(slice, content) };
        match content.with_json(redacted) {
            Some(changed) => content = Cow::Owned(changed),
            None => return remedies.refuse(slice, "a policy requires a redaction that is not possible here"),
        }
    }
    remedies.refuse(slice, "a redaction required by policies does not converge")
}

/// The remedies needed so far, in the order of their rules. A remedy is never dropped: no other one may restore what it
/// removed.
#[derive(Default)]
struct Remedies<'r> {
    asking: BTreeMap<&'r str, (&'r Rule, &'r Asking)>,
    redacting: BTreeMap<&'r str, (&'r Rule, &'r Redaction)>,
    /// The remedies that found something.
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

    /// The redacted content; `None` if nothing is found.
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

    /// The event is allowed with this content, after the approvals.
    fn pass(self, slice: &Slice, content: Cow<'_, Content<'_>>) -> Evaluation {
        let asks: Vec<Ask> =
            self.asking.values().map(|(rule, asking)| asking.ask(rule.question(), slice.name(rule))).collect();
        let redacting = self.redacting.values().filter(|(rule, _)| self.effective.contains(rule.id.as_str()));
        let determining: Vec<&Rule> =
            self.asking.values().map(|(rule, _)| *rule).chain(redacting.map(|(rule, _)| *rule)).collect();
        let mut found = BTreeMap::new();
        for (rule, redaction) in self.redacting.values() {
            *found.entry(redaction.wanted.clone()).or_insert(false) |= self.effective.contains(rule.id.as_str());
        }
        Evaluation {
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

    /// The event is denied because a redaction is not possible.
    fn refuse(self, slice: &Slice, reason: &str) -> Evaluation {
        let policies: Vec<PolicyRef> = self.redacting.values().map(|(rule, _)| slice.name(rule)).collect();
        let policy = policies.first().cloned();
        Evaluation::deny(Denial { cause: DenialCause::Policy, reason: reason.to_owned(), policy }, policies)
    }
}

/// The rules that an event with this content satisfies, ordered by id.
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
        reason: "could not evaluate the policies: Cedar rejects the request".to_owned(),
        policy: None,
    })?;
    let response = Authorizer::new().is_authorized(&request, &rules.policies, &stage.entities);
    // Cedar skips a rule that it cannot evaluate, which would allow what the rule forbids.
    let failed = response.diagnostics().errors().map(|AuthorizationError::PolicyEvaluationError(error)| error);
    if let Some(error) = failed.min_by_key(|error| error.policy_id().clone()) {
        let id: &str = error.policy_id().as_ref();
        return Err(Denial {
            cause: DenialCause::Unevaluable,
            reason: format!("could not evaluate policy `{id}`: {}", explain(error.inner())),
            policy: rules.rules.get(error.policy_id()).map(|rule| slice.name(rule)),
        });
    }
    // All rules are forbids: Cedar's reasons are the satisfied rules.
    let mut satisfied: Vec<&Rule> =
        response.diagnostics().reason().filter_map(|id| rules.rules.get(id)).map(|rule| &**rule).collect();
    satisfied.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(satisfied)
}

/// Denies if a satisfied rule has no remedy, or one that cannot apply.
fn refuse(slice: &Slice, stage: &Stage, satisfied: &[&Rule]) -> Option<Evaluation> {
    let refusing: Vec<&Rule> = satisfied.iter().copied().filter(|rule| refuses(stage, rule)).collect();
    let first = refusing.first()?;
    let reason = match &first.remedy {
        None => first.refusal(),
        Some(_) => format!("{}; a result cannot be sent for approval", first.question()),
    };
    let denial = Denial { cause: DenialCause::Policy, reason, policy: Some(slice.name(first)) };
    Some(Evaluation::deny(denial, refusing.into_iter().map(|rule| slice.name(rule)).collect()))
}

fn refuses(stage: &Stage, rule: &Rule) -> bool {
    match rule.remedy {
        None => true,
        Some(Remedy::Ask(_)) => stage.hook == Hook::ToolCallResult,
        Some(Remedy::Redact(_)) => false,
    }
}

/// What the rules in shadow mode would have decided. It has no effect on the verdict.
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
    // One rule that cannot be evaluated does not affect the others.
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

/// The verdict of a satisfied rule; `None` if it finds nothing to redact.
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
        reason: format!("could not evaluate the policies: {}{who}", unseen.reason),
        policy: reader.map(|rule| slice.name(rule)),
    }
}

/// The error without the values that Cedar's message would contain.
fn explain(error: &EvaluationError) -> &'static str {
    match error {
        EvaluationError::RecordAttrDoesNotExist(_) | EvaluationError::EntityAttrDoesNotExist(_) => {
            "it reads an attribute that does not exist; test it with `has` first"
        }
        EvaluationError::EntityDoesNotExist(_) => "it reads an entity that does not exist",
        EvaluationError::TypeError(_) => "type error",
        EvaluationError::IntegerOverflow(_) => "integer overflow",
        EvaluationError::FailedExtensionFunctionExecution(_) => "an extension function failed",
        EvaluationError::RecursionLimit(_) => "it is nested too deeply",
        _ => "evaluation failed",
    }
}
