//! The guarded fetch as a tool: for whoever holds its scope, to nowhere where other calls do not come, and told in the log
//! whether it was made or not.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::events_of;
use crate::world::{Actor, Reply, World, merged, on_both_engines, setup, text};

on_both_engines! {
    an_answer_is_given_back_whatever_its_status,
    without_the_scope_nothing_is_fetched_and_the_log_says_so,
    the_limit_of_one_principal_on_the_fetch_is_no_other_ones,
    a_request_that_changes_the_protocol_or_its_own_frame_is_refused,
}

/// Places that are nobody's business, in many spellings; `PORT` is one that a service listens on.
const BLOCKED: [&str; 40] = [
    "http://127.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.1:PORT/",
    "http://017700000001:PORT/",
    "http://0177.0.0.01:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://①②⑦.⓪.⓪.①:PORT/",
    "http://127。0。0。1:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "HTTP://127.0.0.1:PORT/",
    "https://127.0.0.1:PORT/",
    "http://127.0.0.2:PORT/",
    "http://0.0.0.0:PORT/",
    "http://0:PORT/",
    "http://[::]:PORT/",
    "http://[::1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://168.63.129.16/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://[ff02::1]/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://localhost:PORT/",
    "http://service.localhost:PORT/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://printer.local/",
];

/// What is no address of a public service at all.
const REFUSED: [&str; 7] = [
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_x",
    "http://user:password@127.0.0.1/",
    "http://",
    "//127.0.0.1/",
    "http://256.256.256.256/",
];

/// An agent that holds the scope.
fn reader(world: &World, id: &str) -> Actor {
    let actor = world.agent(id, &["tools.invoke"]);
    world.admin().patch(&format!("/api/v1/agents/{id}"), &json!({"scopes": ["http:fetch"]})).ok();
    actor
}

fn fetch(actor: &Actor, parameters: Value) -> Reply {
    actor.invokes(json!({"tool": "openwop:http.fetch", "parameters": parameters}))
}

/// The payloads of the pair that a call left, after a look at what ties them together.
#[track_caller]
fn pair(world: &World, reply: &Reply) -> (Value, Value) {
    let run = text(&reply.json(), "/invocation_id").to_owned();
    let events = events_of(&world.admin().get(&format!("/v1/events?run={run}")).ok());
    let [called, returned] = &events[..2] else { panic!("a pair: {events:?}") };
    assert_eq!((&called["type"], &returned["type"]), (&json!("agent.toolCalled"), &json!("agent.toolReturned")));
    assert_eq!(returned["causationId"], called["eventId"]);
    let (called, returned) = (called["payload"].clone(), returned["payload"].clone());
    assert_eq!((&called["toolName"], &called["transport"]), (&json!("http.fetch"), &json!("http")));
    assert_eq!(called["callId"], returned["callId"]);
    assert!(!format!("{called}{returned}").contains("://"), "content-free: {called} {returned}");
    (called, returned)
}

fn an_answer_is_given_back_whatever_its_status(world: &World) {
    let upstream = Upstream::start(|request| match request.path() {
        "/text" => Answer::text(200, "plain").header("Set-Cookie", "a=b").header("X-Seen", "1"),
        "/redirect" => Answer::redirect("/text"),
        "/away" => Answer::redirect("http://169.254.169.254/"),
        "/error" => Answer::json(500, json!({"no": true})),
        _ => Answer::json(200, json!({"method": request.method, "body": request.text()})),
    });
    let agent = reader(world, "reader");
    let url = |path: &str| json!({"url": format!("{}{path}", upstream.url())});

    let reply = fetch(&agent, url("/text?q=1"));
    let body = reply.ok();
    assert_eq!((&body["tool_name"], &body["grant_id"]), (&json!("http.fetch"), &Value::Null));
    let result = &body["result"];
    assert_eq!((&result["status"], &result["headers"]["x-seen"]), (&json!(200), &json!("1")), "{result}");
    assert_eq!(result["headers"].get("set-cookie"), None, "cookies are for browsers");
    assert!(result["body"].to_string().contains("plain"), "{result}");
    let (called, returned) = pair(world, &reply);
    assert_eq!((&called["agentId"], &called["principal"]), (&json!("reader"), &json!("reader")));
    assert_eq!(returned["status"], "ok");
    assert!(returned["durationMs"].is_u64());
    let received = &upstream.received()[0];
    assert_eq!((received.target.as_str(), received.header("authorization")), ("/text?q=1", None));

    for (path, status) in [("/redirect", 302), ("/away", 302), ("/error", 500)] {
        let reply = fetch(&agent, url(path));
        let result = reply.ok()["result"].clone();
        assert_eq!(result["status"], status, "{path}: {result}");
        assert_eq!(result["headers"]["location"].is_string(), status == 302);
        assert_eq!(pair(world, &reply).1["status"], "ok", "it was fetched");
    }
    assert_eq!(upstream.count(), 4, "redirects are answered and not followed");

    let more = json!({"method": "POST", "body": "a=b", "headers": {"Content-Type": "text/csv", "X-Own": "mine"}});
    let sent = fetch(&agent, merged(url("/post"), more)).ok();
    assert_eq!(sent["result"]["body"], json!({"method": "POST", "body": "a=b"}));
    let received = upstream.received().pop().unwrap();
    assert_eq!((received.header("content-type"), received.header("x-own")), (Some("text/csv"), Some("mine")));
}

fn without_the_scope_nothing_is_fetched_and_the_log_says_so(world: &World) {
    let upstream = Upstream::start(|_| Answer::json(200, json!({})));
    let agent = world.agent("reader", &["tools.invoke"]);
    let url = json!({"url": upstream.url()});
    let reply = fetch(&agent, url.clone());
    let error = reply.refused(403, "FORBIDDEN");
    let details = json!({"scope": "tool", "toolName": "http.fetch", "requiredScopes": ["http:fetch"]});
    assert_eq!(error["details"], details);
    assert_eq!(error["stage"], "authorize");
    let (_, returned) = pair(world, &reply);
    assert_eq!((&returned["status"], returned.get("durationMs")), (&json!("forbidden"), None));
    assert_eq!(upstream.connections(), 0);
    assert_eq!(agent.get("/v1/tools").ok(), json!([]));

    let allowed = reader(world, "another");
    fetch(&allowed, url).ok();
    // It needs no grant and has no versions: whoever names one means something else.
    let versioned = json!({"tool": "openwop:http.fetch", "version": "1", "parameters": {"url": upstream.url()}});
    allowed.invokes(versioned).refused(404, "TOOL_NOT_FOUND");
    for name in ["http.fetch", "connector:http.fetch", "openwop:http.other"] {
        allowed.invokes(json!({"tool": name, "parameters": {"url": upstream.url()}})).refused(404, "TOOL_NOT_FOUND");
    }
    assert_eq!(upstream.count(), 1);
}

fn the_limit_of_one_principal_on_the_fetch_is_no_other_ones(world: &World) {
    let upstream = Upstream::start(|_| Answer::json(200, json!({})));
    let (limited, other) = (reader(world, "reader"), reader(world, "other"));
    let limits = json!({"rate_limits": {"http.fetch": {"requests": 2, "per_seconds": 86_400}}});
    world.admin().patch("/api/v1/agents/reader", &limits).ok();
    let url = json!({"url": upstream.url()});
    for _ in 0..2 {
        fetch(&limited, url.clone()).ok();
    }
    let reply = fetch(&limited, url.clone());
    let error = reply.refused(429, "TOOL_RATE_LIMITED");
    assert_eq!(error["details"], json!({"scope": "tool", "toolName": "http.fetch"}));
    let seconds: u64 = reply.answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds));
    assert_eq!(error["retry_after_seconds"], seconds);
    let (_, returned) = pair(world, &reply);
    assert_eq!((&returned["status"], returned.get("durationMs")), (&json!("rate_limited"), None));
    fetch(&other, url).ok();
    assert_eq!(upstream.count(), 3);
}

fn a_request_that_changes_the_protocol_or_its_own_frame_is_refused(world: &World) {
    let upstream = Upstream::start(|_| Answer::json(200, json!({})));
    let agent = reader(world, "reader");
    for headers in [
        json!({"Connection": "upgrade"}),
        json!({"connection": "keep-alive, Upgrade"}),
        json!({"Upgrade": "websocket"}),
        json!({"HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA"}),
        json!({"Host": "metadata.google.internal"}),
        json!({"Content-Length": "0"}),
        json!({"Transfer-Encoding": "chunked"}),
        json!({"X-A": "1\r\nHost: other"}),
    ] {
        let reply = fetch(&agent, json!({"url": upstream.url(), "headers": headers}));
        reply.refused(400, "PARAMETERS_INVALID");
        let (_, returned) = pair(world, &reply);
        assert_eq!((&returned["status"], returned.get("durationMs")), (&json!("error"), None), "{headers}");
        assert_eq!(returned["error"]["code"], "PARAMETERS_INVALID");
    }
    for parameters in
        [json!({"url": 1}), json!({"method": "TRACE"}), json!({"method": "get"}), json!({"unheard_of": 1})]
    {
        let reply = fetch(&agent, merged(json!({"url": upstream.url()}), parameters));
        reply.refused(400, "PARAMETERS_INVALID");
    }
    assert_eq!(upstream.connections(), 0);
    fetch(&agent, json!({"url": upstream.url()})).ok();
}

#[test]
fn nothing_private_is_fetched_in_whatever_spelling_and_every_attempt_is_told() {
    let world = World::of(&setup(), None);
    let upstream = Upstream::start(|_| Answer::json(200, json!({"reached": true})));
    let agent = reader(&world, "reader");
    for (spelling, (status, code)) in BLOCKED
        .iter()
        .map(|url| (url, (502, "PROXY_ERROR")))
        .chain(REFUSED.iter().map(|url| (url, (400, "PARAMETERS_INVALID"))))
    {
        let url = spelling.replace("PORT", &upstream.address().port().to_string());
        let reply = fetch(&agent, json!({"url": url}));
        let body = reply.expect(status);
        assert_eq!(body["error"]["code"], code, "{spelling}: {body}");
        assert_eq!(body["error"].get("blocked").is_some(), status == 502, "{spelling}: {body}");
        let (_, returned) = pair(&world, &reply);
        assert_eq!((&returned["status"], returned.get("durationMs")), (&json!("error"), None), "{spelling}");
        assert_eq!(returned["error"]["code"], code, "{spelling}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn an_answer_without_end_is_cut() {
    let world = World::sqlite();
    let upstream = Upstream::start(|request| match request.path() {
        "/endless" => Answer::endless(),
        "/fits" => Answer::text(200, &"x".repeat(1024 * 1024)),
        _ => Answer::text(200, &"x".repeat(1024 * 1024 + 1)),
    });
    let agent = reader(&world, "reader");
    for (path, cut) in [("/fits", false), ("/longer", true), ("/endless", true)] {
        let body = fetch(&agent, json!({"url": format!("{}{path}", upstream.url())})).ok();
        assert_eq!(body.get("truncated"), cut.then_some(&json!(true)), "{path}");
        let length = body["result"]["body"].to_string().matches('x').count();
        assert!((1024 * 1024..1024 * 1024 + 100).contains(&length), "{path}: {length}");
    }
}

#[test]
fn two_agents_never_share_a_connection() {
    let world = World::sqlite();
    let upstream = Upstream::start(|_| Answer::json(200, json!({})));
    let elsewhere = world.tenant("elsewhere");
    let foreign = elsewhere.registers("one", &["tools.invoke"]);
    elsewhere.patch("/api/v1/agents/one", &json!({"scopes": ["http:fetch"]})).ok();
    let agents = [reader(&world, "one"), reader(&world, "two"), foreign];
    for (number, agent) in agents.iter().enumerate() {
        for _ in 0..3 {
            fetch(agent, json!({"url": upstream.url()})).ok();
            assert_eq!(upstream.connections(), number + 1, "its own again, and nobody else's");
        }
    }
    assert_eq!(upstream.count(), 9);
}
