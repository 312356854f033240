//! Fixtures of the tests of mounts.

use serde_json::json;

use super::*;
use crate::service::definition_hash;

pub(super) fn identity() -> ServerIdentity {
    let capabilities = json!({"resources": {}});
    ServerIdentity::new("files", None, "1.0", None, capabilities.as_object().unwrap())
}

pub(super) fn mount() -> Mount {
    Mount {
        tenant: TenantId::parse("default").unwrap(),
        name: ServiceName::parse("files").unwrap(),
        address: MountAddress::Http { url: BaseUrl::parse("https://files.example/mcp").unwrap() },
        trusted: false,
        hidden_characters: HiddenCharacters::Show,
        credential: None,
        declared: false,
        era: McpEra::Modern,
        pinned: Some(identity()),
        seen: identity(),
        checked_at: Timestamp::EPOCH,
        failure: None,
        created_at: Timestamp::EPOCH,
        updated_at: Timestamp::EPOCH,
    }
}

pub(super) fn seen(name: &str, text: &str) -> SeenDefinition {
    let definition = json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    SeenDefinition { hash: definition_hash(&definition), definition: Some(definition) }
}

pub(super) fn pinned(name: &str, text: &str) -> PinnedDefinition {
    let SeenDefinition { definition, hash } = seen(name, text);
    PinnedDefinition { definition: definition.unwrap(), hash }
}

/// A tool in this state, whose accepted definition is `first` and whose listed one is `second` where they differ.
pub(super) fn tool(name: &str, state: ToolState) -> MountTool {
    let is_pinned = !matches!(state, ToolState::Quarantined(Quarantine::New));
    let listed = match state {
        ToolState::Accepted => Some("first"),
        ToolState::Quarantined(Quarantine::Removed) => None,
        _ => Some("second"),
    };
    MountTool {
        upstream: name.to_owned(),
        name: tool_name(name),
        pinned: is_pinned.then(|| pinned(name, "first")),
        seen: listed.map(|text| seen(name, text)),
        state,
    }
}

#[test]
fn states_are_read_back_as_they_are_written() {
    for state in ToolState::ALL {
        assert_eq!(ToolState::parse(state.as_str()), Some(state));
    }
}

#[test]
fn what_is_accepted_is_what_was_seen() {
    let changed = tool("a", ToolState::Quarantined(Quarantine::Changed));
    let accepted = changed.accepted().unwrap().unwrap();
    assert_eq!(accepted.state, ToolState::Accepted);
    assert_eq!(accepted.pinned.map(|pinned| pinned.hash), changed.seen.map(|seen| seen.hash));
    assert_eq!(tool("a", ToolState::Quarantined(Quarantine::Removed)).accepted(), Ok(None));
    let mut large = tool("a", ToolState::Quarantined(Quarantine::New));
    large.seen = Some(SeenDefinition { definition: None, hash: "sha256:0".to_owned() });
    assert!(large.accepted().is_err());
}

#[test]
fn an_offer_leaves_out_what_cannot_be_named_and_keeps_no_giants() {
    let listed = [
        ("a".to_owned(), json!({"name": "a"})),
        ("b\u{202e}".to_owned(), json!({"name": "b"})),
        ("c".to_owned(), json!({"name": "c", "description": "x".repeat(DEFINITION_LIMIT)})),
    ];
    let offer = Offer::read(McpEra::Legacy, identity(), listed).unwrap();
    assert_eq!(offer.ignored, ["b\\u{202e}"]);
    let kept: Vec<_> = offer.tools.iter().map(|tool| (tool.name.as_str(), tool.seen.definition.is_some())).collect();
    assert_eq!(kept, [("a", true), ("c", false)]);
    let many = (0..=TOOL_LIMIT).map(|number| (format!("t{number}"), json!({})));
    assert!(Offer::read(McpEra::Legacy, identity(), many).is_err());
}

#[test]
fn a_server_is_another_one_by_its_name_and_by_what_starts_it() {
    let started_by = |command: Option<&str>| identity().started_by(command.map(str::to_owned));
    let of = |pinned: Option<&str>, seen: Option<&str>| {
        let mount = Mount { pinned: Some(started_by(pinned)), seen: started_by(seen), ..mount() };
        (mount.is_replaced(), mount.is_server_quarantined())
    };
    assert_eq!(of(None, None), (false, false));
    assert_eq!(of(Some("sha256:1"), Some("sha256:1")), (false, false));
    assert_eq!(of(Some("sha256:1"), Some("sha256:2")), (true, true));
    assert_eq!(of(Some("sha256:1"), None), (true, true));
    // Accepted before commands were noted: a person has to look, and the tools stay usable.
    assert_eq!(of(None, Some("sha256:1")), (false, true));
    let other = ServerIdentity { name: "other".to_owned(), ..identity() };
    assert!(Mount { seen: other, ..mount() }.is_replaced());
}
