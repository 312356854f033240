//! What these scenarios need: a gate with guardians, a mail service behind it, an agent that may use all of it, and
//! short ways to call and to look at what was decided.

use serde_json::{Value, json};
use toolgate_testkit::upstream::{Reply as Answer, Upstream};

use super::third_party::ThirdParty;
use crate::world::{Actor, Reply, World, id, setup, text};

/// The secret of the credential. Without a shape that would give it away.
pub const TOKEN: &str = "seven green bottles on the wall";

const TOOLS: [&str; 3] = ["inbox", "send", "sign"];

pub struct Office {
    pub world: World,
    pub mail: Upstream,
    pub admin: Actor,
    pub agent: Actor,
}

/// A guardian as the gate is told of it.
pub struct Guarding<'a> {
    pub name: &'a str,
    pub url: String,
    /// Further lines of its table.
    pub settings: &'a str,
}

impl Office {
    /// With one guardian, which is called `security`.
    pub fn with(third_party: &ThirdParty, settings: &str) -> Self {
        Self::with_all(&[Guarding { name: "security", url: third_party.url(), settings }])
    }

    /// With these guardians.
    pub fn with_all(guardians: &[Guarding<'_>]) -> Self {
        let table = |guardian: &Guarding<'_>| {
            let Guarding { name, url, settings } = guardian;
            // Long, so that a busy machine does not make a timeout of an answer; but for those that say otherwise.
            let timeout = if settings.contains("timeout_milliseconds") { "" } else { "timeout_milliseconds = 20000" };
            format!("[[guardian]]\nname = \"{name}\"\nurl = \"{url}\"\ndialect = \"aos\"\n{timeout}\n{settings}\n")
        };
        // What guardians say is seen where nobody else is asked.
        let agreed = "[hooks]\nunknown_tools = \"judge\"\n";
        Self::agreed(&(agreed.to_owned() + &guardians.iter().map(table).collect::<String>()))
    }

    /// With this file of guardians, and of what is agreed with those who ask the gate.
    pub fn agreed(toml: &str) -> Self {
        let setup = setup()
            .environment("TOOLGATE_EGRESS_ALLOW", "127.0.0.0/8")
            .environment("TOOLGATE_GUARDIANS_BUDGET_MILLISECONDS", "60000");
        let file = setup.home().join("guardians.toml");
        std::fs::write(&file, toml).unwrap();
        let world = World::of(&setup.environment("TOOLGATE_GUARDIANS_FILE", &file), None);
        let (mail, admin, agent) = open(&world);
        Self { world, mail, admin, agent }
    }

    /// Sends a mail as the agent.
    pub fn send(&self, body: &str) -> Reply {
        self.call("send", json!({"to": "team", "body": body}))
    }

    /// Calls a tool as the agent.
    pub fn call(&self, tool: &str, parameters: Value) -> Reply {
        self.agent.invokes(json!({"tool": format!("mail.{tool}"), "parameters": parameters}))
    }

    /// What guardians decided about a call, in order.
    pub fn decisions(&self, reply: &Reply) -> Vec<Value> {
        let invocation = reply.json()["invocation_id"].clone();
        decisions(&self.admin).into_iter().filter(|decision| decision["invocation_id"] == invocation).collect()
    }

    /// What guardians decided about the request of a call.
    #[track_caller]
    pub fn decision(&self, reply: &Reply) -> Value {
        let mut decisions = self.decisions(reply);
        decisions.retain(|decision| decision["hook"] == "tool_call_request");
        let [decision] = decisions.as_slice() else { panic!("one decision: {decisions:?}") };
        decision.clone()
    }

    /// What stays of a call.
    pub fn record(&self, reply: &Reply) -> Value {
        let invocation = text(&reply.json(), "/invocation_id").to_owned();
        self.admin.get(&format!("/api/v1/invocations/{invocation}")).ok()
    }

    /// What the service was sent: the bodies of all requests.
    pub fn sent(&self) -> Vec<Value> {
        self.mail.received().iter().map(toolgate_testkit::upstream::Received::json).collect()
    }
}

/// A mail service behind this gate, its administrator, and an agent that may use all of it.
pub fn open(world: &World) -> (Upstream, Actor, Actor) {
    let mail = Upstream::start(|request| match request.path() {
        "/inbox" => Answer::json(200, json!({"from": "ann@example.org", "text": "lunch?"})),
        _ => Answer::json(200, json!({"done": true})),
    });
    let admin = world.admin();
    admin.post("/api/v1/services", &definition()).created();
    let body = json!({
        "service": "mail", "label": "mail", "auth_type": "bearer_token", "metadata": {"base_url": mail.url()},
        "scopes_available": TOOLS, "material": {"token": TOKEN},
    });
    let credential = id(&admin.post(&format!("/api/v1/vaults/{}/credentials", admin.vault()), &body).created());
    let agent = world.agent("clerk", &["tools.invoke"]);
    admin.grants(&credential, "clerk", json!({"scopes": TOOLS}));
    (mail, admin, agent)
}

/// All that guardians decided, in order.
pub fn decisions(admin: &Actor) -> Vec<Value> {
    admin.events("&type=hook.decided").into_iter().map(|event| event["data"].clone()).collect()
}

/// What one guardian said in a decision.
#[track_caller]
pub fn said<'a>(decision: &'a Value, guardian: &str) -> &'a Value {
    let all = decision["guardians"].as_array().unwrap();
    all.iter().find(|said| said["guardian"] == guardian).unwrap_or_else(|| panic!("no {guardian} in {decision}"))
}

fn definition() -> Value {
    let mail = json!({
        "to": {"type": "string"}, "body": {"type": "string", "maxLength": 200}, "password": {"type": "string"},
    });
    let http = |method: &str, path: &str| json!({"method": method, "path": path});
    json!({
        "service": "mail", "version": "1",
        "tools": {
            "inbox": {"http": http("GET", "/inbox"), "safety_tier": "read"},
            "send": {"parameters": mail, "http": http("POST", "/send"), "safety_tier": "write"},
            "sign": {"parameters": mail, "http": http("POST", "/sign"), "safety_tier": "write", "approval": "always"},
        }
    })
}
