//! Mounted servers: an external guardian has a say in every message between the gate and them, in both directions.

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::McpServer;

use super::office::Office;
use super::third_party::ThirdParty;
use crate::mcp::mounted::mount;
use crate::world::text;

/// What the messages are known by, in the order in which a first call exchanges them: of the gate or of the server, and what
/// stands in them.
const MESSAGES: [(&str, &str); 6] = [
    ("outbound", r#""method":"initialize""#),
    ("inbound", r#""serverInfo":{"name":"fixture","title":"Fixture","version":"1.2.3"}"#),
    ("outbound", r#""method":"tools/list""#),
    ("inbound", r#""inputSchema""#),
    ("outbound", r#""method":"tools/call""#),
    ("inbound", r#""structuredContent""#),
];

/// How many messages in this direction the guardian has denied.
fn denied(guardian: &ThirdParty, direction: &str) -> usize {
    let questions = guardian.asked_about("protocols/MCP");
    let direction = format!("\"direction\":\"{direction}\"");
    let is_it = |question: &&Value| question["do"] == "deny" && question["body"].to_string().contains(&direction);
    questions.iter().filter(is_it).count()
}

#[test]
fn an_external_guardian_is_asked_about_every_message_and_its_no_stops_each() {
    let guardian = ThirdParty::start(json!([]));
    let office = Office::with(&guardian, "");
    let server = McpServer::start(false, false);
    let credential = mount(&office.admin, "mounted", &server);
    office.admin.grants(&credential, "clerk", json!({"scopes": ["echo"]}));
    let call = || office.agent.mcp_call("mounted_echo", json!({"text": "hello"}));
    let counts = || ["initialize", "tools/list", "tools/call"].map(|method| server.received(method).len());
    let [begun, listed, _] = counts();
    for (number, (direction, content)) in MESSAGES.into_iter().enumerate() {
        guardian.follow(&json!([{"do": "deny", "method": "protocols/MCP", "contains": content, "reason": "not that"}]));
        let before = denied(&guardian, direction);
        let result = call();
        assert_eq!(result["isError"], true, "{content}: {result}");
        assert!(text(&result, "/content/0/text").contains("guardian security denied this: not that"), "{result}");
        assert!(!result.to_string().contains("hello"), "{content}: {result}");
        assert_eq!(denied(&guardian, direction), before + 1, "{direction} {content}");
        // Nothing was sent that was denied, and nothing after it.
        let [initialized, lists, calls] = counts();
        let expected = (initialized > begun, lists > listed, calls > 0);
        assert_eq!(expected, (number > 0, number > 2, number > 4), "{content}");
    }
    guardian.follow(&json!([]));
    assert_eq!(call()["structuredContent"], json!({"text": "hello"}));
}

#[test]
fn an_inspection_asks_an_external_guardian_too() {
    let guardian = ThirdParty::start(json!([]));
    let office = Office::with(&guardian, "");
    let server = McpServer::start(true, false);
    for (direction, content) in [
        ("outbound", r#""method":"server/discover""#),
        ("inbound", r#""instructions":"Use echo.""#),
        ("outbound", r#""method":"tools/list""#),
        ("inbound", r#""inputSchema""#),
    ] {
        guardian.follow(&json!([{"do": "deny", "method": "protocols/MCP", "contains": content, "reason": "not that"}]));
        let before = denied(&guardian, direction);
        let refused = office.admin.post("/api/v1/mounts", &json!({"name": "mounted", "url": server.url()}));
        let error = refused.refused(502, "MOUNT_FAILED");
        assert!(text(&error, "/message").contains("not that"), "{content}: {error}");
        assert!(denied(&guardian, direction) > before, "{direction} {content}");
    }
    assert!(server.received("tools/call").is_empty());
}
