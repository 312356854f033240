//! The plan of a file: its tasks, their coordinator and its guardrails.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::agents::reference;
use super::report_repeated;
use crate::credential::ServiceName;
use crate::scope::{SCOPE_LIMIT, Scope};
use crate::text::Line;
use crate::time::Timestamp;
use crate::work::Guardrails;
use crate::workflow::members::{Members, Problems, list, mapping, texts, wrong};
use crate::workflow::problem::{Located, meant, quoted};
use crate::workflow::tree::Node;
use crate::workflow::{DeclaredPlan, DeclaredRequirement, DeclaredTask, TaskName};

/// The maximum number of tasks of a plan.
const TASK_LIMIT: usize = 1_000;
const REQUIREMENT_LIMIT: usize = 64;
const OUTPUT_LIMIT: usize = 64;
const ATTEMPT_LIMIT: u64 = 100;
/// A week, in seconds.
const TIMEOUT_LIMIT: u64 = 7 * 86_400;
/// The maximum length of a description, in bytes.
const DESCRIPTION_LIMIT: usize = 8 * 1024;
const TASK: [&str; 10] = [
    "agent",
    "deadline",
    "depends_on",
    "description",
    "input",
    "max_attempts",
    "outputs",
    "requires_tools",
    "task",
    "timeout_seconds",
];
const REQUIREMENT: [&str; 3] = ["required", "scopes", "service"];

pub(super) fn read(members: &Members<'_>, problems: &mut Problems) -> Option<Located<DeclaredPlan>> {
    let coordinator = members.get("coordinator").and_then(|node| reference(node, "coordinator", problems));
    let guardrails = members.get("guardrails").and_then(|node| guardrails(node, problems));
    let Some(node) = members.get("plan") else {
        for name in ["coordinator", "guardrails"] {
            if let Some(entry) = members.given(name) {
                problems.add(entry.at, name, format!("`{name}` is about a plan, and this file has none"));
            }
        }
        return None;
    };
    if let (None, Some(guardrails)) = (&coordinator, &guardrails) {
        let message = "`guardrails` limit a coordinator: name its agent in `coordinator`";
        problems.add(guardrails.at, "guardrails", message);
    }
    let items = list(node, "plan", TASK_LIMIT, problems);
    if items.is_empty() {
        problems.add(node.at, "plan", "`plan` has no tasks; add one, or remove it");
    }
    let entries = items.iter().enumerate();
    let tasks: Vec<DeclaredTask> =
        entries.filter_map(|(number, node)| task(node, &format!("plan.{number}"), problems)).collect();
    report_repeated(&tasks, |task| (task.name.value.to_string(), task.name.at), "plan", problems);
    // A task that could not be read would be reported as unknown wherever others depend on it.
    if tasks.len() == items.len() {
        check_order(&tasks, problems);
    }
    let at = members.given("plan").map_or(node.at, |entry| entry.at);
    Some(Located { value: DeclaredPlan { tasks, coordinator, guardrails }, at })
}

fn task(node: &Node, path: &str, problems: &mut Problems) -> Option<DeclaredTask> {
    let members = Members::of(node, path, &TASK, problems)?;
    members.need("task", problems);
    let name = members.parsed("task", TaskName::parse, problems);
    let agent = members.get("agent").and_then(|node| reference(node, &members.path_of("agent"), problems));
    let text_list = |name: &str| members.get(name).map(|node| (node, members.path_of(name)));
    let depends_on = text_list("depends_on")
        .map_or_else(Vec::new, |(node, path)| texts(node, &path, TASK_LIMIT, TaskName::parse, problems));
    let outputs = text_list("outputs").map_or_else(Vec::new, |(node, path)| {
        let found = texts(node, &path, OUTPUT_LIMIT, Line::parse, problems);
        found.into_iter().map(|output| output.value).collect()
    });
    let requires_tools = text_list("requires_tools").map_or_else(Vec::new, |(node, path)| {
        let items = list(node, &path, REQUIREMENT_LIMIT, problems).iter().enumerate();
        items.filter_map(|(number, node)| requirement(node, &format!("{path}.{number}"), problems)).collect()
    });
    let input = members.get("input").and_then(|node| object(node, &members.path_of("input"), problems));
    Some(DeclaredTask {
        name: name?,
        agent,
        description: members.parsed("description", description, problems).map(|text| text.value),
        depends_on,
        requires_tools,
        outputs,
        input: input.map_or_else(Map::new, |input| input.value),
        timeout_seconds: members.count("timeout_seconds", TIMEOUT_LIMIT, problems),
        deadline: members.parsed("deadline", Timestamp::parse, problems).map(|deadline| deadline.value),
        max_attempts: members.count("max_attempts", ATTEMPT_LIMIT, problems),
    })
}

fn requirement(node: &Node, path: &str, problems: &mut Problems) -> Option<DeclaredRequirement> {
    let members = Members::of(node, path, &REQUIREMENT, problems)?;
    members.need("service", problems);
    let service = members.parsed("service", ServiceName::parse, problems);
    let scopes = match members.need("scopes", problems) {
        Some(node) => texts(node, &members.path_of("scopes"), SCOPE_LIMIT, Scope::parse, problems),
        None => Vec::new(),
    };
    let required = members.flag("required", problems).unwrap_or(true);
    Some(DeclaredRequirement { at: node.at, service: service?, scopes, required })
}

/// Reports dependencies on tasks that do not exist, and cycles.
fn check_order(tasks: &[DeclaredTask], problems: &mut Problems) {
    let names: BTreeSet<&str> = tasks.iter().map(|task| task.name.value.as_str()).collect();
    for dependency in tasks.iter().flat_map(|task| &task.depends_on) {
        let name = dependency.value.as_str();
        if !names.contains(name) {
            let message = format!("there is no task `{name}`{}", meant(name, names.iter().copied()));
            problems.add(dependency.at, "plan", message);
        }
    }
    // Tasks whose dependencies are all done are taken away until none is left, or only cycles and what depends on them.
    let mut waiting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for task in tasks {
        let dependencies = task.depends_on.iter().map(|dependency| dependency.value.as_str());
        waiting.entry(task.name.value.as_str()).or_default().extend(dependencies.filter(|name| names.contains(name)));
    }
    loop {
        let done: Vec<&str> = waiting.iter().filter(|(_, left)| left.is_empty()).map(|(name, _)| *name).collect();
        if done.is_empty() {
            break;
        }
        for name in &done {
            waiting.remove(name);
        }
        for left in waiting.values_mut() {
            left.retain(|name| !done.contains(name));
        }
    }
    let Some(cycle) = cycle_in(&waiting) else { return };
    let on_cycle = |task: &&DeclaredTask| cycle.first().is_some_and(|first| task.name.value.as_str() == *first);
    if let Some(task) = tasks.iter().find(on_cycle) {
        let at = task.depends_on.first().map_or(task.name.at, |dependency| dependency.at);
        let shown: Vec<String> = cycle.iter().chain(cycle.first()).map(|name| format!("`{name}`")).collect();
        problems.add(at, "plan", format!("these tasks wait for each other: {}", shown.join(" waits for ")));
    }
}

/// The names of one cycle, where every task waits for another one.
fn cycle_in<'a>(waiting: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    let mut name = *waiting.keys().next()?;
    let mut path: Vec<&str> = Vec::new();
    loop {
        if let Some(start) = path.iter().position(|earlier| *earlier == name) {
            return path.get(start..).map(<[&str]>::to_vec);
        }
        path.push(name);
        name = waiting.get(name)?.first()?;
    }
}

/// Each guardrail is read on its own, so that all problems are found where they are.
fn guardrails(node: &Node, problems: &mut Problems) -> Option<Located<Guardrails>> {
    for entry in mapping(node, "guardrails", problems)? {
        let single: Map<String, Value> = [(entry.key.clone(), entry.value.to_json())].into_iter().collect();
        if let Err(error) = Guardrails::from_json(&single) {
            let path = format!("guardrails.{}", entry.key);
            problems.add(entry.at, &path, format!("`{}` {}", quoted(&path), error.reason));
        }
    }
    let whole = object(node, "guardrails", problems)?;
    let read = Guardrails::from_json(&whole.value).unwrap_or_default();
    Some(Located { value: read, at: node.at })
}

fn description(text: &str) -> Result<String, String> {
    match text.len() {
        0..=DESCRIPTION_LIMIT => Ok(text.to_owned()),
        length => Err(format!("has {length} bytes, the limit is {DESCRIPTION_LIMIT}")),
    }
}

fn object(node: &Node, path: &str, problems: &mut Problems) -> Option<Located<Map<String, Value>>> {
    mapping(node, path, problems)?;
    match node.to_json() {
        Value::Object(members) => Some(Located { value: members, at: node.at }),
        _ => wrong(node, path, "a mapping", problems),
    }
}
