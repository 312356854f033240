//! Thousands of small damages to bodies and queries that work, made by a generator that always makes the same ones.

use serde_json::{Value, json};

use crate::routes::{Things, guarded};
use crate::world::{Reply, World, send};

const BODIES_PER_ROUTE: u64 = 200;
const QUERIES_PER_LIST: u64 = 120;

#[test]
fn damaged_bodies_and_queries_never_hurt_the_gate_on_sqlite() {
    damaged_bodies_and_queries_never_hurt_the_gate(&World::unattended_sqlite(), 1);
}

#[test]
fn damaged_bodies_and_queries_never_hurt_the_gate_on_postgres() {
    damaged_bodies_and_queries_never_hurt_the_gate(&World::unattended_postgres(), 2);
}

fn damaged_bodies_and_queries_never_hurt_the_gate(world: &World, seed: u64) {
    let admin = world.admin();
    let mut random = Random(seed);
    let authorization = format!("Bearer {}", admin.key);
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    for (number, route) in guarded().into_iter().enumerate() {
        let things = Things::made_by(&admin, &format!("somebody-{number}"));
        let Some(body) = route.body(&things) else { continue };
        let path = route.filled(&things);
        for _ in 0..BODIES_PER_ROUTE {
            let bytes = if random.below(2) == 0 { random.damage(body.to_string()) } else { random.rewrite(&body) };
            assert_harmless(&send(world.gate.address(), &route.method, &path, &headers, &bytes), &bytes);
        }
    }
    let lists = ["/api/v1/grants", "/api/v1/invocations", "/api/v1/audit/events", "/api/v1/audit/proof"];
    for path in lists.into_iter().chain(["/api/v1/agents", "/api/v1/tools/granted", "/api/v1/approvals"]) {
        for _ in 0..QUERIES_PER_LIST {
            let query = random.query();
            assert_harmless(&admin.get(&format!("{path}?{query}")), query.as_bytes());
        }
    }
    assert_eq!(send(world.gate.address(), "GET", "/readyz", &[], b"").ok()["status"], "ready");
    let head = admin.get("/api/v1/audit/head").ok();
    assert_eq!(admin.events("").len(), usize::try_from(head["size"].as_u64().unwrap()).unwrap());
}

fn assert_harmless(reply: &Reply, sent: &[u8]) {
    let sent = String::from_utf8_lossy(sent);
    // Nothing listens where a mount would be.
    let is_unreachable = reply.status() == 502 && reply.error()["code"] == "MOUNT_FAILED";
    assert!(reply.status() < 500 || is_unreachable, "{} {sent}: {}", reply.asked, reply.answer.text());
    if reply.status() >= 400 {
        reply.error();
    } else {
        assert!(reply.json().is_object() || reply.json().is_array(), "{} {sent}", reply.asked);
    }
}

/// SplitMix64: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// The text with some of its bytes changed, removed, repeated or foreign.
    fn damage(&mut self, text: String) -> Vec<u8> {
        let mut bytes = text.into_bytes();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(7) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, self.one_of(b"\"\\{}[],:0e-\x00\x1f\x7f\xc3\xff ")),
                3 => bytes.truncate(at.max(1)),
                4 => drop(bytes.drain(at..end)),
                5 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    let foreign = self.one_of(&[
                        "\\u0000",
                        "\\ud83d",
                        "1e999",
                        "-0",
                        "null",
                        "\u{202e}",
                        "999999999999999999999",
                    ]);
                    bytes.splice(at..at, foreign.bytes());
                }
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        bytes
    }

    /// The value with one of its parts replaced, renamed, removed or nested.
    fn rewrite(&mut self, body: &Value) -> Vec<u8> {
        let mut value = body.clone();
        for _ in 0..=self.below(2) {
            self.change(&mut value);
        }
        value.to_string().into_bytes()
    }

    fn change(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) if !members.is_empty() && self.below(4) > 0 => {
                let names: Vec<String> = members.keys().cloned().collect();
                let name = self.one_of(&names);
                match self.below(6) {
                    0 => drop(members.remove(&name)),
                    1 => {
                        let moved = members.remove(&name).unwrap();
                        let other =
                            self.one_of(&["", "a", "id", "__proto__", "scopes", "amount_max", "\u{0}", "constraints"]);
                        members.insert(other.to_owned(), moved);
                    }
                    2 => drop(members.insert(name, self.any())),
                    _ => self.change(members.get_mut(&name).unwrap()),
                }
            }
            Value::Array(items) if !items.is_empty() && self.below(4) > 0 => {
                let at = self.below(items.len());
                match self.below(4) {
                    0 => drop(items.remove(at)),
                    1 => items.push(self.any()),
                    _ => self.change(&mut items[at]),
                }
            }
            other => *other = self.any(),
        }
    }

    fn any(&mut self) -> Value {
        let pool = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(1e-320),
            json!(1.797e308),
            json!(0.1),
            json!(""),
            json!("a"),
            json!("\u{0}"),
            json!("\u{ffff}\u{10ffff}"),
            json!("../../etc/passwd"),
            json!("'; DROP TABLE grants; --"),
            json!("%s%n%x{}${7*7}"),
            json!("9999-12-31T23:59:59.999999999Z"),
            json!("-009999-01-02T00:00:00Z"),
            json!("2099-01-01T00:00:00Z"),
            json!("grant_01K9ZZZZZZ0000000000000000"),
            json!("(a*)*$"),
            json!("a{1,1000}{1,1000}"),
            json!("0.0.0.0/0"),
            json!("::ffff:0:0/95"),
            json!("x".repeat(5000)),
            json!([]),
            json!({}),
            json!([null, [[]], {}]),
            json!({"values": [], "max": 1, "min": 2, "pattern": "a", "required": false}),
            json!({"any": true}),
            json!({"a.b.c": {"max": -0.0}}),
            json!(vec![0; 2000]),
        ];
        self.one_of(&pool)
    }

    fn query(&mut self) -> String {
        let names = [
            "limit", "cursor", "status", "source", "agent_id", "tool", "grant_id", "type", "since", "until",
            "sequence", "size", "first", "second", "x",
        ];
        let values = [
            "",
            "0",
            "1",
            "-1",
            "1000",
            "4294967296",
            "18446744073709551615",
            "%00",
            "%ff",
            "%",
            "%zz",
            "+",
            "a",
            "active",
            "direct",
            "2026-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "grant.created",
            "a=b",
            "&",
            "%F0%9F%98%80",
            "'",
        ];
        let count = 1 + self.below(3);
        let pairs: Vec<String> =
            (0..count).map(|_| format!("{}={}", self.one_of(&names), self.one_of(&values))).collect();
        pairs.join("&")
    }
}
