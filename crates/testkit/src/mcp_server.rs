//! MCP servers for tests to mount: over HTTP in either era, with responses as JSON or as streams of events, and a process
//! for stdio. Honest until a test asks for something that no honest server does.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

use crate::upstream::{Producer, Received, Reply, Upstream};

pub use self::process::{McpProcess, process_tools};

mod process;

/// The revision of the modern era.
const MODERN: &str = "2026-07-28";

/// A running server over HTTP.
pub struct McpServer {
    upstream: Upstream,
    script: Arc<Mutex<McpScript>>,
}

/// What a server does. May be changed while it runs.
#[derive(Debug, Clone)]
pub struct McpScript {
    /// Whether it speaks 2026-07-28; else 2025-11-25 with sessions.
    pub modern: bool,
    /// Whether responses are streams of events.
    pub events: bool,
    /// What it lists.
    pub tools: Vec<Value>,
    /// How many tools are on a page.
    pub page: usize,
    /// The URIs of its resources, one on a page.
    pub resources: Vec<String>,
    /// The names of its prompts. It declares them only where it has some.
    pub prompts: Vec<String>,
    /// The only credential that it accepts, where it looks: a token of a bearer, or `key` of the query.
    pub accepts: Option<String>,
    /// What it does with calls of tools.
    pub conduct: Conduct,
    /// Ids of the sessions that are open.
    pub sessions: BTreeSet<String>,
    begun: usize,
    answers: Answers,
}

/// How many responses the clients have sent to requests.
type Answers = Arc<(Mutex<usize>, Condvar)>;
/// How long a server waits for one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What a server does with calls of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conduct {
    /// Responds as it should.
    Honest,
    /// Asks the client for something before it responds.
    Asking,
    /// Sends the client this request, and says this to its log, before it responds. Waits for what the client sends.
    Questioning(Value),
    /// Sends the client this request, and responds without waiting for anything.
    Impatient(Value),
    /// Interrupts calls of tools and resources to ask the client for this; with the responses it goes on. Its state has the
    /// credential that it was called with.
    Interrupting(Value),
    /// Says that its list has changed before it responds.
    Announcing,
    /// Says how far it is before it responds.
    Reporting,
    /// Responds with more than anybody reads.
    Giant,
    /// Responds with what is no JSON.
    Malformed,
    /// Never responds.
    Silent,
    /// Says how far it is, and never responds.
    Stalling,
    /// Responds to another request.
    WrongId,
    /// Responds with an object that has a key twice.
    DuplicateKey,
    /// Redirects to this address.
    Redirect(String),
    /// Ends the stream before the response.
    CutOff,
    /// Keeps the stream open after the response.
    Lingering,
}

impl McpServer {
    pub fn start(modern: bool, events: bool) -> Self {
        let script = Arc::new(Mutex::new(McpScript {
            modern,
            events,
            tools: tools(),
            page: 2,
            resources: vec!["test://one".to_owned(), "test://two".to_owned()],
            prompts: Vec::new(),
            accepts: None,
            conduct: Conduct::Honest,
            sessions: BTreeSet::new(),
            begun: 0,
            answers: Answers::default(),
        }));
        let shared = Arc::clone(&script);
        let upstream = Upstream::start(move |request| lock(&shared).reply(request));
        Self { upstream, script }
    }

    /// Its endpoint.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.upstream.url())
    }

    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// What it does.
    pub fn script(&self) -> MutexGuard<'_, McpScript> {
        lock(&self.script)
    }

    /// The messages that it received with this method.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let messages = self.upstream.received().into_iter().map(|request| request.json());
        messages.filter(|message| message["method"] == method).collect()
    }
}

/// What an honest server lists.
pub fn tools() -> Vec<Value> {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    vec![
        json!({
            "name": "echo", "title": "Echo", "description": "Repeats a text.", "inputSchema": text,
            "outputSchema": text, "annotations": {"readOnlyHint": true, "openWorldHint": false}
        }),
        json!({"name": "whoami", "description": "Says what it was sent with.", "inputSchema": {"type": "object"}}),
        json!({"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}}),
    ]
}

impl McpScript {
    fn reply(&mut self, request: &Received) -> Reply {
        if request.method != "POST" {
            return Reply::bytes(405, "");
        }
        let message = request.json();
        let (id, method) = (message["id"].clone(), message["method"].as_str().unwrap_or_default().to_owned());
        if let Err(refused) = self.admit(request, &message) {
            return refused;
        }
        let params = &message["params"];
        let result = match method.as_str() {
            "" => {
                *lock(&self.answers.0) += 1;
                self.answers.1.notify_all();
                return Reply::bytes(202, "");
            }
            notification if id.is_null() => {
                assert!(notification.starts_with("notifications/"), "{message}");
                return Reply::bytes(202, "");
            }
            "server/discover" if self.modern => {
                let mut capabilities = json!({"tools": {"listChanged": true}, "resources": {}});
                if !self.prompts.is_empty() {
                    capabilities["prompts"] = json!({});
                    capabilities["completions"] = json!({});
                }
                json!({
                    "supportedVersions": [MODERN], "capabilities": capabilities,
                    "instructions": "Use echo.", "ttlMs": 0, "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fixture", "version": "1.2.3"}}
                })
            }
            "initialize" if !self.modern => {
                self.begun += 1;
                let session = format!("session-{}", self.begun);
                self.sessions.insert(session.clone());
                let result = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fixture", "version": "1.2.3", "title": "Fixture"}
                });
                return respond(self.events, &id, &result).header("Mcp-Session-Id", &session);
            }
            "tools/list" => {
                let from: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("its own cursor"));
                let page: Vec<Value> = self.tools.iter().skip(from).take(self.page).cloned().collect();
                let next = from + page.len();
                let mut result = json!({"tools": page, "ttlMs": 300_000, "cacheScope": "private"});
                if next < self.tools.len() {
                    result["nextCursor"] = json!(next.to_string());
                }
                result
            }
            "tools/call" => return self.call(request, &id, params),
            "resources/list" => {
                let from: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("its own cursor"));
                let listed: Vec<Value> =
                    self.resources.iter().skip(from).take(1).map(|uri| json!({"uri": uri, "name": "one"})).collect();
                let mut result = json!({"resources": listed});
                if from + 1 < self.resources.len() {
                    result["nextCursor"] = json!((from + 1).to_string());
                }
                result
            }
            "resources/templates/list" => {
                json!({"resourceTemplates": [{"uriTemplate": "test://{id}", "name": "any"}]})
            }
            "resources/read" if params["uri"].as_str().is_some_and(|uri| uri.ends_with("/missing")) => {
                return error(200, &id, -32602, "no such resource");
            }
            "resources/read" => self
                .interrupted(request, params)
                .unwrap_or_else(|| json!({"contents": [{"uri": params["uri"], "text": "resource"}]})),
            "prompts/list" => {
                json!({"prompts": self.prompts.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
            }
            "prompts/get" => self.interrupted(request, params).unwrap_or_else(|| {
                let text = format!("{} {}", params["name"], params["arguments"]);
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
            }),
            "completion/complete" => json!({"completion": {"values": [params["ref"]["name"], params["ref"]["uri"]]}}),
            _ => return error(404, &id, -32601, "no such method"),
        };
        respond(self.events, &id, &self.finished(result))
    }

    /// The result that asks the client for something, unless it has sent that.
    fn interrupted(&self, request: &Received, params: &Value) -> Option<Value> {
        let Conduct::Interrupting(requests) = &self.conduct else { return None };
        let state = format!("state of {}", request.bearer().unwrap_or_default());
        let is_answered = params["requestState"] == state && params["inputResponses"].is_object();
        let asking = json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
        (!is_answered).then_some(asking)
    }

    fn finished(&self, mut result: Value) -> Value {
        if self.modern && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        result
    }

    /// What its era asks of every request.
    fn admit(&self, request: &Received, message: &Value) -> Result<(), Reply> {
        let id = &message["id"];
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(secret) = &self.accepts {
            let is_in_query = request.target.ends_with(&format!("?key={secret}"));
            if request.bearer() != Some(secret) && !is_in_query {
                return Err(Reply::bytes(401, ""));
            }
        }
        let accepts = request.header("accept").unwrap_or_default();
        if !(accepts.contains("application/json") && accepts.contains("text/event-stream")) {
            return Err(Reply::bytes(406, ""));
        }
        if self.modern {
            let meta = &message["params"]["_meta"];
            if meta["io.modelcontextprotocol/protocolVersion"] != MODERN
                || !meta["io.modelcontextprotocol/clientCapabilities"].is_object()
            {
                return Err(error(400, id, -32602, "the _meta of the request is missing"));
            }
            let name = message["params"]["name"].as_str().or(message["params"]["uri"].as_str());
            let agrees = request.header("mcp-protocol-version") == Some(MODERN)
                && request.header("mcp-method") == Some(method)
                && request.header("mcp-name") == name
                && request.header("mcp-session-id").is_none();
            return if agrees { Ok(()) } else { Err(error(400, id, -32020, "headers and body differ")) };
        }
        if method == "initialize" {
            return Ok(());
        }
        match request.header("mcp-session-id") {
            None => Err(error(400, id, -32000, "a session is required")),
            Some(session) if !self.sessions.contains(session) => Err(error(404, id, -32001, "no such session")),
            Some(_) => Ok(()),
        }
    }

    fn call(&self, request: &Received, id: &Value, params: &Value) -> Reply {
        let content = |text: &str| json!([{"type": "text", "text": text}]);
        let result = match params["name"].as_str().unwrap_or_default() {
            "echo" => {
                let structured = json!({"text": params["arguments"]["text"]});
                json!({"content": content(&structured.to_string()), "structuredContent": structured, "custom": [1, null]})
            }
            "whoami" => {
                let said: Vec<String> =
                    request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                json!({"content": content(&said.join("\n")), "_meta": {"target": request.target}})
            }
            "fail" => json!({"content": content("it went wrong"), "isError": true}),
            _ => return error(200, id, -32602, "no such tool"),
        };
        let result = match (&self.conduct, self.interrupted(request, params)) {
            (_, Some(interrupted)) => interrupted,
            (Conduct::Interrupting(_), None) => {
                let structured = json!({"text": params["inputResponses"].to_string()});
                json!({"content": content(&structured.to_string()), "structuredContent": structured})
            }
            _ => result,
        };
        let result = self.finished(result);
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let before = |message: Value| {
            let stream = [event(&message), event(&response)].concat();
            Reply::chunks(200, [stream]).header("Content-Type", "text/event-stream")
        };
        match &self.conduct {
            Conduct::Honest | Conduct::Interrupting(_) => respond(self.events, id, &result),
            Conduct::Questioning(message) => {
                let said = |level: &str| json!({"level": level, "logger": "fixture", "data": "about to ask"});
                let log =
                    |level: &str| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": said(level)});
                self.waiting(&[log("debug"), log("warning"), message.clone()], event(&response))
            }
            Conduct::Impatient(message) => before(message.clone()),
            Conduct::Asking => {
                self.waiting(&[json!({"jsonrpc": "2.0", "id": "ask-1", "method": "ping"})], event(&response))
            }
            Conduct::Announcing => before(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
            Conduct::Reporting => {
                let message = request.bearer().unwrap_or_default();
                let params = json!({"progressToken": id, "progress": 1, "total": 2, "message": message});
                before(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            }
            Conduct::Stalling => {
                let params = json!({"progressToken": id, "progress": 1});
                opened(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            }
            Conduct::Giant => {
                let result = json!({"content": content(&"x".repeat(2 * 1024 * 1024))});
                respond(self.events, id, &result)
            }
            Conduct::Malformed if self.events => {
                Reply::chunks(200, ["data: {\"jsonrpc\"\n\n"]).header("Content-Type", "text/event-stream")
            }
            Conduct::Malformed => Reply::json_text(200, "{\"jsonrpc\": \"2.0\", "),
            Conduct::Silent => Reply::silence(),
            Conduct::WrongId => respond(self.events, &json!(id.as_u64().unwrap_or_default() + 1_000), &result),
            Conduct::DuplicateKey => {
                let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"a\":1,\"a\":2}}}}");
                match self.events {
                    true => {
                        Reply::chunks(200, [format!("data: {text}\n\n")]).header("Content-Type", "text/event-stream")
                    }
                    false => Reply::json_text(200, &text),
                }
            }
            Conduct::Redirect(url) => Reply::redirect(url),
            Conduct::CutOff => {
                Reply::chunks(200, [": nothing follows\n\n"]).header("Content-Type", "text/event-stream")
            }
            Conduct::Lingering => opened(&response),
        }
    }

    /// Messages and, once the client has responded to the last one if that is a request, the response.
    fn waiting(&self, messages: &[Value], response: String) -> Reply {
        let before: String = messages.iter().map(event).collect();
        let is_question = messages.last().is_some_and(|last| !last["id"].is_null());
        let answers = Arc::clone(&self.answers);
        let known = *lock(&answers.0);
        let stream = Producer::new(move |chunk| match chunk {
            0 => Some(before.clone().into_bytes()),
            1 => {
                let is_open = |count: &mut usize| is_question && *count == known;
                drop(answers.1.wait_timeout_while(lock(&answers.0), ANSWER_TIMEOUT, is_open));
                Some(response.clone().into_bytes())
            }
            _ => None,
        });
        Reply::produced(200, stream).header("Content-Type", "text/event-stream")
    }
}

fn respond(events: bool, id: &Value, result: &Value) -> Reply {
    let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
    match events {
        true => Reply::chunks(200, [format!(": here it comes\n\nid: 1\n{}", event(&response))])
            .header("Content-Type", "text/event-stream; charset=utf-8"),
        false => Reply::json(200, response),
    }
}

/// A stream that stays open after this message.
fn opened(message: &Value) -> Reply {
    let event = event(message);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    Reply::raw_open(format!("{head}{:x}\r\n{event}\r\n", event.len()))
}

fn error(status: u16, id: &Value, code: i64, message: &str) -> Reply {
    Reply::json(status, json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

fn lock<T>(script: &Mutex<T>) -> MutexGuard<'_, T> {
    script.lock().expect("no test fails while it holds the script")
}
