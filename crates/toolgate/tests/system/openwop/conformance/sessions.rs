//! The scenario of RFC 0078 about sessions.

use serde_json::{Value, json};

use super::{Checks, Host};

pub(super) fn lifecycle(host: &Host, checks: &Checks) {
    checks.same(&host.discovery()["toolCatalog"]["sessionLifecycle"], &json!(true), "advertised");
    checks.same(host.events("__probe__"), [json!(null); 0], "a run that never was has no events");
    for (body, tool) in
        [(json!({}), "openwop:conformance.session"), (json!({"toolId": "mcp:shell.open"}), "mcp:shell.open")]
    {
        let session = host.seam("tools/session-run", &body);
        let events = host.events(session["runId"].as_str().unwrap());
        let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let call = ["agent.toolCalled", "agent.toolReturned"];
        let expected = [&["tool.session.opened"][..], &call, &call, &["tool.session.closed"]].concat();
        checks.same(kinds, expected, "the calls stand between the ends");
        let (first, last) = (&events[0]["payload"], &events[events.len() - 1]["payload"]);
        for payload in [first, last] {
            checks.same(&payload["sessionId"], &session["sessionId"], "one session");
            checks.same(&payload["toolId"], &json!(tool), "of one tool");
            checks.without_secrets(payload);
        }
        checks.same(&last["outcome"], &json!("completed"), "brought to its end");
        let sequences: Vec<Value> = events.iter().map(|event| event["sequence"].clone()).collect();
        checks.same(json!(sequences), json!([0, 1, 2, 3, 4, 5]), "counted in the run");
        let run = session["runId"].as_str().unwrap();
        let filtered = |query: &str| {
            let path = format!("/v1/host/sample/test/runs/{run}/events?{query}");
            host.suite.get(&path).ok()["events"].as_array().unwrap().len()
        };
        checks.same(filtered("type=agent.toolCalled"), 2, "by type");
        let cause = events[1]["eventId"].as_str().unwrap();
        checks.same(filtered(&format!("causationId={cause}")), 1, "by cause");
        checks.same(filtered("correlationId=x") + filtered("nodeId=x"), 0, "there are none of these");
        host.seam("test/reset", &json!({}));
        checks.same(host.events(run), events, "the log only grows");
    }
}
