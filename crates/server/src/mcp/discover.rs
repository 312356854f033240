//! What this server is: the same for every caller. The lists show what a caller may use of it.

use serde_json::{Map, Value, json};

use super::client::TASKS;
use super::era::{Era, LegacyVersion, supported};
use super::reply::{Reply, ServerInfo};

/// How long a client may cache this result, in milliseconds.
const LIFETIME: u64 = 3_600_000;

const INSTRUCTIONS: &str = "Tools behind a gate. A result with isError says what was refused and what to change. A call may \
                            have to wait for a person's approval: where the result says so, make the same call again later.";

/// `server/discover` of the modern era.
pub(super) fn discover() -> Reply {
    let mut result = Map::new();
    result.insert("supportedVersions".to_owned(), json!(supported()));
    result.insert("capabilities".to_owned(), capabilities(Era::Modern));
    result.insert("instructions".to_owned(), json!(INSTRUCTIONS));
    cached(&mut result, LIFETIME);
    Reply::Result(result)
}

/// The result of `initialize`, with the version that is spoken from there on.
pub(super) fn initialized(version: LegacyVersion) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("protocolVersion".to_owned(), json!(version.as_str()));
    result.insert("capabilities".to_owned(), capabilities(Era::Legacy(version)));
    result.insert("serverInfo".to_owned(), json!(ServerInfo::OWN));
    result.insert("instructions".to_owned(), json!(INSTRUCTIONS));
    result
}

/// How long a result may be kept, and by whom: what one caller sees is nobody else's.
pub(super) fn cached(result: &mut Map<String, Value>, milliseconds: u64) {
    result.insert("ttlMs".to_owned(), json!(milliseconds));
    result.insert("cacheScope".to_owned(), json!("private"));
}

fn capabilities(era: Era) -> Value {
    let changes = json!({"listChanged": true});
    let mut capabilities = json!({"tools": changes, "resources": changes, "prompts": changes, "completions": {}});
    let more = match era {
        Era::Modern => ("extensions", json!({TASKS: {}})),
        // What mounted servers log during a call is passed on from the level on that the client sets.
        Era::Legacy(_) => ("logging", json!({})),
    };
    if let Some(members) = capabilities.as_object_mut() {
        members.insert(more.0.to_owned(), more.1);
    }
    capabilities
}
