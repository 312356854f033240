//! Paths that are none, methods that a path does not take, and queries with unknown, repeated or absurd parameters.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_testkit::http::send_raw;

use crate::routes::{Things, guarded};
use crate::world::{World, on_both_engines, send};

on_both_engines! {
    unattended:
    unknown_paths_are_not_found,
    a_path_takes_only_its_methods,
    unknown_parameters_are_refused_on_every_route,
    limits_and_cursors_are_checked,
    filters_of_the_log_are_checked,
    proofs_of_what_is_not_there_are_refused,
}

fn unknown_paths_are_not_found(world: &World) {
    let admin = world.admin();
    for path in [
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v2/vaults",
        "/api/v1/vaults/",
        "//api/v1/vaults",
        "/api/v1//vaults",
        "/API/V1/VAULTS",
        "/api/v1/vaults/a/b/c/d",
        "/api/v1/vaults/../agents",
        "/api/v1%2fvaults",
        "/%",
        "/%00",
        "/%ff",
        "/../../etc/passwd",
        "/api/v1/tools/invoke/twice",
        "/favicon.ico",
    ] {
        admin.get(path).refused(404, "ROUTE_NOT_FOUND");
        send(world.gate.address(), "POST", path, &[], b"").refused(404, "ROUTE_NOT_FOUND");
    }
}

fn a_path_takes_only_its_methods(world: &World) {
    let admin = world.admin();
    let things = Things::made_by(&admin, "somebody");
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for route in guarded() {
        methods.entry(route.filled(&things)).or_default().insert(route.method);
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        methods.entry(path.to_owned()).or_default().insert("GET".to_owned());
    }
    let before = admin.events("").len();
    for (path, known) in methods {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"] {
            if !known.contains(method) {
                let reply = admin.ask(method, &path, None);
                reply.refused(405, "METHOD_NOT_ALLOWED");
                let allowed = reply.answer.header("allow").unwrap_or_default();
                assert!(known.iter().all(|method| allowed.contains(method.as_str())), "{method} {path}: {allowed}");
            }
        }
    }
    assert_eq!(admin.events("").len(), before);
    let request =
        format!("HEAD /api/v1/whoami HTTP/1.1\r\nHost: a\r\nX-API-Key: {}\r\nConnection: close\r\n\r\n", admin.key);
    let head = String::from_utf8(send_raw(world.gate.address(), request.as_bytes()).unwrap()).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "HEAD is GET without the body: {head}");
}

fn unknown_parameters_are_refused_on_every_route(world: &World) {
    let admin = world.admin();
    let things = Things::made_by(&admin, "somebody");
    let before = admin.events("").len();
    for route in guarded() {
        let path = route.filled(&things);
        let joint = if path.contains('?') { '&' } else { '?' };
        let reply = admin.ask(&route.method, &format!("{path}{joint}unheard_of=1"), route.body(&things).as_ref());
        let error = reply.refused(400, "UNKNOWN_FIELD");
        assert_eq!(error["path"], "unheard_of", "{}", reply.asked);
    }
    assert_eq!(admin.events("").len(), before, "nothing was done on the way");
    admin.get("/api/v1/whoami?").ok();
}

fn limits_and_cursors_are_checked(world: &World) {
    let admin = world.admin();
    let things = Things::made_by(&admin, "somebody");
    let lists = [
        "/api/v1/agents".to_owned(),
        "/api/v1/approvals".to_owned(),
        "/api/v1/audit/events".to_owned(),
        "/api/v1/grants".to_owned(),
        "/api/v1/intents/intent_1/invocations".to_owned(),
        "/api/v1/invocations".to_owned(),
        "/api/v1/standing-approvals".to_owned(),
        "/api/v1/tasks/task_1/invocations".to_owned(),
        "/api/v1/tenants".to_owned(),
        "/api/v1/vaults".to_owned(),
        format!("/api/v1/grants/{}/invocations", things.grant),
        format!("/api/v1/vaults/{}/credentials", things.vault),
    ];
    for path in lists {
        for limit in ["0", "1001", "-1", "1.5", "1e2", "", "x", "%00", "99999999999999999999", "0x10", "١", "+5%20"] {
            let error = admin.get(&format!("{path}?limit={limit}")).refused(400, "INVALID_FIELD");
            assert_eq!(error["path"], "limit", "{path}?limit={limit}");
        }
        for limit in [1, 1000] {
            admin.get(&format!("{path}?limit={limit}")).ok();
        }
        for cursor in ["", "%00", "a%20b", "..%2f", "%ff", &"x".repeat(129), "a'%20OR%20'1'='1"] {
            let error = admin.get(&format!("{path}?cursor={cursor}")).refused(400, "INVALID_CURSOR");
            assert_eq!(error["path"], "cursor", "{path}?cursor={cursor}");
        }
        let twice = admin.get(&format!("{path}?limit=1&limit=2")).error();
        assert_eq!(twice["code"], "INVALID_FIELD", "{path}: {twice}");
        let last = admin.get(&format!("{path}?cursor=9223372036854775807")).status();
        assert_eq!(last, 200);
    }
    for cursor in ["x", "-1", "1.5", "18446744073709551616"] {
        admin.get(&format!("/api/v1/audit/events?cursor={cursor}")).refused(400, "INVALID_CURSOR");
    }
    for cursor in ["9223372036854775808", "18446744073709551615"] {
        assert_eq!(admin.get(&format!("/api/v1/audit/events?cursor={cursor}")).ok()["events"], serde_json::json!([]));
    }
}

fn filters_of_the_log_are_checked(world: &World) {
    let admin = world.admin();
    for (query, path) in [
        ("type=%00", "type"),
        ("type=a%20b", "type"),
        ("type=", "type"),
        ("actor=%00", "actor"),
        ("agent_id=a/b", "agent_id"),
        ("intent_id=%20", "intent_id"),
        ("task_id=%F0%9F%94%91", "task_id"),
        ("since=yesterday", "since"),
        ("since=1770544800", "since"),
        ("until=2026-02-30T00:00:00Z", "until"),
        ("until=%00", "until"),
    ] {
        let error = admin.get(&format!("/api/v1/audit/events?{query}")).refused(400, "INVALID_FIELD");
        assert_eq!(error["path"], path, "{query}");
    }
    for query in ["type=nothing.happened", "since=9999-01-01T00:00:00Z", "until=1970-01-01T00:00:00Z"] {
        admin.get(&format!("/api/v1/audit/events?{query}")).ok();
    }
}

fn proofs_of_what_is_not_there_are_refused(world: &World) {
    let admin = world.admin();
    let size = admin.get("/api/v1/audit/head").ok()["size"].as_u64().unwrap();
    assert!(size >= 3);
    for query in [
        String::new(),
        "sequence=x".to_owned(),
        "sequence=-1".to_owned(),
        "sequence=1e0".to_owned(),
        "sequence=18446744073709551616".to_owned(),
        "sequence=18446744073709551615".to_owned(),
        "sequence=9223372036854775807".to_owned(),
        format!("sequence={size}"),
        format!("sequence=0&size={}", size + 1),
        "sequence=0&size=0".to_owned(),
        "sequence=2&size=2".to_owned(),
        "sequence=0&size=18446744073709551615".to_owned(),
        "size=1".to_owned(),
        "second=1".to_owned(),
        "sequence=0&first=0".to_owned(),
        "first=1&size=1".to_owned(),
        format!("first={}", size + 1),
        format!("first=1&second={}", size + 1),
        "first=2&second=1".to_owned(),
        "first=18446744073709551615".to_owned(),
    ] {
        let reply = admin.get(&format!("/api/v1/audit/proof?{query}"));
        reply.refused(400, "INVALID_FIELD");
    }
    for query in ["sequence=0", "sequence=1&size=2", "first=0", "first=1", "first=1&second=1", "first=0&second=0"] {
        admin.get(&format!("/api/v1/audit/proof?{query}")).ok();
    }
}
