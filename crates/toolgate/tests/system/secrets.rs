//! A secret lives in one call: put in through every door, it is found nowhere afterwards. Not in an answer, not in the log
//! of the gate at its most talkative, not in a file, a table, a metric or an export, in no common encoding.

mod calls;
pub mod needles;
pub mod scan;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::needles::Needles;
use self::scan::{assert_clean_files, assert_found_nowhere};
use crate::world::{Actor, Reply, World, block_on, id, merged, send, setup, text};

#[test]
fn no_secret_is_found_anywhere_on_sqlite() {
    let world = World::of(&setup().reaching_loopback().environment("TOOLGATE_LOG", "trace"), None);
    no_secret_is_found_anywhere(world);
}

#[test]
fn no_secret_is_found_anywhere_on_postgres() {
    let database = block_on(toolgate_testkit::postgres::TestDatabase::create());
    let setup = setup().reaching_loopback().environment("TOOLGATE_LOG", "trace").database(database.url());
    no_secret_is_found_anywhere(World::of(&setup, Some(database)));
}

#[test]
fn a_generated_token_is_said_once_and_kept_nowhere() {
    let world = World::of(&setup().without_token().environment("TOOLGATE_LOG", "trace"), None);
    let token = world.gate.token().to_owned();
    world.admin().get("/api/v1/whoami").ok();
    let gate_setup = world.gate.setup().clone();
    let (ended, _) = world.stop();
    assert!(!ended.stdout.contains(&token));
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(&token)).collect();
    assert!(
        lines.iter().all(|line| !line.starts_with('{')),
        "the log does not hold it, only the words to the operator: {lines:?}"
    );
    let needles = Needles::of([("token", token.as_str())]);
    assert_clean_files(gate_setup.home(), &[&needles]);
    let again = gate_setup.start().stop();
    assert!(!again.stderr.contains(&token), "a second start does not say it again");
}

/// Everything that was put in, by where it was put, and everything that came back.
#[derive(Default)]
struct Story {
    secrets: BTreeMap<String, String>,
    answers: Vec<Reply>,
}

impl Story {
    /// A secret that no other door has seen, with letters that every encoding changes.
    fn secret(&mut self, door: &str) -> String {
        let number = self.secrets.len();
        let secret = format!("Zq{number:02}\"v/k+8\\~é{}%&=W?x", door.len() * 7919 + number * 104_729);
        self.secrets.insert(door.to_owned(), secret.clone());
        secret
    }

    /// A secret that could also be a name, an id or a key.
    fn plain_secret(&mut self, door: &str) -> String {
        let number = self.secrets.len();
        let secret = format!("Zq{number:02}PlainSecretOf{}x{}", door.len() * 7919, number * 104_729);
        self.secrets.insert(door.to_owned(), secret.clone());
        secret
    }

    fn hears(&mut self, reply: Reply) -> Reply {
        self.answers.push(reply.clone());
        reply
    }
}

fn no_secret_is_found_anywhere(world: World) {
    let mut story = Story::default();
    let admin = world.admin();
    let credential = put_in_at_the_front(&mut story, &admin);
    calls::use_in_calls(&mut story, &world);
    put_in_at_the_wrong_places(&mut story, &world, &credential);
    let keys = use_keys(&mut story, &world);
    read_everything(&mut story, &admin, &credential);

    let needles = Needles::of(story.secrets.iter().map(|(door, secret)| (door.as_str(), secret.as_str())));
    let keys = Needles::of(keys.iter().map(|key| ("a key", key.as_str())));
    assert_found_nowhere(world, &story.answers, &[&needles, &keys]);
}

/// Material and metadata, on creation and on rotation.
fn put_in_at_the_front(story: &mut Story, admin: &Actor) -> String {
    let vault = admin.vault();
    let path = format!("/api/v1/vaults/{vault}/credentials");
    let in_material = story.secret("material");
    let body = json!({"service": "s", "label": "l", "material": {"api_key": in_material}, "scopes_available": ["a"]});
    let credential = id(&story.hears(admin.post(&path, &body)).created());
    let (top, nested) = (story.secret("metadata"), story.secret("metadata.auth"));
    let body = json!({
        "vault_id": vault, "service": "s", "label": "l", "auth_type": "custom",
        "metadata": {"base_url": "https://a.example", "password": top, "auth": {"client_secret": nested, "location": "header"}}
    });
    let second = id(&story.hears(admin.post("/api/v1/credentials", &body)).created());
    let long = story.secret("a long one").repeat(500);
    let body = json!({"service": "s", "label": "l", "auth_type": "connection_string", "material": {"connection_string": long}});
    story.hears(admin.post(&path, &body)).created();
    for (credential, name) in [(&credential, "api_key"), (&second, "token")] {
        let rotate = format!("/api/v1/credentials/{credential}/rotate");
        let fresh = story.secret(&format!("rotation of {name}"));
        story.hears(admin.patch(&rotate, &json!({"material": {name: fresh}}))).ok();
        let fresh = story.secret(&format!("rotation of {name} in metadata"));
        story.hears(admin.patch(&rotate, &json!({"metadata": {name: fresh, "note": "rotated"}}))).ok();
    }
    story.hears(admin.delete(&format!("/api/v1/credentials/{second}"))).ok();
    credential
}

/// Where a secret is put by mistake, and the fields that then hold it.
type Place = (&'static str, fn(&str) -> Value);

/// The same by mistake: other fields, other types, broken JSON, queries, headers, as a token.
fn put_in_at_the_wrong_places(story: &mut Story, world: &World, credential: &str) {
    let admin = world.admin();
    let path = format!("/api/v1/vaults/{}/credentials", admin.vault());
    let base = json!({"service": "s", "label": "l"});
    let places: [Place; 16] = [
        ("material as a text", |secret| json!({"material": secret})),
        ("material as a list", |secret| json!({"material": [secret]})),
        ("material too deep", |secret| json!({"material": {"api_key": {"value": secret}}})),
        ("material beside a label", |secret| json!({"material": {"api_key": secret}, "label": secret})),
        (
            "material beside metadata",
            |secret| json!({"material": {"api_key": secret}, "metadata": {"a": [{"b": secret}]}}),
        ),
        ("material of another type", |secret| json!({"material": {"password": secret}})),
        ("material twice", |secret| json!({"material": {"api_key": secret}, "metadata": {"api_key": secret}})),
        ("metadata as a text", |secret| json!({"metadata": secret})),
        ("deep in metadata", |secret| json!({"metadata": {"oauth": {"client_secret": secret}}})),
        ("a list in metadata", |secret| json!({"metadata": {"api_key": [secret]}})),
        ("auth type", |secret| json!({"auth_type": secret})),
        ("scopes", |secret| json!({"scopes_available": secret})),
        ("a scope", |secret| json!({"scopes_available": [secret]})),
        ("service", |secret| json!({"service": secret})),
        ("expiry", |secret| json!({"expires_at": secret})),
        ("vault", |secret| json!({"vault_id": secret})),
    ];
    for (place, body) in places {
        let secret = story.secret(place);
        story.hears(admin.post(&path, &merged(base.clone(), body(&secret)))).error();
        let rotation = body(&secret);
        let rotate = format!("/api/v1/credentials/{credential}/rotate");
        if place != "metadata as a text" && rotation.get("label").is_none() {
            let reply = story.hears(admin.patch(&rotate, &rotation));
            assert!(reply.status() < 500);
        }
    }
    let grant = json!({"credential_id": credential, "agent_id": "a", "scopes": ["a"]});
    let places: [Place; 8] = [
        ("constraints", |secret| json!({"constraints": secret})),
        ("a network", |secret| json!({"constraints": {"ip_allowlist": [secret]}})),
        ("a host", |secret| json!({"constraints": {"allowed_hosts": [secret]}})),
        ("a rate", |secret| json!({"constraints": {"max_invocations_per_hour": secret}})),
        (
            "a pattern",
            |secret| json!({"constraints": {"allowed_parameters": {"a": {"pattern": format!("({secret}")}}}}),
        ),
        ("a context", |secret| json!({"context": {"task_id": secret}})),
        ("delegatable", |secret| json!({"delegatable": secret})),
        ("a credential's id", |secret| json!({"credential_id": secret})),
    ];
    for (place, body) in places {
        let secret = story.secret(place);
        story.hears(admin.post("/api/v1/grants", &merged(grant.clone(), body(&secret)))).error();
    }
    let secret = story.plain_secret("broken JSON");
    let authorization = format!("Bearer {}", admin.key);
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    for text in [
        format!("{{\"material\": {{\"api_key\": \"{secret}\""),
        format!("{{\"a\": {secret}}}"),
        format!("\"{secret}\""),
    ] {
        story.hears(send(world.gate.address(), "POST", &path, &headers, text.as_bytes())).error();
    }
    let secret = story.plain_secret("the wrong content type");
    let text = json!({"service": "s", "label": "l", "material": {"api_key": secret}}).to_string();
    story
        .hears(send(world.gate.address(), "POST", &path, &headers[..1], text.as_bytes()))
        .refused(415, "UNSUPPORTED_MEDIA_TYPE");
    let secret = story.plain_secret("a query");
    story.hears(admin.get(&format!("/api/v1/vaults?api_key={secret}"))).error();
    story.hears(admin.get(&format!("/api/v1/grants?limit={secret}"))).error();
    let secret = story.plain_secret("a path that is none");
    story.hears(admin.get(&format!("/api/v1/secrets/{secret}"))).error();
    story.hears(admin.get(&format!("/api/v1/credentials/{secret}"))).error();
    for header in ["Authorization", "X-API-Key", "X-Agent-ID"] {
        let secret = story.plain_secret(header);
        let value = if header == "X-Agent-ID" { format!("{secret} {secret}") } else { secret };
        let key = if header == "X-Agent-ID" { admin.key.as_str() } else { "" };
        let headers: Vec<(&str, &str)> =
            if key.is_empty() { vec![(header, &value)] } else { vec![(header, &value), ("X-API-Key", key)] };
        story.hears(send(world.gate.address(), "GET", "/api/v1/whoami", &headers, b"")).error();
    }
    let secret = story.plain_secret("a token");
    story.hears(world.actor("x", &secret).get("/api/v1/whoami")).refused(401, "UNAUTHENTICATED");
    story.hears(world.actor("x", &format!("tgk_{secret}")).get("/api/v1/whoami")).refused(401, "UNAUTHENTICATED");
}

/// Keys are secrets too: in the answer that makes them and nowhere else.
fn use_keys(story: &mut Story, world: &World) -> Vec<String> {
    let admin = world.admin();
    let agent = world.agent("one", &["audit.read"]);
    story.hears(agent.get("/api/v1/whoami")).ok();
    story.hears(agent.get("/api/v1/audit/events")).ok();
    let made = admin.post("/api/v1/agents/one/keys", &json!({"label": "second"})).created();
    let revoked = world.actor("one", text(&made, "/key"));
    story.hears(admin.delete(&format!("/api/v1/keys/{}", id(&made)))).ok();
    story.hears(revoked.get("/api/v1/whoami")).refused(401, "KEY_REVOKED");
    let tenant = world.tenant("acme");
    story.hears(tenant.get("/api/v1/agents")).ok();
    let keys = vec![admin.key.clone(), agent.key.clone(), revoked.key.clone(), tenant.key.clone()];
    story.hears(admin.get("/api/v1/agents/one/keys")).ok();
    for reply in &story.answers {
        let body = reply.answer.text();
        assert!(keys.iter().all(|key| !body.contains(key)), "a key in {}", reply.asked);
    }
    keys
}

/// Every way to read what there is.
fn read_everything(story: &mut Story, admin: &Actor, credential: &str) {
    let vaults = story.hears(admin.get("/api/v1/vaults")).ok();
    for vault in vaults["vaults"].as_array().unwrap() {
        story.hears(admin.get(&format!("/api/v1/vaults/{}", id(vault)))).ok();
        story.hears(admin.get(&format!("/api/v1/vaults/{}/credentials", id(vault)))).ok();
    }
    story.hears(admin.get(&format!("/api/v1/credentials/{credential}"))).ok();
    let verified = story.hears(admin.ask("POST", &format!("/api/v1/credentials/{credential}/verify"), None)).ok();
    assert_eq!(verified["material"], "intact", "the secret is there, and only the gate can open it");
    for path in ["agents", "grants", "tenants", "master-keys", "audit/events?limit=1000", "audit/head", "audit/export"]
    {
        assert_eq!(story.hears(admin.get(&format!("/api/v1/{path}"))).status(), 200);
    }
    story.hears(admin.ask("POST", "/api/v1/master-keys/rekey", None)).expect(202);
    for path in ["/metrics", "/healthz", "/readyz"] {
        story.hears(admin.get(path));
    }
}
