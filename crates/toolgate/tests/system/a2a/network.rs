//! What these scenarios need: an agent of the official SDK as the peer, a gate before it, agents that may talk to it, and the
//! official client.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guardians::third_party::ThirdParty;
use crate::openintent_sdk::python;
use crate::world::{Actor, World, setup, text};

/// Every form of messages that the peer speaks.
pub const FORMS: [(&str, &str); 3] = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")];
const SCOPES: [&str; 4] = ["a2a.cancel", "a2a.read", "a2a.send", "a2a.stream"];

/// An agent of the official SDK.
pub struct Peer {
    process: Child,
    pub url: String,
    folder: TempDir,
}

impl Peer {
    pub fn start() -> Self {
        let folder = TempDir::with_prefix("toolgate-peer-").unwrap();
        let mut process = Command::new(python())
            .env_clear()
            .arg("-B")
            .arg(script("agent.py"))
            .arg(folder.path().join("log"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "the peer did not start: {url}");
        Self { process, url: url.trim().to_owned(), folder }
    }

    /// The requests that it got, without those for its card.
    pub fn received(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let requests = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        requests.filter(|request| !text(request, "/path").contains(".well-known")).collect()
    }

    /// Whether anything that it got contains this.
    pub fn has_received(&self, what: &str) -> bool {
        self.received().iter().any(|request| request.to_string().contains(what))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Fails only where it has ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A gate before a peer called `travel`, whose card is accepted, and the agent `clerk` that may talk to it.
pub struct Network {
    pub peer: Peer,
    pub world: World,
    pub admin: Actor,
    pub clerk: Actor,
    pub grant: Value,
    pub credential: String,
}

impl Network {
    pub fn open() -> Self {
        Self::in_world(World::of(&setup().reaching_loopback(), None))
    }

    /// With a guardian on messages between agents.
    pub fn guarded(guardian: &ThirdParty) -> Self {
        let hooks =
            r#"["a2a_send", "a2a_stream", "a2a_cancel", "a2a_get_task", "a2a_notification_config", "a2a_other"]"#;
        let url = guardian.url();
        let table = format!(
            "[[guardian]]\nname = \"security\"\nurl = \"{url}\"\ndialect = \"aos\"\ntimeout_milliseconds = 20000\n\
             hooks = {hooks}\nmay_modify = true\n"
        );
        let setup = setup()
            .environment("TOOLGATE_EGRESS_ALLOW", "127.0.0.0/8")
            .environment("TOOLGATE_GUARDIANS_BUDGET_MILLISECONDS", "60000");
        let file = setup.home().join("guardians.toml");
        std::fs::write(&file, table).unwrap();
        Self::in_world(World::of(&setup.environment("TOOLGATE_GUARDIANS_FILE", &file), None))
    }

    pub fn in_world(world: World) -> Self {
        let (peer, admin) = (Peer::start(), world.admin());
        let body = json!({"name": "travel", "url": peer.url, "vault_id": admin.vault()});
        let added = admin.post("/api/v1/peers", &body).created();
        let credential = text(&added, "/credential_id").to_owned();
        accept(&admin);
        let clerk = world.agent("clerk", &["tools.invoke"]);
        let grant = admin.grants(&credential, "clerk", json!({"scopes": SCOPES}));
        Self { peer, world, admin, clerk, grant, credential }
    }

    /// Another agent that may talk to the peer.
    pub fn other(&self, id: &str) -> Actor {
        let agent = self.world.agent(id, &["tools.invoke"]);
        self.admin.grants(&self.credential, id, json!({"scopes": SCOPES}));
        agent
    }

    /// The address of the peer at the gate.
    pub fn address(&self) -> String {
        format!("http://{}/a2a/travel", self.world.address())
    }

    /// What the official client sees when it takes these steps through the gate, with what it knows from before.
    pub fn through(&self, agent: &Actor, form: (&str, &str), steps: &Value, known: &[(&str, &str)]) -> Vec<Value> {
        client(&self.address(), Some(agent), form, steps, known)
    }

    /// What it sees when it takes them at the peer itself.
    pub fn directly(&self, form: (&str, &str), steps: &Value) -> Vec<Value> {
        client(&self.peer.url, None, form, steps, &[])
    }
}

/// Accepts the card as it is shown.
pub fn accept(admin: &Actor) -> Value {
    let review = admin.get("/api/v1/mounts/travel/review").ok();
    let body = json!({"server": review["server"]["hash"]});
    admin.post("/api/v1/mounts/travel/accept", &body).ok()
}

/// What the official client sees when it takes these steps at this address.
pub fn client(
    url: &str,
    agent: Option<&Actor>,
    (binding, version): (&str, &str),
    steps: &Value,
    known: &[(&str, &str)],
) -> Vec<Value> {
    let mut command = Command::new(python());
    // Nothing of this machine: no proxies, no other packages.
    command.env_clear().arg("-B").arg(script("client.py")).args([url, binding, version, &steps.to_string()]);
    command.args(known.iter().map(|(name, value)| format!("{name}={value}")));
    if let Some(agent) = agent {
        command.env("TOOLGATE_KEY", &agent.key);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The same without what differs between two runs: ids, which are numbered by their first mention, and times.
pub fn comparable(lines: &[Value]) -> Vec<Value> {
    let mut ids = Vec::new();
    lines.iter().map(|line| numbered(line, &mut ids)).collect()
}

fn numbered(value: &Value, ids: &mut Vec<String>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| numbered(item, ids)).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !matches!(name.as_str(), "timestamp" | "state" | "totalSize"));
            kept.map(|(name, value)| (name.clone(), numbered(value, ids))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::String(text)
            if text.len() >= 32 && text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-') =>
        {
            let place = ids.iter().position(|known| known == text).unwrap_or_else(|| {
                ids.push(text.clone());
                ids.len() - 1
            });
            json!(format!("id {place}"))
        }
        other => other.clone(),
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/a2a").join(name)
}
