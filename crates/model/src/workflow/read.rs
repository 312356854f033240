//! Reads the members of a file.

use std::collections::BTreeSet;

use super::members::{Members, Problems};
use super::problem::{Located, in_order};
use super::tree::Node;
use super::{Read, Workflow, WorkflowName, WorkflowVersion};
use crate::spending::Budget;

mod agents;
mod grants;
mod plan;
mod registry;

const MEMBERS: [&str; 11] = [
    "agents",
    "budgets",
    "coordinator",
    "guardians",
    "guardrails",
    "name",
    "plan",
    "policies",
    "services",
    "tools",
    "version",
];

pub(super) fn read(text: &str) -> Read {
    let mut problems = Problems::default();
    let root = Node::parse(text, &mut problems.0);
    let workflow = root.and_then(|root| read_root(&root, &mut problems));
    Read { workflow, problems: in_order(problems.0) }
}

fn read_root(root: &Node, problems: &mut Problems) -> Option<Workflow> {
    let members = Members::of(root, "", &MEMBERS, problems)?;
    if let Some(guardians) = members.given("guardians") {
        let message = "guardians are configured by the operator, in the file that `guardians.file` of the \
                       configuration names; remove them from this file";
        problems.add(guardians.at, "guardians", message);
    }
    members.need("name", problems);
    members.need("version", problems);
    let name = members.parsed("name", WorkflowName::parse, problems);
    let version = members.parsed("version", WorkflowVersion::parse, problems);
    let agents = agents::read(&members, problems);
    let services = registry::services(&members, problems);
    let policies = registry::policies(&members, problems);
    let (vault, grants) = grants::read(&members, problems);
    let budget = budget(&members, problems);
    let plan = plan::read(&members, problems);
    Some(Workflow { name: name?, version: version?, vault, grants, agents, services, policies, budget, plan })
}

/// The budget of the tenant; that of an agent is a member of the agent.
fn budget(members: &Members<'_>, problems: &mut Problems) -> Option<Located<Budget>> {
    let node = members.get("budgets")?;
    let budgets = Members::of(node, "budgets", &["tenant"], problems)?;
    budgets.need("tenant", problems);
    let at = budgets.given("tenant")?.at;
    budgets.json("tenant", problems).map(|value| Located { value, at })
}

/// Reports the entries whose name another entry before has; `name` returns the name with its position.
fn report_repeated<'a, T: 'a>(
    entries: impl IntoIterator<Item = &'a T>,
    name: impl Fn(&'a T) -> (String, super::Place),
    path: &str,
    problems: &mut Problems,
) {
    let mut seen = BTreeSet::new();
    for entry in entries {
        let (name, at) = name(entry);
        if !seen.insert(name.clone()) {
            problems.add(at, path, format!("`{name}` is declared twice; remove one of the two"));
        }
    }
}
