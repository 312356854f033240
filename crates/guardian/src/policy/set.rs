//! A compiled policy set: parsed from its files once, indexed, and cached in slices.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use cedar_policy::{Policy, PolicySet};
use toolgate_gate::ports::guardian::Subject;
use toolgate_model::guard::PolicyFile;

use super::cache::{Slices, SubjectKey};
use super::entities::{EntityTypes, EventEntities};
use super::facts::ContextDetectors;
use super::index::{Index, Scope};
use super::problem::{Cursor, Problem};
use super::rule::{Rule, default_id};
use super::slice::{Rulesets, Slice};

/// The extension of rule files; other files are not compiled.
pub(super) const EXTENSION: &str = ".cedar";

/// A compiled version of a tenant's policy set.
pub struct CompiledSet {
    version: Arc<str>,
    pub(super) files: Vec<PolicyFile>,
    rules: Vec<Arc<Rule>>,
    index: Index,
    types: EntityTypes,
    context_detectors: ContextDetectors,
    slices: Mutex<Slices>,
}

impl CompiledSet {
    /// Parses the files and reports all errors in them. [`CompiledSet::check`] finds those that need the catalog.
    pub fn compile(version: u64, files: &[PolicyFile]) -> Result<Self, Vec<Problem>> {
        let files: Vec<PolicyFile> = files.iter().filter(|file| file.name.ends_with(EXTENSION)).cloned().collect();
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        for file in &files {
            read_file(file, &mut rules, &mut problems);
        }
        find_twins(&rules, &mut problems);
        let of_engine =
            |message: String| Problem { file: String::new(), line: None, policy: None, message, help: None };
        let types = EntityTypes::new().map_err(of_engine);
        let context_detectors = if rules.iter().any(|rule| rule.reads.any_of(&["detected"])) {
            ContextDetectors::new().map_err(|error| of_engine(error.to_string()))
        } else {
            Ok(ContextDetectors::default())
        };
        match (types, context_detectors) {
            (Ok(types), Ok(context_detectors)) if problems.is_empty() => {
                let mut index = Index::default();
                rules.iter().enumerate().for_each(|(number, rule)| index.insert(number, &rule.scope));
                let slices = Mutex::default();
                Ok(Self { version: version.to_string().into(), files, rules, index, types, context_detectors, slices })
            }
            (types, context_detectors) => {
                problems.extend(types.err().into_iter().chain(context_detectors.err()));
                problems.sort();
                Err(problems)
            }
        }
    }

    /// The rules, in the order of their files.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The rules that concern such an event, with everything that is known in advance.
    pub fn slice(&self, subject: &Subject<'_>) -> Arc<Slice> {
        let key = SubjectKey::of(subject);
        if let Some(slice) = key.as_ref().and_then(|key| self.slices().slice(key)) {
            return slice;
        }
        let found = self.types.event_entities(subject).and_then(|event_entities| {
            let rules = self.rulesets(&event_entities, subject)?;
            Ok((event_entities, rules))
        });
        let slice = Arc::new(Slice::new(&self.version, found, &self.types, subject, &self.context_detectors));
        if let Some(key) = key {
            self.slices().keep(key, &slice);
        }
        slice
    }

    /// Whether a rule concerns such an event, or this cannot be determined.
    pub(super) fn concerns(&self, subject: &Subject<'_>) -> bool {
        // A slice that is not cached would be built again for the evaluation: the index alone suffices here.
        match SubjectKey::of(subject) {
            Some(_) => !self.slice(subject).is_empty(),
            None => self.types.event_entities(subject).map_or(true, |found| !self.fitting(&found, subject).is_empty()),
        }
    }

    /// The rules with a matching scope, shared by all events that match the same.
    fn rulesets(&self, event_entities: &EventEntities, subject: &Subject<'_>) -> Result<Arc<Rulesets>, String> {
        let fitting = self.fitting(event_entities, subject);
        if let Some(rulesets) = self.slices().rulesets(&fitting) {
            return Ok(rulesets);
        }
        let rules = fitting.iter().filter_map(|number| self.rules.get(*number));
        let rulesets = Arc::new(Rulesets::of(rules)?);
        self.slices().keep_rulesets(fitting, &rulesets);
        Ok(rulesets)
    }

    fn fitting(&self, event_entities: &EventEntities, subject: &Subject<'_>) -> Vec<usize> {
        let EventEntities { principal, action, resource, .. } = event_entities;
        let is_meant = |scope: &Scope| !subject.is_own_message() || scope.actions().is_some();
        let rule = |number: &usize| self.rules.get(*number);
        let fits = |number: &usize| {
            rule(number).is_some_and(|rule| is_meant(&rule.scope) && rule.scope.fits(principal, action, resource))
        };
        self.index.find(principal, action, resource).into_iter().filter(fits).collect()
    }

    /// After a panic of another thread, at most an entry is missing.
    fn slices(&self) -> std::sync::MutexGuard<'_, Slices> {
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_file(file: &PolicyFile, rules: &mut Vec<Arc<Rule>>, problems: &mut Vec<Problem>) {
    let PolicyFile { name, text } = file;
    let set = match PolicySet::from_str(text) {
        Ok(set) => set,
        Err(errors) => return problems.extend(errors.iter().map(|error| Problem::of_cedar(error, name, text))),
    };
    for template in set.templates() {
        problems.push(Problem {
            file: name.clone(),
            line: Cursor::new(text).line_of(&template.to_cedar()),
            policy: None,
            message: "policy templates are not supported; replace the slot with a principal or a resource".to_owned(),
            help: None,
        });
    }
    // Cedar numbers the rules of a text in order.
    let number = |policy: &Policy| {
        let id: &str = policy.id().as_ref();
        id.strip_prefix("policy").and_then(|number| number.parse::<usize>().ok()).unwrap_or_default()
    };
    let mut policies: Vec<(usize, &Policy)> = set.policies().map(|policy| (number(policy), policy)).collect();
    policies.sort_by_key(|(number, _)| *number);
    let mut cursor = Cursor::new(text);
    for (number, policy) in policies {
        let place = number.saturating_add(1);
        let line = policy.to_cedar().and_then(|written| cursor.line_of(&written));
        match Rule::read(policy, name, place, line) {
            Ok(rule) => rules.push(Arc::new(rule)),
            Err(faults) => problems.extend(faults.into_iter().map(|fault| Problem {
                file: name.clone(),
                line,
                policy: Some(policy.annotation("id").map_or_else(|| default_id(name, place), str::to_owned)),
                message: fault.message,
                help: fault.help,
            })),
        }
    }
}

/// Records refer to rules by id, so ids must be unique.
fn find_twins(rules: &[Arc<Rule>], problems: &mut Vec<Problem>) {
    let mut first: HashMap<&str, &Rule> = HashMap::new();
    for rule in rules {
        if let Some(other) = first.get(rule.id.as_str()) {
            let line = other.line.map_or_else(String::new, |line| format!(" in line {line}"));
            problems.push(Problem {
                file: rule.file.clone(),
                line: rule.line,
                policy: Some(rule.id.clone()),
                message: format!(
                    "duplicate rule id, already used in {}{line}; give each rule its own `@id`",
                    other.file
                ),
                help: None,
            });
        }
        first.entry(&rule.id).or_insert(rule);
    }
}
