//! The grants of a file: `tools`.

use serde_json::{Map, Value};

use crate::constraint::Constraints;
use crate::context::{ContextId, GrantContext};
use crate::credential::ServiceName;
use crate::grant::DelegationDepth;
use crate::id::CredentialId;
use crate::principal::PrincipalId;
use crate::scope::{SCOPE_LIMIT, Scope};
use crate::text::Line;
use crate::time::Timestamp;
use crate::workflow::DeclaredGrant;
use crate::workflow::members::{Members, Problems, list, mapping, texts};
use crate::workflow::problem::Located;
use crate::workflow::tree::Node;

/// More grants than one file should have.
const GRANT_LIMIT: usize = 2_000;
const TOOLS: [&str; 2] = ["grants", "vault"];
const GRANT: [&str; 10] = [
    "allow_indefinite",
    "constraints",
    "context",
    "credential",
    "delegatable",
    "delegation_depth",
    "expires_at",
    "scopes",
    "service",
    "vault",
];
const CONTEXT: [&str; 3] = ["intent_id", "plan_id", "task_id"];

pub(super) fn read(members: &Members<'_>, problems: &mut Problems) -> (Option<Located<String>>, Vec<DeclaredGrant>) {
    let Some(node) = members.get("tools") else { return (None, Vec::new()) };
    let Some(tools) = Members::of(node, "tools", &TOOLS, problems) else { return (None, Vec::new()) };
    let vault = tools.parsed("vault", name_of_vault, problems);
    let mut grants = Vec::new();
    let entries = tools.get("grants").and_then(|node| mapping(node, "tools.grants", problems)).unwrap_or_default();
    for entry in entries {
        let path = format!("tools.grants.{}", entry.key);
        let Some(agent) = problems.keep(entry.at, &path, PrincipalId::parse(&entry.key)) else { continue };
        let agent = Located { value: agent, at: entry.at };
        for (number, node) in list(&entry.value, &path, GRANT_LIMIT, problems).iter().enumerate() {
            let Some(grant) = read_grant(node, &format!("{path}.{number}"), &agent, problems) else { continue };
            if grant.vault.is_none() && vault.is_none() {
                let message = "no vault: name it in `tools.vault`, or in this grant";
                problems.add(grant.at, &format!("{path}.{number}.vault"), message);
            }
            grants.push(grant);
        }
    }
    if grants.len() > GRANT_LIMIT {
        let message = format!("`tools.grants` has {} grants, the limit is {GRANT_LIMIT}; split the file", grants.len());
        problems.add(node.at, "tools.grants", message);
    }
    (vault, grants)
}

fn read_grant(node: &Node, path: &str, agent: &Located<PrincipalId>, problems: &mut Problems) -> Option<DeclaredGrant> {
    let members = Members::of(node, path, &GRANT, problems)?;
    members.need("service", problems);
    let service = members.parsed("service", ServiceName::parse, problems);
    let scopes = match members.need("scopes", problems) {
        Some(node) => texts(node, &members.path_of("scopes"), SCOPE_LIMIT, Scope::parse, problems),
        None => Vec::new(),
    };
    let allow_indefinite = members.flag("allow_indefinite", problems).unwrap_or(false);
    let expires_at = match members.given("expires_at") {
        None => None,
        Some(entry) if entry.value.is_null() => {
            if !allow_indefinite {
                let path = members.path_of("expires_at");
                let message = "a grant that never expires also needs `allow_indefinite: true`; prefer an expiry time";
                problems.add(entry.at, &path, message);
            }
            Some(None)
        }
        Some(_) => members.parsed("expires_at", Timestamp::parse, problems).map(|end| Some(end.value)),
    };
    Some(DeclaredGrant {
        at: node.at,
        agent: agent.clone(),
        service: service?,
        scopes,
        constraints: members
            .get("constraints")
            .map_or_else(Constraints::default, |node| constraints(node, &members.path_of("constraints"), problems)),
        context: members
            .get("context")
            .map_or_else(GrantContext::default, |node| context(node, &members.path_of("context"), problems)),
        delegatable: members.flag("delegatable", problems).unwrap_or(false),
        delegation_depth: match members.given("delegation_depth") {
            Some(entry) if entry.value.is_null() => Some(DelegationDepth::Unlimited),
            _ => {
                let depth = members.count("delegation_depth", u32::MAX.into(), problems);
                depth.and_then(|depth| u32::try_from(depth).ok()).map(DelegationDepth::Limited)
            }
        },
        expires_at,
        allow_indefinite,
        vault: members.parsed("vault", name_of_vault, problems),
        credential: members.parsed("credential", CredentialId::parse, problems),
    })
}

/// What the grants API accepts, with the protocol's short forms. Each constraint is read on its own, so that all problems
/// are found, and then all of them together.
fn constraints(node: &Node, path: &str, problems: &mut Problems) -> Constraints {
    let Some(entries) = mapping(node, path, problems) else { return Constraints::default() };
    let before = problems.0.len();
    for entry in entries {
        let single: Map<String, Value> = [(entry.key.clone(), entry.value.to_json())].into_iter().collect();
        if let Err(error) = Constraints::from_json(&Value::Object(single)) {
            let inside = error.path.strip_prefix("constraints.").unwrap_or(&error.path);
            problems.add(node.place_of(inside), &format!("{path}.{inside}"), error.to_string());
        }
    }
    match Constraints::from_json(&node.to_json()) {
        Ok(constraints) => constraints,
        Err(error) => {
            if problems.0.len() == before {
                let inside = error.path.strip_prefix("constraints.").unwrap_or_default();
                problems.add(node.place_of(inside), path, error.to_string());
            }
            Constraints::default()
        }
    }
}

fn context(node: &Node, path: &str, problems: &mut Problems) -> GrantContext {
    let Some(members) = Members::of(node, path, &CONTEXT, problems) else { return GrantContext::default() };
    let mut part = |name: &str| members.parsed(name, ContextId::parse, problems).map(|id| id.value);
    GrantContext { intent_id: part("intent_id"), plan_id: part("plan_id"), task_id: part("task_id") }
}

/// A vault by its name or id.
fn name_of_vault(text: &str) -> Result<String, crate::text::TextError> {
    Line::parse(text).map(|line| line.as_str().to_owned())
}
