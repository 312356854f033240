//! The fixture that the conformance kit of the Model Context Protocol expects behind the server that it tests: tools,
//! resources and prompts of fixed names, in either era. Names are without their first word, which is that of the mount:
//! `simple_text` of the mount `test` is `test_simple_text` to the kit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::upstream::{Producer, Received, Reply, Upstream};

mod content;
mod input;
mod tools;

/// The revision of the modern era.
const MODERN: &str = "2026-07-28";
/// A client that is asked for something longer ago than this will not respond.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A running fixture.
pub struct ConformanceServer {
    upstream: Upstream,
}

/// What a request comes to.
enum Outcome {
    Result(Value),
    /// Notifications, then the result.
    Noted(Vec<Value>, Value),
    /// A request to the client, whose response makes the result. Only in the legacy era.
    Asked {
        method: &'static str,
        params: Value,
        result: fn(&Value) -> Value,
    },
    Error {
        code: i64,
        message: &'static str,
        data: Value,
    },
}

struct Fixture {
    /// Whether it speaks 2026-07-28; else 2025-11-25 with sessions.
    modern: bool,
    /// The tools that it lists.
    tools: Vec<Value>,
    /// Whether it has resources and prompts besides.
    has_content: bool,
    state: Mutex<State>,
    responded: Condvar,
}

#[derive(Default)]
struct State {
    sessions: BTreeSet<String>,
    /// Whether the tool is listed that comes and goes.
    dynamic: bool,
    /// The requests to clients so far.
    asked: usize,
    /// What clients have responded, by the id of the request.
    responses: BTreeMap<String, Value>,
}

impl ConformanceServer {
    /// The server to mount as `test`.
    pub fn start(modern: bool) -> Self {
        Self::with(modern, tools::listed(modern), true)
    }

    /// The server to mount as `json`, with the tool whose schema the kit compares.
    pub fn schema(modern: bool) -> Self {
        Self::with(modern, vec![tools::schema()], false)
    }

    /// The server to mount as `slow`, `failing` and `protocol`, with the tools that the kit calls as tasks.
    pub fn tasks() -> Self {
        Self::with(true, tools::tasks(), false)
    }

    fn with(modern: bool, tools: Vec<Value>, has_content: bool) -> Self {
        let state = Mutex::new(State { dynamic: true, ..State::default() });
        let fixture = Arc::new(Fixture { modern, tools, has_content, state, responded: Condvar::new() });
        Self { upstream: Upstream::start(move |request| reply(&fixture, request)) }
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.upstream.url())
    }

    /// What tools it was called for, and how often.
    pub fn calls(&self) -> BTreeMap<String, usize> {
        let mut calls = BTreeMap::new();
        for request in self.upstream.received().iter().filter(|request| request.method == "POST") {
            let message = request.json();
            if message["method"] == "tools/call" {
                *calls.entry(message["params"]["name"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        calls
    }
}

fn reply(fixture: &Arc<Fixture>, request: &Received) -> Reply {
    if request.method != "POST" {
        return Reply::bytes(405, "");
    }
    let message = request.json();
    let (id, params) = (message["id"].clone(), &message["params"]);
    let Some(method) = message["method"].as_str() else {
        fixture.respond(&message);
        return Reply::bytes(202, "");
    };
    if id.is_null() {
        return Reply::bytes(202, "");
    }
    if method == "initialize" && !fixture.modern {
        return fixture.open(&id);
    }
    if let Err(refused) = fixture.admit(request, method, params) {
        return failed(&id, &refused, 400);
    }
    match fixture.outcome(method, request, params) {
        Outcome::Result(result) => Reply::json(200, response(&id, &fixture.finished(result))),
        Outcome::Noted(notifications, result) => {
            let last = response(&id, &fixture.finished(result));
            stream(notifications.iter().chain([&last]).map(event))
        }
        Outcome::Asked { method, params, result } => asked(fixture, &id, method, &params, result),
        error @ Outcome::Error { .. } => failed(&id, &error, if fixture.modern { 400 } else { 200 }),
    }
}

impl Fixture {
    fn outcome(&self, method: &str, request: &Received, params: &Value) -> Outcome {
        match method {
            "server/discover" if self.modern => Outcome::Result(json!({
                "supportedVersions": [MODERN], "capabilities": self.capabilities(), "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "conformance", "version": "1"}}
            })),
            "tools/list" => {
                let dynamic = self.state().dynamic;
                let is_listed = |tool: &&Value| tool["name"] != tools::DYNAMIC || dynamic;
                let listed: Vec<&Value> = self.tools.iter().filter(is_listed).collect();
                Outcome::Result(json!({"tools": listed, "ttlMs": 0, "cacheScope": "private"}))
            }
            "tools/call" if params["name"] == tools::TRIGGER => {
                self.state().dynamic ^= true;
                let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                Outcome::Noted(vec![changed], text("The list of tools has changed."))
            }
            "tools/call" if self.modern => input::call(params)
                .or_else(|| tools::call(request, params))
                .unwrap_or_else(|| invalid("no such tool", json!({}))),
            "tools/call" => input::ask(params)
                .or_else(|| tools::call(request, params))
                .unwrap_or_else(|| invalid("no such tool", json!({}))),
            "prompts/get" if self.modern => input::prompt(params).unwrap_or_else(|| content::prompt(params)),
            other => content::method(other, params),
        }
    }

    /// What its era asks of every request.
    fn admit(&self, request: &Received, method: &str, params: &Value) -> Result<(), Outcome> {
        if !self.modern {
            let session = request.header("mcp-session-id").unwrap_or_default();
            return match self.state().sessions.contains(session) {
                true => Ok(()),
                false => Err(Outcome::Error { code: -32_000, message: "no such session", data: json!({}) }),
            };
        }
        let meta = &params["_meta"];
        if meta["io.modelcontextprotocol/protocolVersion"] != MODERN
            || !meta["io.modelcontextprotocol/clientCapabilities"].is_object()
        {
            return Err(invalid("the _meta of the request is missing", json!({})));
        }
        let named = ["name", "uri"].iter().find_map(|member| params[*member].as_str());
        let agrees = request.header("mcp-protocol-version") == Some(MODERN)
            && request.header("mcp-method") == Some(method)
            && request.header("mcp-name") == named;
        match agrees {
            true => Ok(()),
            false => Err(Outcome::Error { code: -32_020, message: "headers and body differ", data: json!({}) }),
        }
    }

    fn open(&self, id: &Value) -> Reply {
        let mut state = self.state();
        let session = format!("session-{}", state.sessions.len() + 1);
        state.sessions.insert(session.clone());
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": self.capabilities(),
            "serverInfo": {"name": "conformance", "version": "1"}
        });
        Reply::json(200, response(id, &result)).header("Mcp-Session-Id", &session)
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if self.has_content {
            for name in ["resources", "prompts", "completions"] {
                capabilities[name] = json!({});
            }
        }
        capabilities
    }

    fn finished(&self, mut result: Value) -> Value {
        if self.modern && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        result
    }

    /// Takes the response of a client.
    fn respond(&self, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        self.state().responses.insert(id, message.clone());
        self.responded.notify_all();
    }

    /// What a client responds to this request, or an error in its place.
    fn response(&self, id: &str) -> Value {
        let waited =
            self.responded.wait_timeout_while(self.state(), TIMEOUT, |state| !state.responses.contains_key(id));
        let (mut state, _) = waited.expect("a lock under which nothing panics");
        state.responses.remove(id).unwrap_or_else(|| json!({"error": {"message": "no response"}}))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a lock under which nothing panics")
    }
}

/// A stream with a request to the client, and the result once that has responded.
fn asked(
    fixture: &Arc<Fixture>,
    id: &Value,
    method: &'static str,
    params: &Value,
    result: fn(&Value) -> Value,
) -> Reply {
    let question = {
        let mut state = fixture.state();
        state.asked += 1;
        format!("question-{}", state.asked)
    };
    let request = event(&json!({"jsonrpc": "2.0", "id": question, "method": method, "params": params}));
    let (fixture, id) = (Arc::clone(fixture), id.clone());
    Reply::produced(
        200,
        Producer::new(move |number| match number {
            0 => Some(request.clone().into_bytes()),
            1 => Some(event(&response(&id, &result(&fixture.response(&question)))).into_bytes()),
            _ => None,
        }),
    )
    .header("Content-Type", "text/event-stream")
}

fn stream(events: impl Iterator<Item = String>) -> Reply {
    Reply::chunks(200, events).header("Content-Type", "text/event-stream")
}

fn failed(id: &Value, outcome: &Outcome, status: u16) -> Reply {
    let Outcome::Error { code, message, data } = outcome else { panic!("only an error fails") };
    let error = json!({"code": code, "message": message, "data": data});
    Reply::json(status, json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn invalid(message: &'static str, data: Value) -> Outcome {
    Outcome::Error { code: -32_602, message, data }
}

fn response(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// A result of one text.
fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The members of a request's parameter; empty where it has none.
fn members(params: &Value, name: &str) -> Map<String, Value> {
    params[name].as_object().cloned().unwrap_or_default()
}
