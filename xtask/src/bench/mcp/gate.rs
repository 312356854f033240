//! A gate with the servers mounted: one of each era over HTTP, and one that is a process; on demand an agent with many tools.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::super::gate::api::{Api, field};
use super::super::gate::load::{Request, Target};
use super::super::gate::programs;
use super::super::gate::scratch::Scratch;
use super::super::gate::store::Store;
use super::super::gate::subject::{ADMINISTRATOR, Prepared, Subject};
use super::super::gate::upstream::Upstream;
use super::message::{Era, MARK};
use super::process;
use super::server::Servers;

/// How many tools one agent is granted.
const MANY: usize = 1_000;
/// The mount that is a process.
const PROCESS: &str = "process";
const GRANTS: u64 = 10;
const SECRET: &str = "sk_bench_5b7d02c9e1f64d8a";

/// A running gate, and the calls to load it with.
#[derive(Debug)]
pub struct McpGate {
    pub subject: Subject,
    /// `tools/call` of each era, to a server of the same one.
    pub calls: [(Era, Target); 2],
    /// `tools/call` to the process.
    pub process: Target,
}

/// What a gate is made of.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    pub binary: &'a Path,
    pub scratch: &'a Scratch,
    pub upstream: &'a Upstream,
    pub servers: &'a Servers,
    /// Of its files.
    pub name: &'a str,
}

impl Setup<'_> {
    /// Starts a gate on this store with this command, which ends with the path of the binary, and makes each call once.
    pub fn start(&self, store: Store, command: &[OsString]) -> Result<McpGate, String> {
        let Self { binary, scratch, upstream, servers, name } = *self;
        let prepared = Prepared::make(binary, scratch, name, store, upstream, GRANTS)?;
        let mut subject = prepared.with_environment(self.environment()?).start(command)?;
        for era in Era::ALL {
            self.mount(&subject, era.name(), Some(&servers.url(era)))?;
        }
        self.mount(&subject, PROCESS, None)?;
        let key = subject.as_agent().key.to_owned();
        let url = endpoint(&subject);
        let session = open_session(subject.as_agent())?;
        let modern = Era::Modern.call(&url, "modern_echo", None);
        let legacy = Era::Legacy.call(&url, "legacy_echo", Some(&session));
        let to_process = Era::Modern.call(&url, &format!("{PROCESS}_echo"), None);
        for request in [&modern, &legacy, &to_process] {
            let response = subject.as_agent().post_with("/mcp", &request.headers, &request.body)?;
            if !response.body.contains(MARK) || response.body.contains("isError") {
                return Err(format!("the result of a call is not what the server returned: {}", response.body));
            }
            subject.note_calls(1);
        }
        Ok(McpGate {
            calls: [
                (Era::Modern, self.target("modern", modern, &key)?),
                (Era::Legacy, self.target("legacy", legacy, &key)?),
            ],
            process: self.target("process", to_process, &key)?,
            subject,
        })
    }

    /// `tools/list` of an agent that may call many tools, which is made now.
    pub fn list(&self, subject: &Subject) -> Result<Target, String> {
        let key = self.grant_many(subject)?;
        let list = Era::Modern.request(&endpoint(subject), "tools/list", None, "", None);
        let listed = Api { key: &key, ..subject.as_agent() }.post_with("/mcp", &list.headers, &list.body)?;
        let count = listed.body.matches("\"inputSchema\"").count();
        if count != MANY {
            return Err(format!("{count} tools are listed instead of {MANY}"));
        }
        self.target("list", list, &key)
    }

    fn target(&self, name: &str, request: Request, key: &str) -> Result<Target, String> {
        let request = request.with_header("Authorization", &format!("Bearer {key}"));
        Target::new(self.scratch, &format!("{}-{name}", self.name), &request)
    }

    /// The process of a mount, and limits that the benchmark does not reach.
    fn environment(&self) -> Result<Vec<(&'static str, OsString)>, String> {
        let own = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let command = [own.to_str().ok_or("the path of this program is not text")?, "bench", process::COMMAND];
        let mounts = format!(
            "[[mounts]]\nname = \"{PROCESS}\"\ncommand = {command:?}\ncredential = \"env:TOKEN\"\nsandbox = \"off\"\n"
        );
        let file = self.scratch.write(&format!("{}-mounts.toml", self.name), &mounts)?;
        let most = OsString::from("10000");
        Ok(vec![
            ("TOOLGATE_MOUNTS_FILE", file.into_os_string()),
            ("TOOLGATE_MCP_SESSIONS_PER_PRINCIPAL", most.clone()),
            ("TOOLGATE_MAX_STREAMS_PER_PRINCIPAL", most.clone()),
            ("TOOLGATE_MAX_REQUESTS_PER_KEY", most),
        ])
    }

    /// Mounts a server as its administrator would, accepts its tool and grants it, with constraints as for the call over
    /// HTTP.
    fn mount(&self, subject: &Subject, name: &str, url: Option<&str>) -> Result<(), String> {
        let api = subject.as_administrator();
        let secret = self.scratch.write(&format!("{}-secret", self.name), &format!("{SECRET}\n"))?;
        let input = File::open(&secret).map_err(|error| format!("{}: {error}", secret.display()))?;
        let mut command = Command::new(self.binary);
        command.args(["mount", "add", name]).args(url);
        command.args(["--auth-type", "bearer_token", "--accept-all", "--json"]);
        command.env("TOOLGATE_URL", format!("http://{}", api.address)).env("TOOLGATE_TOKEN", ADMINISTRATOR);
        let printed = programs::output(command.stdin(Stdio::from(input)))?;
        let credential = field(&printed, "credential_id")?;
        let constraints = r#"{
            "max_invocations_per_hour": 1000000000,
            "allowed_parameters": {"currency": ["usd", "eur"], "amount_max": 5000}
        }"#;
        grant(api, &credential, "bench-agent", constraints)
    }

    /// Makes an agent that may call many tools; returns its key.
    fn grant_many(&self, subject: &Subject) -> Result<String, String> {
        let api = subject.as_administrator();
        let tools: Vec<String> = (0..MANY).map(|number| tool(&format!("charges.create{number}"))).collect();
        let service = format!(
            r#"{{"service": "many", "version": "1", "base_url": "{}", "tools": {{{}}}}}"#,
            self.upstream.url(),
            tools.join(",")
        );
        api.post("/api/v1/services", &service)?;
        api.post("/api/v1/agents", r#"{"id":"many-agent"}"#)?;
        let key = field(&api.post("/api/v1/agents/many-agent/keys", "")?, "key")?;
        let vault = field(&api.post("/api/v1/vaults", r#"{"name":"many"}"#)?, "id")?;
        let credential = format!(
            r#"{{"service": "many", "label": "Many", "auth_type": "bearer_token", "scopes_available": ["echo"],
                 "material": {{"token": "{SECRET}"}}}}"#
        );
        let credential = field(&api.post(&format!("/api/v1/vaults/{vault}/credentials"), &credential)?, "id")?;
        grant(api, &credential, "many-agent", "{}")?;
        Ok(key)
    }
}

fn endpoint(subject: &Subject) -> String {
    format!("http://{}/mcp", subject.as_agent().address)
}

/// Opens a session of a legacy client; returns its id.
pub fn open_session(api: Api<'_>) -> Result<String, String> {
    let members = r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}"#;
    let request = Era::Legacy.request("", "initialize", None, members, None);
    let response = api.post_with("/mcp", &request.headers, &request.body)?;
    let session = response.header("mcp-session-id").map(str::to_owned);
    session.ok_or_else(|| format!("`initialize` opened no session: {}", response.body))
}

fn grant(api: Api<'_>, credential: &str, agent: &str, constraints: &str) -> Result<(), String> {
    let grant = format!(
        r#"{{"credential_id": "{credential}", "agent_id": "{agent}", "scopes": ["echo"], "constraints": {constraints}}}"#
    );
    api.post("/api/v1/grants", &grant).map(drop)
}

fn tool(name: &str) -> String {
    format!(
        r#""{name}": {{
            "description": "Creates a charge for a customer and returns its id, its status and the amount.",
            "scope": "echo",
            "parameters": {{
                "type": "object",
                "properties": {{
                    "amount": {{"type": "integer", "minimum": 1, "description": "In the smallest unit of the currency."}},
                    "currency": {{"type": "string", "enum": ["usd", "eur"]}},
                    "note": {{"type": "string", "description": "Shown to the customer."}}
                }},
                "required": ["amount", "currency"],
                "additionalProperties": false
            }},
            "http": {{"method": "POST", "path": "/v1/echo"}}
        }}"#
    )
}
