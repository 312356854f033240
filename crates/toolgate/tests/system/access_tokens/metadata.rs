//! What a client without a token is told, and what a request says about the gate changes nothing of it.

use serde_json::{Value, json};

use super::{PUBLIC_URL, Trusting};
use crate::world::{Reply, World, send};

const GATE: &str = "/.well-known/oauth-protected-resource";
const MCP: &str = "/.well-known/oauth-protected-resource/mcp";

#[test]
fn clients_find_the_issuer_of_tokens_by_the_metadata_of_the_resource() {
    let gate = Trusting::saying("required_scopes = [\"toolgate\"]");
    let get = |path: &str, headers: &[(&str, &str)]| send(gate.world.address(), "GET", path, headers, b"");
    let expected = |resource: &str| {
        json!({
            "resource": resource,
            "authorization_servers": [gate.issuer.url()],
            "scopes_supported": ["toolgate"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolgate",
        })
    };
    assert_eq!(get(GATE, &[]).ok(), expected(PUBLIC_URL));
    let of_mcp = expected(&format!("{PUBLIC_URL}/mcp"));
    for headers in [vec![], vec![("X-Forwarded-Host", "evil.example"), ("Forwarded", "host=evil.example")]] {
        assert_eq!(get(MCP, &headers).ok(), of_mcp);
    }
    let raw = format!("GET {MCP} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    let answer = toolgate_testkit::http::send_raw(gate.world.address(), raw.as_bytes()).unwrap();
    assert_eq!(toolgate_testkit::http::parse(&answer).unwrap().json(), of_mcp);
}

#[test]
fn without_an_issuer_there_is_no_metadata_and_no_mention_of_it() {
    let world = World::sqlite();
    for path in [GATE, MCP] {
        send(world.address(), "GET", path, &[], b"").refused(404, "ROUTE_NOT_FOUND");
    }
    let refused = asks_mcp(&world, None);
    assert_eq!((refused.status(), refused.answer.header("www-authenticate")), (401, Some("Bearer")));
}

#[test]
fn a_refused_client_of_mcp_is_told_where_to_get_a_token_with_which_scopes() {
    let gate = Trusting::saying("required_scopes = [\"toolgate\", \"tools:call\"]");
    gate.world.admin().post("/api/v1/agents", &json!({"id": "billing"})).created();
    gate.register("billing", "workload-1");
    let metadata = format!("resource_metadata=\"{PUBLIC_URL}{MCP}\"");
    let challenge = |token: Option<&str>, status: u16| {
        let reply = asks_mcp(&gate.world, token);
        assert_eq!(reply.status(), status, "{}", reply.answer.text());
        reply.answer.header("www-authenticate").map(str::to_owned)
    };
    let scoped = |scope: Value| {
        let mut claims = gate.claims("workload-1");
        claims["scope"] = scope;
        gate.signer.token(&claims)
    };
    assert_eq!(challenge(None, 401), Some(format!("Bearer {metadata}")));
    for wrong in ["no-key-of-anybody", "eyJhbGciOiJub25lIn0.e30."] {
        assert_eq!(challenge(Some(wrong), 401), Some(format!("Bearer error=\"invalid_token\", {metadata}")));
    }
    let all = "error=\"insufficient_scope\", scope=\"toolgate tools:call\"";
    for held in [json!(""), json!("toolgate"), json!(["tools:call"])] {
        assert_eq!(challenge(Some(&scoped(held)), 403), Some(format!("Bearer {all}, {metadata}")));
    }
    let narrow = gate.world.actor("billing", &scoped(json!("toolgate"))).get("/api/v1/whoami");
    let error = narrow.refused(403, "TOKEN_SCOPE_INSUFFICIENT");
    assert_eq!(error["required_token_scopes"], json!(["toolgate", "tools:call"]));
    assert_eq!(challenge(Some(&scoped(json!("openid tools:call toolgate"))), 200), None);
}

/// Lists the tools.
fn asks_mcp(world: &World, token: Option<&str>) -> Reply {
    let authorization = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    headers.extend(authorization.iter().map(|value| ("Authorization", value.as_str())));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    send(world.address(), "POST", "/mcp", &headers, body.to_string().as_bytes())
}
