//! Bodies that are no JSON, no object, not what is expected, or too large.

use serde_json::{Value, json};

use crate::routes::{Route, Things, guarded};
use crate::world::{Actor, Reply, World, merged, on_both_engines, send, stripe};

on_both_engines! {
    unattended:
    what_is_not_json_is_refused_on_every_route,
    unknown_fields_are_named_on_every_route,
    a_field_of_the_wrong_type_is_refused_by_name,
    absurd_numbers_are_refused_or_kept_exactly,
    a_body_must_be_declared_as_json,
    a_body_has_a_limit,
    routes_without_fields_take_none,
}

/// Routes that take a body, each with one that works.
fn with_bodies(things: &Things) -> Vec<(Route, String, Value)> {
    guarded()
        .into_iter()
        .filter_map(|route| route.body(things).map(|body| (route.clone(), route.filled(things), body)))
        .collect()
}

fn raw(world: &World, method: &str, path: &str, body: &[u8]) -> Reply {
    let authorization = format!("Bearer {}", world.gate.token());
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    send(world.gate.address(), method, path, &headers, body)
}

fn assert_healthy(world: &World) {
    let ready = send(world.gate.address(), "GET", "/readyz", &[], b"");
    assert_eq!(ready.ok()["status"], "ready");
}

fn what_is_not_json_is_refused_on_every_route(world: &World) {
    let deep = "[".repeat(100) + &"]".repeat(100);
    let very_deep = "{\"a\":".repeat(100_000);
    let malformed: [&[u8]; 24] = [
        b"{",
        b"{}{}",
        b"{} x",
        b"nul",
        b"{'a': 1}",
        b"{\"a\":}",
        b"{\"a\" 1}",
        b"{\"a\": 1,}",
        b"{\"a\": 01}",
        b"{\"a\": .5}",
        b"{\"a\": +1}",
        b"{\"a\": NaN}",
        b"{\"a\": Infinity}",
        b"{\"a\": 1e400}",
        b"{\"a\": 1180591620717411303424}",
        b"{\"a\": \"\\ud800\"}",
        b"{\"a\": \"\\x41\"}",
        b"{\"a\": \"\xff\xfe\"}",
        b"\xef\xbb\xbf{}",
        b"{\"a\": \"line\nbreak\"}",
        b"{\"a\": 1, \"a\": 1}",
        b"{\"a\": {\"b\": 1, \"\\u0062\": 2}}",
        deep.as_bytes(),
        very_deep.as_bytes(),
    ];
    let things = Things::made_by(&world.admin(), "somebody");
    for (route, path, _) in with_bodies(&things) {
        for body in malformed {
            raw(world, &route.method, &path, body).refused(400, "MALFORMED_JSON");
        }
        for body in ["[]", "1", "\"text\"", "true", "null", "[{}]"] {
            let error = raw(world, &route.method, &path, body.as_bytes()).error();
            assert_eq!(error["code"], "INVALID_FIELD", "{path} {body}: {error}");
        }
        if !matches!(path.rsplit('/').next(), Some("check" | "claim" | "keys" | "suspend")) && route.method != "DELETE"
        {
            raw(world, &route.method, &path, b"").refused(400, "MALFORMED_JSON");
        }
    }
    assert_healthy(world);
}

fn unknown_fields_are_named_on_every_route(world: &World) {
    let things = Things::made_by(&world.admin(), "somebody");
    let admin = world.admin();
    let before = admin.events("").len();
    for (route, path, body) in with_bodies(&things) {
        // A definition is read by the rules of definitions, which have one code for all that is wrong in them.
        let code = if route.path.starts_with("/api/v1/services") { "INVALID_FIELD" } else { "UNKNOWN_FIELD" };
        let with_unknown = merged(body.clone(), json!({"unheard_of": 1}));
        let error = admin.ask(&route.method, &path, Some(&with_unknown)).refused(400, code);
        assert_eq!(error["path"], "unheard_of");
        assert!(error["message"].as_str().unwrap().contains("`unheard_of`"), "{error}");
        let known = body.as_object().unwrap().keys().next().unwrap();
        assert!(error["message"].as_str().unwrap().contains(known.as_str()), "it says what is known: {error}");
    }
    assert_eq!(admin.events("").len(), before, "nothing was done on the way");
}

fn a_field_of_the_wrong_type_is_refused_by_name(world: &World) {
    let admin = world.admin();
    let things = Things::made_by(&admin, "somebody");
    let pool = [
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("\u{0}"),
        json!("x".repeat(1000)),
        json!([]),
        json!([null]),
        json!([[]]),
        json!({}),
        json!({"unheard_of": 1}),
    ];
    for (route, path, body) in with_bodies(&things) {
        // Ended once, it is ended.
        if route.method == "DELETE" {
            continue;
        }
        for field in body.as_object().unwrap().keys() {
            for value in &pool {
                let changed = merged(body.clone(), json!({field.as_str(): value}));
                let reply = admin.ask_with(&route.method, &path, route.headers(), Some(&changed));
                if reply.status() < 300 {
                    continue;
                }
                let error = reply.error();
                // Nothing listens where a mount would be, and of some things only so many are kept.
                let expected = matches!(reply.status(), 400 | 403 | 404 | 409)
                    || error["code"] == "MOUNT_FAILED"
                    || error["code"] == "WORK_LIMIT_REACHED";
                assert!(expected, "{}: {error}", reply.asked);
                if error["code"] == "INVALID_FIELD" && error["path"].is_string() {
                    let named = error["path"].as_str().unwrap();
                    let others = ["material", "name", "target_agent_id"];
                    let rooted = named.starts_with(field.as_str()) || others.contains(&named);
                    assert!(rooted, "{}: {named} for {field}", reply.asked);
                }
            }
        }
    }
    let nothing = json!({"name": null});
    assert_eq!(admin.post("/api/v1/vaults", &nothing).refused(400, "INVALID_FIELD")["path"], "name");
    let missing = admin.post("/api/v1/vaults", &json!({})).refused(400, "INVALID_FIELD");
    assert_eq!((&missing["path"], &missing["message"]), (&json!("name"), &json!("`name` is missing")));
    assert_healthy(world);
}

fn absurd_numbers_are_refused_or_kept_exactly(world: &World) {
    let credential = world.admin().credential();
    let with = |member: &str| {
        let body = format!("{{\"credential_id\": \"{credential}\", \"agent_id\": \"a\", {member}}}");
        raw(world, "POST", "/api/v1/grants", body.as_bytes())
    };
    for number in [
        "-0",
        "-1",
        "0.5",
        "1e400",
        "-1e400",
        "4294967296",
        "1180591620717411303424",
        "NaN",
        "-Infinity",
        "0x10",
        "1_0",
    ] {
        with(&format!("\"delegation_depth\": {number}")).error();
        with(&format!("\"constraints\": {{\"max_invocations_per_hour\": {number}}}")).error();
    }
    // Bounds on parameters may be any number that can be held, and stay what they are.
    for (sent, kept) in [
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("9007199254740993", json!(9_007_199_254_740_993_u64)),
        ("1e-320", json!(1e-320)),
        ("0.1", json!(0.1)),
    ] {
        let made = with(&format!("\"constraints\": {{\"amount_max\": {sent}}}")).created();
        assert_eq!(made["constraints"]["allowed_parameters"]["amount_max"], kept);
        assert_eq!(world.admin().grant(&made)["constraints"], made["constraints"], "{sent}");
    }
    assert_healthy(world);
}

fn a_body_must_be_declared_as_json(world: &World) {
    let things = Things::made_by(&world.admin(), "somebody");
    let authorization = format!("Bearer {}", world.gate.token());
    let key = ("Authorization", authorization.as_str());
    for (route, path, body) in with_bodies(&things) {
        let text = body.to_string();
        for kind in ["text/plain", "application/jsonp", "application/x-www-form-urlencoded", "", "json"] {
            let reply =
                send(world.gate.address(), &route.method, &path, &[key, ("Content-Type", kind)], text.as_bytes());
            reply.refused(415, "UNSUPPORTED_MEDIA_TYPE");
        }
        let reply = send(world.gate.address(), &route.method, &path, &[key], text.as_bytes());
        reply.refused(415, "UNSUPPORTED_MEDIA_TYPE");
    }
    for kind in ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json ;a=b"] {
        let headers = [key, ("Content-Type", kind)];
        send(world.gate.address(), "POST", "/api/v1/vaults", &headers, b"{\"name\": \"a\"}").created();
    }
    // The SDK declares JSON even where it sends nothing.
    let headers = [key, ("Content-Type", "application/json")];
    send(world.gate.address(), "GET", "/api/v1/vaults", &headers, b"").ok();
    let grant = format!("/api/v1/grants/{}", things.grant);
    send(world.gate.address(), "DELETE", &grant, &headers, b"").ok();
}

fn a_body_has_a_limit(world: &World) {
    const LIMIT: usize = 1024 * 1024;
    let admin = world.admin();
    let path = format!("/api/v1/vaults/{}/credentials", admin.vault());
    let of_length = |length: usize| {
        let frame = merged(stripe(), json!({"metadata": {"note": ""}})).to_string();
        frame.replace("\"note\":\"\"", &format!("\"note\":\"{}\"", "n".repeat(length - frame.len())))
    };
    raw(world, "POST", &path, of_length(LIMIT).as_bytes()).created();
    let error = raw(world, "POST", &path, of_length(LIMIT + 1).as_bytes()).refused(413, "BODY_TOO_LARGE");
    assert!(error["message"].as_str().unwrap().contains("1048576"), "{error}");
    let optional = "/api/v1/agents/admin/keys";
    raw(world, "POST", optional, &vec![b' '; LIMIT + 1]).refused(413, "BODY_TOO_LARGE");
    assert_healthy(world);
}

fn routes_without_fields_take_none(world: &World) {
    let admin = world.admin();
    let things = Things::made_by(&admin, "somebody");
    let grant = format!("/api/v1/grants/{}", things.grant);
    admin.ask("PATCH", &format!("{grant}/suspend"), None).ok();
    for (method, path) in without_fields(&things) {
        let reply = ask_with_field(&admin, method, &path);
        assert_eq!(reply.refused(400, "UNKNOWN_FIELD")["path"], "force", "{path}");
    }
    assert_eq!(admin.get(&grant).ok()["status"], "suspended", "what was refused was not done");
    admin.ask("PATCH", &format!("{grant}/resume"), Some(&json!({}))).ok();
}

fn without_fields(things: &Things) -> Vec<(&'static str, String)> {
    vec![
        ("PATCH", format!("/api/v1/grants/{}/resume", things.grant)),
        ("POST", format!("/api/v1/credentials/{}/verify", things.credential)),
        ("POST", "/api/v1/master-keys/rekey".to_owned()),
        ("DELETE", format!("/api/v1/agents/{}", things.agent)),
        ("DELETE", format!("/api/v1/keys/{}", things.key)),
        ("DELETE", format!("/api/v1/services/{}", things.service)),
        ("DELETE", format!("/api/v1/standing-approvals/{}", things.standing)),
        ("DELETE", format!("/api/v1/vaults/{}", things.vault)),
    ]
}

fn ask_with_field(actor: &Actor, method: &str, path: &str) -> Reply {
    actor.ask(method, path, Some(&json!({"force": true})))
}
