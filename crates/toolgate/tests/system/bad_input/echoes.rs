//! A secret that was put into the wrong place by mistake is refused without being repeated.

use serde_json::{Value, json};

use crate::routes::{Things, guarded};
use crate::world::{World, on_both_engines, send};

on_both_engines! {
    unattended:
    a_secret_in_any_place_of_any_body_is_not_repeated,
    a_secret_in_the_query_or_the_headers_is_not_repeated,
}

/// Spelt so that they are found wherever they come back. What is spelt like a name may be repeated where a name is
/// wanted, so these are not.
const SECRETS: [&str; 3] = ["sk live 4242 zebra!", "sk/live+4242zebra==", "zebra\n4242"];

fn a_secret_in_any_place_of_any_body_is_not_repeated(world: &World) {
    let admin = world.admin();
    for (number, route) in guarded().into_iter().enumerate() {
        let things = Things::made_by(&admin, &format!("somebody-{number}"));
        let Some(body) = route.body(&things) else { continue };
        for secret in SECRETS {
            for wrong in [json!(secret), json!([secret]), json!({"value": secret}), json!([[secret]])] {
                for variant in replacements(&body, &wrong) {
                    let reply = admin.ask(&route.method, &route.filled(&things), Some(&variant));
                    if reply.status() >= 400 {
                        reply.error();
                        let answer = reply.answer.text();
                        assert!(!answer.contains("zebra"), "{} {variant} is answered {answer}", route.path);
                    }
                }
            }
        }
        let cut_off = format!("{{\"material\": {{\"api_key\": \"{}\"", SECRETS[1]);
        let doubled = format!("{{\"label\": \"{}\", \"label\": \"b\"}}", SECRETS[1]);
        let unescaped = format!("{{\"label\": \"{}\"}}", SECRETS[2]);
        let number = format!("{{\"label\": {}}}", SECRETS[1]);
        for text in [cut_off, doubled, unescaped, number] {
            let authorization = format!("Bearer {}", admin.key);
            let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
            let reply = send(world.gate.address(), &route.method, &route.filled(&things), &headers, text.as_bytes());
            assert!(!reply.answer.text().contains("zebra"), "{}", reply.answer.text());
        }
    }
}

/// The body once for each of its values, with that value replaced.
fn replacements(body: &Value, wrong: &Value) -> Vec<Value> {
    let mut pointers = Vec::new();
    collect(body, String::new(), &mut pointers);
    let replaced = pointers.iter().map(|pointer| {
        let mut variant = body.clone();
        *variant.pointer_mut(pointer).unwrap() = wrong.clone();
        variant
    });
    replaced.collect()
}

fn collect(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(position, value)| (position.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (name, member) in members {
        collect(member, format!("{pointer}/{name}"), pointers);
    }
    if !pointer.is_empty() {
        pointers.push(pointer);
    }
}

fn a_secret_in_the_query_or_the_headers_is_not_repeated(world: &World) {
    let admin = world.admin();
    let lists = [
        "/api/v1/grants",
        "/api/v1/invocations",
        "/api/v1/audit/events",
        "/api/v1/audit/proof",
        "/api/v1/vaults",
        "/api/v1/whoami",
        "/api/v1/tools/granted",
        "/api/v1/tools/why",
    ];
    let names = [
        "limit",
        "cursor",
        "status",
        "source",
        "service",
        "tool",
        "version",
        "parameters",
        "grant_id",
        "intent_id",
        "idempotency_key",
        "agent_id",
        "credential_id",
        "source_grant_id",
        "type",
        "actor",
        "since",
        "until",
        "sequence",
        "size",
        "first",
        "token",
        "api_key",
    ];
    for path in lists {
        for name in names {
            let reply = admin.get(&format!("{path}?{name}=sk%20live%20zebra!"));
            assert!(!reply.answer.text().contains("zebra"), "{}: {}", reply.asked, reply.answer.text());
        }
    }
    let whoami = |headers: &[(&str, &str)]| send(world.gate.address(), "GET", "/api/v1/whoami", headers, b"");
    for headers in [
        [("Authorization", "zebra")],
        [("Authorization", "Basic zebra")],
        [("Authorization", "Bearer zebra")],
        [("X-API-Key", "zebra zebra")],
        [("X-API-Key", "tgk_zebra")],
    ] {
        let reply = whoami(&headers);
        reply.error();
        assert!(!reply.answer.text().contains("zebra"), "{}", reply.answer.text());
    }
    let reply = admin.ask_with("GET", "/api/v1/whoami", &[("X-Agent-ID", "a zebra")], None);
    assert!(!reply.answer.text().contains("zebra"), "{}", reply.answer.text());
}
