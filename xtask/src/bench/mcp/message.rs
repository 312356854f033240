//! The messages of both eras, as clients and servers of the benchmark send them.

use super::super::gate::load::{FIRST_ID, Request};
use super::super::gate::subject::PARAMETERS;

/// The versions of the protocol that are measured: a client of each calls a server of the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28, in which each request stands alone.
    Modern,
    /// 2025-11-25, in which a client has a session.
    Legacy,
}

/// A text that is only in the result of the tool.
pub const MARK: &str = "charge_4711";

/// The tool of the servers. Its schema is that of the tool that is called over HTTP.
pub const TOOL: &str = r#"{"name":"echo","description":"Creates a charge.","inputSchema":{"type":"object","properties":{"amount":{"type":"integer","minimum":1},"currency":{"type":"string","enum":["usd","eur"]},"note":{"type":"string"}},"required":["amount","currency"],"additionalProperties":false}}"#;

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

impl Era {
    pub const ALL: [Self; 2] = [Self::Modern, Self::Legacy];

    /// Its version.
    pub fn version(self) -> &'static str {
        match self {
            Self::Modern => "2026-07-28",
            Self::Legacy => "2025-11-25",
        }
    }

    /// The name of its server and of the mount.
    pub fn name(self) -> &'static str {
        match self {
            Self::Modern => "modern",
            Self::Legacy => "legacy",
        }
    }

    /// A request of a method with these members of its parameters, by a client that has the session, if there is one.
    pub fn request(self, url: &str, method: &str, name: Option<&str>, members: &str, session: Option<&str>) -> Request {
        let meta = match self {
            Self::Modern => format!(r#""_meta":{META}"#),
            Self::Legacy => String::new(),
        };
        let named = name.map(|name| format!(r#""name":"{name}""#)).unwrap_or_default();
        let members: Vec<&str> = [named.as_str(), members, &meta].into_iter().filter(|part| !part.is_empty()).collect();
        let params = members.join(",");
        let body = format!(r#"{{"jsonrpc":"2.0",{FIRST_ID}"method":"{method}","params":{{{params}}}}}"#);
        let mut request = Request::new(url.to_owned(), None, &body)
            .with_header("Accept", "application/json, text/event-stream")
            .with_header("MCP-Protocol-Version", self.version());
        if self == Self::Modern {
            request = request.with_header("Mcp-Method", method);
            request = name.into_iter().fold(request, |request, name| request.with_header("Mcp-Name", name));
        }
        session.into_iter().fold(request, |request, session| request.with_header("Mcp-Session-Id", session))
    }

    /// The call of a tool.
    pub fn call(self, url: &str, tool: &str, session: Option<&str>) -> Request {
        self.request(url, "tools/call", Some(tool), &format!(r#""arguments":{PARAMETERS}"#), session)
    }

    /// What a server says about itself, as a result of the first request.
    pub fn greeting(self) -> &'static str {
        match self {
            Self::Modern => {
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":3600000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"stub","version":"1"}}}"#
            }
            Self::Legacy => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}"#
            }
        }
    }

    /// The result of the tool.
    pub fn result(self) -> String {
        let more = self.more();
        format!(r#"{{"content":[{{"type":"text","text":"{MARK}: 1999 usd, succeeded, one of many calls"}}]{more}}}"#)
    }

    /// The list of the server.
    pub fn list(self) -> String {
        let more = self.more();
        format!(r#"{{"tools":[{TOOL}]{more}}}"#)
    }

    fn more(self) -> &'static str {
        match self {
            Self::Modern => r#","resultType":"complete""#,
            Self::Legacy => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modern_request_stands_alone_and_a_legacy_one_has_its_session() {
        let modern = Era::Modern.call("http://127.0.0.1:1/mcp", "modern_echo", None);
        assert!(modern.body.contains(r#""name":"modern_echo","arguments":{"amount""#), "{}", modern.body);
        assert!(modern.headers.contains(&("Mcp-Name", "modern_echo".to_owned())));
        let legacy = Era::Legacy.call("http://127.0.0.1:1/mcp", "echo", Some("s"));
        assert!(legacy.headers.contains(&("Mcp-Session-Id", "s".to_owned())) && !legacy.body.contains("_meta"));
    }
}
