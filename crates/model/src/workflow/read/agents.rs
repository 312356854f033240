//! The agents of a file.

use std::collections::BTreeSet;

use crate::descriptor::ToolId;
use crate::permission::{Permission, PermissionSet};
use crate::principal::{PrincipalChanges, PrincipalId, PrincipalKind};
use crate::principal_scope::PrincipalScope;
use crate::scope::SCOPE_LIMIT;
use crate::text::{Label, Line};
use crate::workflow::DeclaredAgent;
use crate::workflow::members::{Members, Problems, mapping, parsed, texts};
use crate::workflow::problem::{Located, meant};
use crate::workflow::tree::{Entry, Node};

/// More agents than one file should have.
const AGENT_LIMIT: usize = 1_000;
const CAPABILITY_LIMIT: usize = 64;
const LABEL_LIMIT: usize = 32;
const TOOL_LIMIT: usize = 1_024;
const MEMBERS: [&str; 11] = [
    "budget",
    "capabilities",
    "detach_calls",
    "kind",
    "labels",
    "name",
    "permissions",
    "progressive_discovery",
    "rate_limits",
    "scopes",
    "tool_allowlist",
];

pub(super) fn read(members: &Members<'_>, problems: &mut Problems) -> Vec<DeclaredAgent> {
    let Some(node) = members.get("agents") else { return Vec::new() };
    let entries = mapping(node, "agents", problems).unwrap_or_default();
    if entries.len() > AGENT_LIMIT {
        let message = format!("`agents` has {} entries, the limit is {AGENT_LIMIT}; split the file", entries.len());
        problems.add(node.at, "agents", message);
        return Vec::new();
    }
    entries.iter().filter_map(|entry| read_agent(entry, problems)).collect()
}

fn read_agent(entry: &Entry, problems: &mut Problems) -> Option<DeclaredAgent> {
    let path = format!("agents.{}", entry.key);
    let id = problems.keep(entry.at, &path, PrincipalId::parse(&entry.key))?;
    let id = Located { value: id, at: entry.at };
    if entry.value.is_null() {
        return Some(DeclaredAgent {
            id,
            kind: None,
            attributes: PrincipalChanges::default(),
            capabilities: Vec::new(),
        });
    }
    let members = Members::of(&entry.value, &path, &MEMBERS, problems)?;
    let kinds = ["agent", "service", "user"];
    let kind = members.parsed(
        "kind",
        |text| {
            let unknown = || format!("is not a kind of principal{}", meant(text, kinds));
            PrincipalKind::parse(text).ok_or_else(unknown)
        },
        problems,
    );
    let text_list = |name: &str| members.get(name).map(|node| (node, members.path_of(name)));
    let scopes = text_list("scopes").map(|(node, path)| {
        let scopes = texts(node, &path, SCOPE_LIMIT, PrincipalScope::parse, problems);
        scopes.into_iter().map(|scope| scope.value).collect()
    });
    let labels =
        text_list("labels").map(|(node, path)| values(texts(node, &path, LABEL_LIMIT, Label::parse, problems)));
    let allowlist = match members.given("tool_allowlist") {
        None => None,
        Some(entry) if entry.value.is_null() => Some(None),
        Some(entry) => {
            let path = members.path_of("tool_allowlist");
            Some(Some(values(texts(&entry.value, &path, TOOL_LIMIT, ToolId::parse, problems))))
        }
    };
    let name = match members.given("name") {
        None => None,
        Some(entry) if entry.value.is_null() => Some(None),
        Some(_) => members.parsed("name", Line::parse, problems).map(|name| Some(name.value)),
    };
    let attributes = PrincipalChanges {
        name,
        scopes,
        permissions: members.get("permissions").and_then(|node| permissions(node, &members, problems)),
        rate_limits: members.json("rate_limits", problems),
        tool_allowlist: allowlist,
        labels,
        detach_calls: members.flag("detach_calls", problems),
        progressive_discovery: members.flag("progressive_discovery", problems),
        budget: match members.given("budget") {
            None => None,
            Some(entry) if entry.value.is_null() => Some(None),
            Some(_) => members.json("budget", problems).map(Some),
        },
        stopped: None,
    };
    let capabilities = text_list("capabilities").map_or_else(Vec::new, |(node, path)| {
        let found = texts(node, &path, CAPABILITY_LIMIT, Line::parse, problems);
        found.into_iter().map(|capability| capability.value).collect()
    });
    Some(DeclaredAgent { id, kind, attributes, capabilities })
}

/// A list of permissions. The protocol's `private` says that only the assigned agent sees its work, which is always so.
fn permissions(node: &Node, members: &Members<'_>, problems: &mut Problems) -> Option<PermissionSet> {
    let path = members.path_of("permissions");
    if let Some(text) = node.text() {
        if text != "private" {
            let message = format!(
                "`{path}` must be `private`, as the work of an agent always is, or a list of permissions such as \
                 [tools.invoke, tools.delegate]"
            );
            problems.add(node.at, &path, message);
        }
        return None;
    }
    let known = || Permission::ALL.iter().map(|permission| permission.as_str());
    let parse = |text: &str| {
        let found = Permission::ALL.iter().copied().find(|permission| permission.as_str() == text);
        found.ok_or_else(|| format!("is not a permission{}", meant(text, known())))
    };
    let found = texts(node, &path, Permission::ALL.len(), parse, problems);
    Some(found.into_iter().map(|permission| permission.value).collect())
}

fn values<T: Ord>(found: Vec<Located<T>>) -> BTreeSet<T> {
    found.into_iter().map(|found| found.value).collect()
}

/// The id of an agent that something in the file refers to.
pub(super) fn reference(node: &Node, path: &str, problems: &mut Problems) -> Option<Located<PrincipalId>> {
    parsed(node, path, PrincipalId::parse, problems)
}
