//! Declarations of a tool that are more than one word.

use std::collections::BTreeSet;

use serde_json::Value;

use super::reading::{Fields, flag, join, refuse, text, texts, word};
use super::{DefinitionError, ServiceDefinition, ToolDefinition};
use crate::approval::{ApprovalRule, Attendance};
use crate::descriptor::{Egress, SafetyTier, SourceKind};
use crate::principal_scope::RequiredScope;
use crate::rate_limit::RateLimit;
use crate::text::Label;

#[cfg(test)]
mod tests;

/// More scopes than any tool needs.
const SCOPE_LIMIT: usize = 64;
/// More labels than any tool needs.
const LABEL_LIMIT: usize = 32;
/// The longest period of a rate limit, in seconds: a day.
const MAX_PERIOD: u64 = 86_400;
/// The sources whose tools are described by definitions.
const SOURCES: [(&str, SourceKind); 3] =
    [("connector", SourceKind::Connector), ("host-extension", SourceKind::HostExtension), ("mcp", SourceKind::Mcp)];

pub(super) fn read_source(value: &Value, path: &str) -> Result<SourceKind, DefinitionError> {
    match SourceKind::parse(text(value, path)?) {
        Some(other @ (SourceKind::NodePack | SourceKind::Workflow)) => {
            let reason =
                format!("must be connector, host-extension or mcp: tools of source {other} have no definition");
            Err(refuse(path, reason))
        }
        _ => word(value, path, &SOURCES),
    }
}

pub(super) fn read_egress(value: &Value, path: &str) -> Result<Egress, DefinitionError> {
    match word(value, path, Egress::WORDS)? {
        Egress::None => Err(refuse(path, "must not be none: a service is reached over the network")),
        egress => Ok(egress),
    }
}

/// Reads the scopes that a principal must hold. An empty list declares that it needs none.
pub(super) fn read_required_scopes(value: &Value, path: &str) -> Result<BTreeSet<RequiredScope>, DefinitionError> {
    let scopes = texts(value, path)?;
    if scopes.len() > SCOPE_LIMIT {
        return Err(refuse(path, format!("has more than {SCOPE_LIMIT} scopes")));
    }
    scopes
        .into_iter()
        .enumerate()
        .map(|(position, scope)| {
            RequiredScope::parse(scope).map_err(|error| refuse(&join(path, &position.to_string()), error.to_string()))
        })
        .collect()
}

pub(super) fn read_labels(value: &Value, path: &str) -> Result<BTreeSet<Label>, DefinitionError> {
    let labels = texts(value, path)?;
    if labels.len() > LABEL_LIMIT {
        return Err(refuse(path, format!("has more than {LABEL_LIMIT} labels")));
    }
    let read = |(position, label): (usize, &str)| {
        Label::parse(label).map_err(|error| refuse(&join(path, &position.to_string()), error.to_string()))
    };
    labels.into_iter().enumerate().map(read).collect()
}

/// Reads `{requests, per_seconds, burst}`.
pub(super) fn read_rate_limit(value: &Value, path: &str) -> Result<RateLimit, DefinitionError> {
    let fields = Fields::of(value, path, &["burst", "per_seconds", "requests"])?;
    let requests = fields.need("requests", count)?;
    let per_seconds = fields.need("per_seconds", count)?;
    let burst = fields.read("burst", count)?;
    if per_seconds > MAX_PERIOD {
        return Err(refuse(&fields.at("per_seconds"), format!("must be at most {MAX_PERIOD} (one day)")));
    }
    RateLimit::new(requests, per_seconds, burst).map_err(|error| refuse(path, format!("is invalid: {error}")))
}

pub(super) fn read_approval_rule(value: &Value, path: &str) -> Result<ApprovalRule, DefinitionError> {
    let names =
        ["approvers", "attendance", "groups", "override_groups", "separation_of_duties", "standing", "ttl_seconds"];
    let fields = Fields::of(value, path, &names)?;
    let usual = ApprovalRule::default();
    let names =
        |value: &Value, path: &str| Ok(texts(value, path)?.into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
    let groups = fields.read("groups", names)?;
    let approvers = fields.read("approvers", count)?;
    let rule = ApprovalRule {
        approvers: approvers.map_or(usual.approvers, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        groups: groups.unwrap_or_default(),
        separation_of_duties: fields.read("separation_of_duties", flag)?.unwrap_or(usual.separation_of_duties),
        ttl_seconds: fields.read("ttl_seconds", count)?,
        attendance: fields.read("attendance", |value, path| word(value, path, &Attendance::WORDS))?,
        standing: fields.read("standing", flag)?.unwrap_or(usual.standing),
        override_groups: fields.read("override_groups", names)?,
    };
    rule.check().map_err(|(field, error)| refuse(&fields.at(field), error.to_string()))?;
    Ok(rule)
}

/// Checks that only a host extension has tools that run commands.
pub(super) fn host_extensions_only(definition: &ServiceDefinition, path: &str) -> Result<(), DefinitionError> {
    let runs_commands = |tool: &ToolDefinition| tool.safety_tier == Some(SafetyTier::Exec);
    match definition.tools.iter().find(|(_, tool)| runs_commands(tool)) {
        Some((name, _)) if definition.source != SourceKind::HostExtension => {
            let reason =
                "must not be exec unless the service has `source: host-extension`: a connector runs no commands";
            Err(refuse(&join(&join(path, name.as_str()), "safety_tier"), reason))
        }
        _ => Ok(()),
    }
}

/// Checks that the tools of mounted MCP servers, and no others, are called over MCP.
pub(super) fn check_mappings(definition: &ServiceDefinition, path: &str) -> Result<(), DefinitionError> {
    let is_mounted = definition.source == SourceKind::Mcp;
    for (name, tool) in &definition.tools {
        let at = |member| join(&join(path, name.as_str()), member);
        if is_mounted && tool.http.is_some() {
            return Err(refuse(&at("http"), "must not be set where the service has `source: mcp`; write `mcp`"));
        }
        if is_mounted && tool.mcp.is_none() {
            return Err(refuse(&at("mcp"), "is missing: the service has `source: mcp`"));
        }
        if !is_mounted && tool.mcp.is_some() {
            return Err(refuse(&at("mcp"), "must not be set unless the service has `source: mcp`"));
        }
    }
    Ok(())
}

fn count(value: &Value, path: &str) -> Result<u64, DefinitionError> {
    value.as_u64().filter(|&count| count > 0).ok_or_else(|| refuse(path, "must be an integer of at least 1"))
}
