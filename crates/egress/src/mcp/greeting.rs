//! What a server says in the handshake of its era: who it is, what it can do and which revision is spoken.

use serde_json::{Map, Value};
use toolgate_gate::ports::mount::{McpEra, ServerInfo};

use super::message::{LEGACY, MODERN, RpcError};

/// The versions are those of `MODERN` and `LEGACY`.
pub(super) const NO_COMMON_VERSION: &str = "the server supports none of the protocol versions of the gate (2026-07-28, \
    2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05); upgrade the server";

/// The longest text of a server about itself that is kept, in characters.
const TEXT_LIMIT: usize = 16 * 1024;
/// The error of a modern server that does not speak the revision of the request.
const UNSUPPORTED_VERSION: i64 = -32022;
/// The member of `_meta` in which a modern server says who it is.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What a server has said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Greeting {
    pub(crate) era: McpEra,
    /// The revision that is spoken.
    pub(crate) version: String,
    pub(crate) server: ServerInfo,
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: Map<String, Value>,
}

impl Greeting {
    /// From the result of `server/discover`.
    pub(crate) fn modern(result: &Map<String, Value>) -> Result<Self, &'static str> {
        let versions = result.get("supportedVersions").and_then(Value::as_array);
        if !versions.is_some_and(|versions| versions.iter().any(|version| version == MODERN)) {
            return Err(NO_COMMON_VERSION);
        }
        let info = result.get("_meta").and_then(|meta| meta.get(SERVER_INFO)).or(result.get("serverInfo"));
        Ok(Self::of(McpEra::Modern, MODERN, info, result))
    }

    /// From the result of `initialize`.
    pub(crate) fn legacy(result: &Map<String, Value>) -> Result<Self, &'static str> {
        let version = result.get("protocolVersion").and_then(Value::as_str);
        let version = LEGACY.into_iter().find(|known| Some(*known) == version);
        let version = version.ok_or(NO_COMMON_VERSION)?;
        Ok(Self::of(McpEra::Legacy, version, result.get("serverInfo"), result))
    }

    fn of(era: McpEra, version: &str, info: Option<&Value>, result: &Map<String, Value>) -> Self {
        let said = |name| info.and_then(|info| info.get(name)).and_then(Value::as_str).map(cut);
        let server = ServerInfo {
            name: said("name").unwrap_or_default(),
            version: said("version").unwrap_or_default(),
            title: said("title"),
        };
        let capabilities = result.get("capabilities").and_then(Value::as_object).cloned().unwrap_or_default();
        let instructions = result.get("instructions").and_then(Value::as_str).map(cut);
        Self { era, version: version.to_owned(), server, instructions, capabilities }
    }
}

/// Whether a server that answered `server/discover` like this may be one of the legacy era. A modern server responds to
/// it with a result, or says which revisions it supports.
pub(crate) fn may_be_legacy(error: &RpcError) -> bool {
    if error.code != UNSUPPORTED_VERSION {
        return true;
    }
    let supported = error.error.get("data").and_then(|data| data.get("supported")).and_then(Value::as_array);
    supported.is_some_and(|versions| versions.iter().filter_map(Value::as_str).any(|version| LEGACY.contains(&version)))
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_LIMIT).collect()
}
