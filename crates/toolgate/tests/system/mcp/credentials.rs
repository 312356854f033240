//! How mounted servers are reached: with a secret in the query, with tokens that are renewed, and in the trace of the caller.

use serde_json::{Value, json};
use toolgate_testkit::mcp_server::McpServer;
use toolgate_testkit::upstream::{CLIENT_ID, CLIENT_SECRET, TokenServer};

use super::mounted::mount_with;
use super::{meta, request};
use crate::world::{World, on_both_engines, text};

on_both_engines! {
    a_secret_in_the_query_reaches_the_server_and_nobody_else,
    a_token_that_a_server_refuses_is_renewed_and_the_request_made_again,
    the_trace_in_the_meta_of_a_call_reaches_the_server,
}

fn a_secret_in_the_query_reaches_the_server_and_nobody_else(world: &World) {
    for modern in [true, false] {
        let (admin, server, name) = (world.admin(), McpServer::start(modern, false), format!("mounted-{modern}"));
        let agent = world.agent(&format!("agent-{modern}"), &["tools.invoke"]);
        let placement = json!({"metadata": {"auth": {"location": "query", "query_param": "key"}}});
        let credential = mount_with(&admin, &name, &server, placement);
        admin.grants(&credential, &agent.id, json!({"scopes": ["whoami"]}));
        server.script().accepts = Some("sk_live_of_the_mount".to_owned());
        let listed = agent.mcp_tools();
        let result = agent.mcp_call(&listed[0], json!({}));
        assert!(text(&result, "/_meta/target").ends_with("?key=[REDACTED]"), "{result}");
        assert!(!result.to_string().contains("sk_live"), "{result}");
        let received = server.upstream().received();
        let last = received.last().unwrap();
        assert_eq!((last.target.as_str(), last.header("authorization")), ("/mcp?key=sk_live_of_the_mount", None));
    }
}

fn a_token_that_a_server_refuses_is_renewed_and_the_request_made_again(world: &World) {
    for modern in [true, false] {
        let (admin, server, name) = (world.admin(), McpServer::start(modern, true), format!("mounted-{modern}"));
        let agent = world.agent(&format!("agent-{modern}"), &["tools.invoke"]);
        let tokens = TokenServer::start();
        let credential = json!({
            "auth_type": "oauth2_token", "metadata": {"token_url": tokens.token_url()},
            "material": {
                "access_token": tokens.access_token(), "refresh_token": tokens.refresh_token(),
                "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET
            },
        });
        let credential = mount_with(&admin, &name, &server, credential);
        admin.grants(&credential, &agent.id, json!({"scopes": ["echo", "whoami"]}));
        let tool = agent.mcp_tools().into_iter().find(|tool| tool.ends_with("whoami")).unwrap();
        let call = || agent.mcp_call(&tool, json!({}));
        let used = || server.upstream().received().last().unwrap().bearer().map(str::to_owned);
        server.script().accepts = Some(tokens.access_token());
        assert_eq!(call().get("isError"), None);
        assert_eq!((used(), tokens.exchanges()), (Some(tokens.access_token()), 0));
        for renewed in 1..=2 {
            // Whatever comes next is the token that the endpoint will give.
            server.script().accepts = Some(format!("access-token-of-the-tests-{}", renewed + 1));
            let result = call();
            assert_eq!(result.get("isError"), None, "{result}");
            assert!(text(&result, "/content/0/text").contains("authorization: Bearer [REDACTED]"), "{result}");
            assert_eq!((used(), tokens.exchanges()), (Some(tokens.access_token()), renewed));
            assert_eq!(call().get("isError"), None);
            assert_eq!(tokens.exchanges(), renewed, "the new token is used from then on");
        }
    }
}

fn the_trace_in_the_meta_of_a_call_reaches_the_server(world: &World) {
    let (admin, agent) = (world.admin(), world.agent("agent", &["tools.invoke"]));
    let server = McpServer::start(true, false);
    let credential = mount_with(&admin, "mounted", &server, json!({}));
    admin.grants(&credential, "agent", json!({"scopes": ["echo"]}));
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let call = |traceparent: &str, session: Option<&str>| {
        let mut params = json!({"name": "mounted_echo", "arguments": {"text": "hello"}});
        let result = match session {
            Some(session) => {
                params["_meta"] = json!({"traceparent": traceparent});
                agent.legacy(session, &request("tools/call", params)).rpc()
            }
            None => {
                params["_meta"] = meta(json!({}));
                params["_meta"]["traceparent"] = json!(traceparent);
                let headers = [
                    ("MCP-Protocol-Version", super::VERSION),
                    ("Mcp-Method", "tools/call"),
                    ("Mcp-Name", "mounted_echo"),
                ];
                agent.ask_with("POST", "/mcp", &headers, Some(&request("tools/call", params))).rpc()
            }
        };
        let told: Value = server.received("tools/call").last().unwrap()["params"]["_meta"]["traceparent"].clone();
        let header = server.upstream().received().last().unwrap().header("traceparent").map(str::to_owned);
        assert_eq!(told.as_str().map(str::to_owned), header, "in the headers and in the body");
        (text(&result, "/_meta/toolgate~1invocation_id").to_owned(), header)
    };
    let session = agent.opens_session();
    for session in [None, Some(session.as_str())] {
        let (invocation, told) = call(&format!("00-{trace}-00f067aa0ba902b7-01"), session);
        assert!(told.as_deref().is_some_and(|told| told.starts_with(&format!("00-{trace}-"))), "{told:?}");
        let events = admin.events("&type=tool.invoked");
        let invoked = events.iter().find(|event| event["data"]["invocation_id"] == invocation.as_str());
        assert_eq!(invoked.unwrap()["data"]["trace_id"], trace);
        // What is no trace is ignored, and the call made.
        assert_eq!(call("nonsense", session).1, None);
    }
}
