//! What changes when a server is looked at again.

use std::collections::BTreeMap;

use super::{MountTool, OfferedDefinition, Quarantine, SeenDefinition, ToolState, tool_name};

/// A tool whose record changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChange {
    /// Its name at the server.
    pub upstream: String,
    /// Its state until now; `None` where it is new.
    pub before: Option<ToolState>,
    /// Its new record; `None` where it is forgotten, because nobody has accepted it and it is listed no more.
    pub after: Option<MountTool>,
}

/// The records that change by what a server lists, in the order of their names.
///
/// - A definition that nobody has accepted is quarantined, and so is a tool that is no longer listed.
/// - A tool that was no longer listed and comes back unchanged is accepted again: no other definition was seen.
/// - A definition that changes and changes back stays quarantined. A person should know.
pub fn compare(known: &[MountTool], offered: &[OfferedDefinition]) -> Vec<ToolChange> {
    let known: BTreeMap<&str, &MountTool> = known.iter().map(|tool| (tool.upstream.as_str(), tool)).collect();
    let mut listed: BTreeMap<&str, &SeenDefinition> = BTreeMap::new();
    for OfferedDefinition { name, seen } in offered {
        let pin = known.get(name.as_str()).and_then(|tool| tool.pinned.as_ref()).map(|pinned| pinned.hash.as_str());
        let entry = listed.entry(name).or_insert(seen);
        // Of several definitions under one name, one that is not pinned counts; which of them does not depend on the order.
        let rank = |seen: &SeenDefinition| (pin != Some(seen.hash.as_str()), seen.hash.clone());
        if rank(seen) > rank(entry) {
            *entry = seen;
        }
    }
    let mut names: Vec<&str> = known.keys().chain(listed.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let change = |name: &str| change(name, known.get(name).copied(), listed.get(name).copied());
    names.into_iter().filter_map(change).collect()
}

fn change(name: &str, known: Option<&MountTool>, seen: Option<&SeenDefinition>) -> Option<ToolChange> {
    let after = match (known, seen) {
        (None, None) => return None,
        (None, Some(seen)) => Some(MountTool {
            upstream: name.to_owned(),
            name: tool_name(name),
            pinned: None,
            seen: Some(seen.clone()),
            state: ToolState::Quarantined(Quarantine::New),
        }),
        (Some(tool), Some(seen)) => {
            Some(MountTool { seen: Some(seen.clone()), state: state_when_listed(tool, seen), ..tool.clone() })
        }
        (Some(tool), None) => when_not_listed(tool),
    };
    if after.as_ref() == known {
        return None;
    }
    Some(ToolChange { upstream: name.to_owned(), before: known.map(|tool| tool.state), after })
}

fn state_when_listed(tool: &MountTool, seen: &SeenDefinition) -> ToolState {
    let is_pinned = tool.pinned.as_ref().is_some_and(|pinned| pinned.hash == seen.hash);
    let is_known = tool.seen.as_ref().is_some_and(|known| known.hash == seen.hash);
    match tool.state {
        ToolState::Accepted | ToolState::Quarantined(Quarantine::Removed) if is_pinned => ToolState::Accepted,
        ToolState::Rejected if is_known => ToolState::Rejected,
        _ if tool.pinned.is_none() => ToolState::Quarantined(Quarantine::New),
        _ => ToolState::Quarantined(Quarantine::Changed),
    }
}

fn when_not_listed(tool: &MountTool) -> Option<MountTool> {
    match tool.state {
        ToolState::Accepted => {
            Some(MountTool { seen: None, state: ToolState::Quarantined(Quarantine::Removed), ..tool.clone() })
        }
        // What was seen of it stays for the person who decides.
        ToolState::Quarantined(Quarantine::Changed | Quarantine::Removed) => Some(tool.clone()),
        ToolState::Quarantined(Quarantine::New) | ToolState::Rejected => None,
    }
}

#[cfg(test)]
mod tests;
