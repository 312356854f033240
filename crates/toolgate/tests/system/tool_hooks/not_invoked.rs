//! What is refused never reaches the tool, whatever it is refused for; and the same call does once nothing stands in its
//! way, so that it is the refusal that kept it back.

use serde_json::{Value, json};

use super::office::{Office, call, invocation};
use crate::world::{Reply, World, on_both_engines};

on_both_engines! {
    without_the_tools_own_scopes_it_is_not_called,
    what_the_allowlist_does_not_name_is_not_called,
    with_an_empty_bucket_it_is_not_called,
    the_principals_own_limit_counts_too,
    with_the_rate_of_the_grant_used_up_it_is_not_called,
    with_parameters_that_it_does_not_take_it_is_not_called,
    of_many_calls_at_once_as_many_arrive_as_the_bucket_holds,
    without_the_scope_nothing_is_fetched,
}

/// The types of all events of this call, and the status of its return.
fn told(office: &Office, reply: &Reply) -> (Vec<String>, Value) {
    let call = invocation(reply);
    let events = office.admin.get(&format!("/v1/events?run={call}")).ok()["events"].as_array().unwrap().clone();
    let returned = events.iter().find(|event| event["type"] == "agent.toolReturned").unwrap();
    assert_eq!(returned["payload"].get("durationMs"), None, "it never started: {returned}");
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    (kinds, returned["payload"]["status"].clone())
}

/// A refusal for want of authority, with the whole trail of it.
#[track_caller]
fn assert_forbidden(office: &Office, reply: &Reply, tool: &str, required: Value) {
    let error = reply.refused(403, "FORBIDDEN");
    assert_eq!((&error["scope"], &error["toolName"]), (&json!("tool"), &json!(tool)), "{error}");
    assert_eq!(error["requiredScopes"], required, "{error}");
    let (kinds, status) = told(office, reply);
    assert_eq!(kinds, ["agent.toolCalled", "agent.toolReturned", "authorization.decided"]);
    assert_eq!(status, "forbidden");
}

/// A refusal for the bucket, with the whole trail of it.
#[track_caller]
fn assert_limited(office: &Office, reply: &Reply, tool: &str) {
    let error = reply.refused(429, "TOOL_RATE_LIMITED");
    assert_eq!((&error["scope"], &error["toolName"]), (&json!("tool"), &json!(tool)), "{error}");
    let seconds = reply.answer.header("retry-after").unwrap().parse::<u64>().unwrap();
    assert!(seconds > 0, "{error}");
    assert_eq!(error["retry_after_seconds"], seconds);
    assert_eq!(
        told(office, reply),
        (vec!["agent.toolCalled".to_owned(), "agent.toolReturned".to_owned()], json!("rate_limited"))
    );
}

fn without_the_tools_own_scopes_it_is_not_called(world: &World) {
    let office = Office::open(world);
    let required = json!(["tools:office:write"]);
    for held in [json!([]), json!(["tools:office:read"]), json!(["tools:office"]), json!(["tools:mail:*"])] {
        office.change(json!({"scopes": held}));
        assert_forbidden(&office, &office.call("scoped", json!({})), "office.scoped", required.clone());
        // Naming the grant changes nothing.
        let named = office.call("scoped", json!({"grant_id": office.grant["id"]}));
        assert_forbidden(&office, &named, "office.scoped", required.clone());
    }
    assert!(office.reached().is_empty());
    office.call("open", json!({})).ok();
    for held in [json!(["tools:office:write"]), json!(["tools:*"])] {
        office.change(json!({"scopes": held}));
        office.call("scoped", json!({})).ok();
    }
    assert_eq!(office.reached(), ["open", "scoped", "scoped"]);
    office.change(json!({"scopes": []}));
    office.call("scoped", json!({})).refused(403, "FORBIDDEN");
    assert_eq!(office.upstream.count(), 3, "from the next call on");
}

fn what_the_allowlist_does_not_name_is_not_called(world: &World) {
    let office = Office::open(world);
    for allowed in [json!([]), json!(["connector:office.strict"]), json!(["openwop:http.fetch"])] {
        office.change(json!({"tool_allowlist": allowed}));
        assert_forbidden(&office, &office.call("open", json!({})), "office.open", json!([]));
    }
    assert!(office.reached().is_empty());
    for allowed in [json!(["connector:office.open"]), json!(null)] {
        office.change(json!({"tool_allowlist": allowed}));
        office.call("open", json!({})).ok();
    }
    assert_eq!(office.reached(), ["open", "open"]);
}

fn with_an_empty_bucket_it_is_not_called(world: &World) {
    let office = Office::open(world);
    for _ in 0..2 {
        office.call("limited", json!({})).ok();
    }
    for _ in 0..3 {
        assert_limited(&office, &office.call("limited", json!({})), "office.limited");
    }
    assert_eq!(office.reached(), ["limited", "limited"]);
    // Other tools and other agents go on.
    office.call("open", json!({})).ok();
    let other = world.agent("other", &["tools.invoke"]);
    office.admin.grants(&office.credential, "other", json!({"scopes": ["limited"]}));
    call(&other, "limited", json!({})).ok();
    assert_eq!(office.reached(), ["limited", "limited", "open", "limited"]);
}

fn the_principals_own_limit_counts_too(world: &World) {
    let office = Office::open(world);
    office.change(json!({"rate_limits": {"office.open": {"requests": 1, "per_seconds": 86_400}}}));
    office.call("open", json!({})).ok();
    assert_limited(&office, &office.call("open", json!({})), "office.open");
    office.call("strict", json!({})).ok();
    assert_eq!(office.reached(), ["open", "strict"]);
}

fn with_the_rate_of_the_grant_used_up_it_is_not_called(world: &World) {
    let office = Office::open(world);
    let other = world.agent("other", &["tools.invoke"]);
    let constraints = json!({"max_invocations_per_hour": 1});
    office.admin.grants(&office.credential, "other", json!({"scopes": ["open"], "constraints": constraints}));
    call(&other, "open", json!({})).ok();
    let refused = call(&other, "open", json!({}));
    refused.refused(429, "GRANT_RATE_LIMITED");
    assert_eq!(told(&office, &refused).1, "rate_limited");
    assert_eq!(office.reached(), ["open"]);
}

fn with_parameters_that_it_does_not_take_it_is_not_called(world: &World) {
    let office = Office::open(world);
    for parameters in [json!({}), json!({"n": "1"}), json!({"n": 1, "other": 2})] {
        let refused = office.call("strict", json!({"parameters": parameters}));
        refused.refused(400, "PARAMETERS_INVALID");
        assert_eq!(told(&office, &refused).1, "error");
    }
    assert!(office.reached().is_empty());
    office.call("strict", json!({})).ok();
    assert_eq!(office.reached(), ["strict"]);
}

fn of_many_calls_at_once_as_many_arrive_as_the_bucket_holds(world: &World) {
    let office = Office::open(world);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..30).map(|_| scope.spawn(|| office.call("limited", json!({})).status())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((count(200), count(429)), (2, 28), "{statuses:?}");
    assert_eq!(office.reached(), ["limited", "limited"]);
    let returned = office.admin.get("/v1/events?type=agent.toolReturned&limit=1000").ok()["events"].clone();
    assert_eq!(returned.as_array().unwrap().len(), 30);
}

fn without_the_scope_nothing_is_fetched(world: &World) {
    let office = Office::open(world);
    let url = format!("{}/fetched", office.upstream.url());
    let fetch = || office.agent.invokes(json!({"tool": "openwop:http.fetch", "parameters": {"url": url}}));
    assert_forbidden(&office, &fetch(), "http.fetch", json!(["http:fetch"]));
    assert!(office.reached().is_empty());
    office.change(json!({"scopes": ["http:fetch"]}));
    fetch().ok();
    assert_eq!(office.reached(), ["fetched"]);
}
