//! What every scenario needs: a gate on either engine, callers with keys, and short ways to ask and to expect.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_model::time::Timestamp;
use toolgate_testkit::gate_process::{GateProcess, GateSetup};
use toolgate_testkit::http::{self, Answer};
use toolgate_testkit::nginx::{Nginx, Upstreams};
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::trail;

use crate::access_tokens::{PUBLIC_URL, trusting};

/// Makes two tests of each scenario, which is a function that takes a world: one for each engine. In worlds that are
/// `unattended` nobody is there to answer, and what needs an answer is refused at once. `also_behind_nginx` makes a third
/// one, in which all requests go through nginx with its default timeouts.
macro_rules! on_both_engines {
    (unattended: $($scenario:ident,)+) => {
        mod sqlite {
            $(#[test] fn $scenario() { super::$scenario(&crate::world::World::unattended_sqlite()); })+
        }
        mod postgres {
            $(#[test] fn $scenario() { super::$scenario(&crate::world::World::unattended_postgres()); })+
        }
    };
    (also_behind_nginx: $($scenario:ident,)+) => {
        crate::world::on_both_engines! { $($scenario,)+ }
        mod nginx {
            $(#[test] fn $scenario() { super::$scenario(&crate::world::World::behind_nginx()); })+
        }
    };
    ($($scenario:ident,)+) => {
        mod sqlite {
            $(#[test] fn $scenario() { super::$scenario(&crate::world::World::sqlite()); })+
        }
        mod postgres {
            $(#[test] fn $scenario() { super::$scenario(&crate::world::World::postgres()); })+
        }
    };
}
pub(crate) use on_both_engines;

/// A running gate. Its database, where it has one of its own, outlives it.
pub struct World {
    pub gate: GateProcess,
    database: Option<TestDatabase>,
    front: Option<Nginx>,
}

/// Somebody with a key.
#[derive(Clone)]
pub struct Actor {
    pub id: String,
    pub key: String,
    address: SocketAddr,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What was asked, for messages.
    pub asked: String,
    pub answer: Answer,
}

impl World {
    pub fn sqlite() -> Self {
        Self::of(&setup().reaching_loopback(), None)
    }

    pub fn postgres() -> Self {
        let database = block_on(TestDatabase::migrated());
        let setup = setup().reaching_loopback().database(database.url());
        Self::of(&setup, Some(database))
    }

    /// A gate that is reached through nginx, as people put it there: without a word about timeouts.
    pub fn behind_nginx() -> Self {
        let trusting = setup().reaching_loopback().environment("TOOLGATE_TRUSTED_PROXIES", "127.0.0.1/32");
        let mut world = Self::of(&trusting, None);
        world.front = Some(Nginx::start(&[world.gate.address()], Upstreams::Default));
        world
    }

    pub fn unattended_sqlite() -> Self {
        Self::of(&unattended(), None)
    }

    pub fn unattended_postgres() -> Self {
        let database = block_on(TestDatabase::migrated());
        Self::of(&unattended().database(database.url()), Some(database))
    }

    pub fn of(setup: &GateSetup, database: Option<TestDatabase>) -> Self {
        Self { gate: setup.start(), database, front: None }
    }

    /// Where clients reach it: at nginx, where that is in front.
    pub fn address(&self) -> SocketAddr {
        self.front.as_ref().map_or(self.gate.address(), Nginx::address)
    }

    /// The URL of its database, where that is PostgreSQL.
    pub fn database(&self) -> Option<&str> {
        self.database.as_ref().map(TestDatabase::url)
    }

    /// Ends the gate and gives back what it wrote; the database stays until the second value is dropped.
    pub fn stop(self) -> (toolgate_testkit::gate_process::Ended, Option<TestDatabase>) {
        (self.gate.stop(), self.database)
    }

    /// The administrator of the platform, and of the tenant `default`.
    pub fn admin(&self) -> Actor {
        self.actor("admin", self.gate.token())
    }

    /// Somebody who shows this key.
    pub fn actor(&self, id: &str, key: &str) -> Actor {
        Actor { id: id.to_owned(), key: key.to_owned(), address: self.address() }
    }

    /// Registers an agent of the tenant `default` with these permissions, and makes it a key.
    pub fn agent(&self, id: &str, permissions: &[&str]) -> Actor {
        self.admin().registers(id, permissions)
    }

    /// Makes a tenant; answers its administrator.
    pub fn tenant(&self, id: &str) -> Actor {
        let made = self.admin().post("/api/v1/tenants", &json!({"id": id})).created();
        self.actor("admin", text(&made, "/administrator/key"))
    }
}

/// A gate in a home of its own.
pub fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

fn unattended() -> GateSetup {
    let setup = setup().reaching_loopback().environment("TOOLGATE_APPROVALS_ATTENDANCE", "required");
    // With an issuer, which nobody asks for keys here, so that every endpoint is served.
    trusting(setup, "http://127.0.0.1:9", PUBLIC_URL, "")
}

/// Waits for something on a runtime made for it.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

impl Actor {
    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, Some(body))
    }

    pub fn patch(&self, path: &str, body: &Value) -> Reply {
        self.ask("PATCH", path, Some(body))
    }

    pub fn delete(&self, path: &str) -> Reply {
        self.ask("DELETE", path, None)
    }

    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        self.ask_with(method, path, &[], body)
    }

    /// Asks with more headers than the key.
    pub fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Reply {
        let authorization = format!("Bearer {}", self.key);
        let mut all = vec![("Authorization", authorization.as_str())];
        all.extend_from_slice(headers);
        let text = body.map(Value::to_string).unwrap_or_default();
        if body.is_some() {
            all.push(("Content-Type", "application/json"));
        }
        send(self.address, method, path, &all, text.as_bytes())
    }

    /// Registers an agent of its tenant with these permissions, and makes it a key.
    pub fn registers(&self, id: &str, permissions: &[&str]) -> Actor {
        self.post("/api/v1/agents", &json!({"id": id, "permissions": permissions})).created();
        let made = self.ask("POST", &format!("/api/v1/agents/{id}/keys"), None).created();
        Actor { id: id.to_owned(), key: text(&made, "/key").to_owned(), address: self.address }
    }

    /// Registers what this says, and makes it a key.
    pub fn registers_as(&self, principal: &Value) -> Actor {
        let id = id(&self.post("/api/v1/agents", principal).created());
        let made = self.post(&format!("/api/v1/agents/{id}/keys"), &json!({})).created();
        Actor { key: text(&made, "/key").to_owned(), address: self.address, id }
    }

    /// Makes a vault of its own; answers its id.
    pub fn vault(&self) -> String {
        id(&self.post("/api/v1/vaults", &json!({"name": "main"})).created())
    }

    /// Makes a credential for `stripe` in a new vault, with the scopes of the RFC's example; answers its id.
    pub fn credential(&self) -> String {
        let path = format!("/api/v1/vaults/{}/credentials", self.vault());
        id(&self.post(&path, &stripe()).created())
    }

    /// Gives a grant that adds `more` to the least that a grant says; answers all of it.
    pub fn grants(&self, credential: &str, agent: &str, more: Value) -> Value {
        let body = merged(json!({"credential_id": credential, "agent_id": agent, "scopes": ["charges.read"]}), more);
        self.post("/api/v1/grants", &body).created()
    }

    /// Delegates a grant, adding `more` to the least that a delegation says; answers all of it.
    pub fn delegates(&self, source: &Value, agent: &str, more: Value) -> Value {
        self.tries_to_delegate(source, agent, more).created()
    }

    /// Asks for a delegation, adding `more` to the least that it says.
    pub fn tries_to_delegate(&self, source: &Value, agent: &str, more: Value) -> Reply {
        let body = merged(json!({"target_agent_id": agent, "scopes": ["charges.read"]}), more);
        self.post(&format!("/api/v1/grants/{}/delegate", id(source)), &body)
    }

    /// The grant as it is now.
    pub fn grant(&self, grant: &Value) -> Value {
        self.get(&format!("/api/v1/grants/{}", id(grant))).ok()
    }

    /// All events that fit the query, in order. They are looked at on the way: each must be fit to be shown.
    pub fn events(&self, query: &str) -> Vec<Value> {
        let mut events = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("/api/v1/audit/events?limit=1000{cursor}{query}")).ok();
            events.extend(page["events"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None if query.is_empty() => {
                    trail::whole_trail(&events);
                    return events;
                }
                None => {
                    events.iter().for_each(|event| drop(trail::shown(event)));
                    return events;
                }
            }
        }
    }

    /// Now, by the clock of the gate.
    pub fn time(&self) -> Timestamp {
        let vault = self.post("/api/v1/vaults", &json!({"name": "clock"})).created();
        Timestamp::parse(text(&vault, "/created_at")).unwrap()
    }

    /// A time to wait for: late enough that what must happen before it does, on a busy machine too.
    pub fn soon(&self) -> Timestamp {
        self.time().plus(Duration::from_secs(3))
    }
}

impl Reply {
    pub fn status(&self) -> u16 {
        self.answer.status
    }

    pub fn json(&self) -> Value {
        self.answer.json()
    }

    /// The body of a 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        self.expect(200)
    }

    /// The body of a 201.
    #[track_caller]
    pub fn created(&self) -> Value {
        self.expect(201)
    }

    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status(), status, "{}: {}", self.asked, self.answer.text());
        self.json()
    }

    /// The error object of a refusal with this status and code, whose whole shape is checked on the way.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let error = self.error();
        let found = (self.status(), error["code"].as_str().unwrap());
        assert_eq!(found, (status, code), "{}: {}", self.asked, self.answer.text());
        error
    }

    /// The error object of whatever refusal this is.
    #[track_caller]
    pub fn error(&self) -> Value {
        assert!(self.status() >= 400, "{} was not refused: {}", self.asked, self.answer.text());
        assert_eq!(self.answer.header("content-type"), Some("application/json"), "{}", self.asked);
        let body = self.json();
        assert_eq!(body["status"], "denied", "{}: {body}", self.asked);
        assert_eq!(body["message"], body["error"]["message"], "{}: {body}", self.asked);
        assert_eq!(body["errors"], json!([body["message"]]), "{}: {body}", self.asked);
        let code = body["error"]["code"].as_str().unwrap();
        let known = toolgate_gate::refusal::Code::ALL.iter().any(|known| known.as_str() == code);
        assert!(known, "{}: {code} is no code", self.asked);
        assert!(!body["message"].as_str().unwrap().is_empty(), "{}", self.asked);
        body["error"].clone()
    }
}

/// Sends a request with exactly these headers besides those of every request.
pub fn send(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let asked = format!("{method} {path} {}", String::from_utf8_lossy(body.get(..300).unwrap_or(body)));
    let answer = http::send(address, method, path, headers, body);
    Reply { answer: answer.unwrap_or_else(|error| panic!("{asked}: {error}")), asked }
}

/// Sends a request from another address of this machine, since wrong keys are counted by address.
pub fn send_from(source: IpAddr, gate: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {gate}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let exchange = async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(source, 0))?;
        let mut stream = socket.connect(gate).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        http::parse(&bytes)
    };
    let asked = format!("{method} {path} from {source}");
    let answer = block_on(exchange).unwrap_or_else(|error| panic!("{asked}: {error}"));
    Reply { answer, asked }
}

/// An address of this machine that no test of this process has used.
pub fn unused_source() -> IpAddr {
    static USED: AtomicU32 = AtomicU32::new(0);
    let number = USED.fetch_add(1, Ordering::Relaxed);
    IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + number))
}

/// Asks again until the answer fits. Every round takes a request's time; that many rounds are minutes.
#[track_caller]
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..50_000 {
        if let Some(found) = ask() {
            return found;
        }
    }
    panic!("{what}: it never came");
}

/// A credential like the RFC's, without the secret in `metadata`.
pub fn stripe() -> Value {
    json!({
        "service": "stripe",
        "label": "stripe-production",
        "auth_type": "api_key",
        "scopes_available": ["charges.read", "charges.create", "refunds.create", "customers.read", "customers.write"],
        "metadata": {"environment": "production", "account_id": "acct_1234"},
        "material": {"api_key": "sk_live_an_example"},
    })
}

/// An object with the members of both; the second decides.
pub fn merged(mut one: Value, other: Value) -> Value {
    let Value::Object(members) = other else { panic!("{other} is no object") };
    one.as_object_mut().unwrap().extend(members);
    one
}

pub fn id(value: &Value) -> String {
    text(value, "/id").to_owned()
}

/// The text at a JSON pointer.
#[track_caller]
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer} in {value}"))
}

/// The names of an object's members, in alphabetical order.
pub fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The ids in a list of things.
pub fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(id).collect()
}
