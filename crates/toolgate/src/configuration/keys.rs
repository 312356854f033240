//! Every key of the configuration, once. The example file, the check for unknown keys, `toolgate config check` and the
//! typed configuration all come from this table.

use toml::de::DeValue;

use super::value::{Kind, Value};
use crate::durations;

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Where it stands in the file: `section.name`, or `section.group.name`.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds when nobody gives it.
    pub fallback: Fallback,
    /// How it is written in the example file, as TOML: the default where there is a fixed one.
    pub example: &'static str,
    /// The flag of `toolgate serve` that sets it.
    pub flag: Option<&'static str>,
    /// The variable that sets it.
    pub variable: &'static str,
    /// What it is, for whoever edits the file.
    pub meaning: &'static str,
}

/// What holds when nobody gives a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The value of the example.
    Example,
    /// Nothing: what it switches on stays off.
    Nothing,
    /// Toolgate's directory in the user's data home.
    DataHome,
    /// A file in Toolgate's directory in the user's configuration home.
    ConfigurationHome(&'static str),
    /// A file in the directory of the master key's file.
    BesideMasterKey(&'static str),
    /// The directory of the audit key.
    DirectoryOfAuditKey,
}

impl Key {
    /// The part before the first dot.
    pub fn section(&self) -> &'static str {
        self.path.split_once('.').map_or("", |(section, _)| section)
    }

    /// The part behind the first dot.
    pub fn name(&self) -> &'static str {
        self.path.split_once('.').map_or(self.path, |(_, name)| name)
    }

    /// What a key that holds a duration is called where the duration is written with its unit: `idle_timeout = "75s"` for
    /// `idle_timeout_seconds = 75`. `None` for all other keys.
    pub fn duration_path(&self) -> Option<&'static str> {
        self.unit().map(|(path, _)| path)
    }

    /// What to write, for whoever wrote something else.
    pub fn expected(&self) -> String {
        let expected = self.kind.expected();
        if self.unit().is_some() { format!("{expected}, or {}", durations::ADVICE) } else { expected }
    }

    /// Reads a flag or a variable; `None` where it is something else.
    pub fn read_text(&self, text: &str) -> Option<Value> {
        self.kind.read_text(text).or_else(|| self.read_duration(text))
    }

    /// Reads a value of the file; `None` where it is something else.
    pub fn read_toml(&self, value: &DeValue<'_>) -> Option<Value> {
        self.kind.read_toml(value).or_else(|| self.read_duration(value.as_str()?))
    }

    /// Reads a duration with its unit.
    pub fn read_duration(&self, text: &str) -> Option<Value> {
        let (_, unit) = self.unit()?;
        self.kind.read_text(&durations::in_units(text, unit)?.to_string())
    }

    /// The path without its unit, and how many milliseconds that is.
    fn unit(&self) -> Option<(&'static str, u64)> {
        let units = [("_milliseconds", 1), ("_seconds", 1_000), ("_days", 86_400_000)];
        units.into_iter().find_map(|(ending, unit)| Some((self.path.strip_suffix(ending)?, unit)))
    }
}

/// A key of the table.
macro_rules! keys {
    ($($constant:ident = $path:literal: $kind:expr, $fallback:expr, $example:literal, $flag:expr, $variable:literal,
        $meaning:literal;)+) => {
        $(
            #[doc = concat!("`", $path, "`: ", $meaning)]
            pub const $constant: Key = Key {
                path: $path,
                kind: $kind,
                fallback: $fallback,
                example: $example,
                flag: $flag,
                variable: $variable,
                meaning: $meaning,
            };
        )+

        /// All of them, in the order of the example file: by section, and a key behind those that its default rests on.
        pub static KEYS: &[Key] = &[$($constant,)+];
    };
}

keys! {
    LISTEN = "server.listen": Kind::Address, Fallback::Example, r#""127.0.0.1:7300""#, Some("--listen"), "TOOLGATE_LISTEN",
        "Address and port to listen on. Beyond loopback this needs server.tls, or server.allow_plain_http.";
    UNIX_SOCKET = "server.unix_socket": Kind::Path, Fallback::Nothing, r#""/run/toolgate/gate.sock""#, None, "TOOLGATE_UNIX_SOCKET",
        "A socket file to listen on as well, with mode 0600, for programs that run as the same user. They count as 127.0.0.1. Default: none.";
    ALLOW_PLAIN_HTTP = "server.allow_plain_http": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_ALLOW_PLAIN_HTTP",
        "Allows to listen beyond loopback without TLS. Keys travel in the clear then, so have a proxy in front that terminates TLS.";
    TLS_CERTIFICATE = "server.tls.certificate": Kind::Path, Fallback::Nothing, r#""/etc/toolgate/tls/cert.pem""#, None, "TOOLGATE_TLS_CERTIFICATE",
        "The certificate for server.listen with its chain, PEM. It is read again within ten seconds of a change, and at SIGHUP. Default: none, plain HTTP.";
    TLS_KEY = "server.tls.key": Kind::Path, Fallback::Nothing, r#""/etc/toolgate/tls/key.pem""#, None, "TOOLGATE_TLS_KEY",
        "The private key of server.tls.certificate, PEM; given with it or not at all.";
    TLS_MINIMUM_VERSION = "server.tls.minimum_version": Kind::Choice(&["1.2", "1.3"]), Fallback::Example, r#""1.2""#, None, "TOOLGATE_TLS_MINIMUM_VERSION",
        "The oldest version of TLS that is spoken.";
    TLS_CLIENT_CA = "server.tls.client_ca": Kind::Path, Fallback::Nothing, r#""/etc/toolgate/tls/client-ca.pem""#, None, "TOOLGATE_TLS_CLIENT_CA",
        "The CAs whose client certificates are accepted, PEM, reloaded like server.tls.certificate. Default: none, clients are not asked for one.";
    TLS_CLIENT_CERTIFICATES = "server.tls.client_certificates": Kind::Choice(&["optional", "required"]), Fallback::Example, r#""optional""#, None, "TOOLGATE_TLS_CLIENT_CERTIFICATES",
        "With server.tls.client_ca: whether a client without a certificate may connect. Probes that have none need a socket file where it is required.";
    TRUSTED_PROXIES = "server.trusted_proxies": Kind::Networks, Fallback::Example, "[]", None, "TOOLGATE_TRUSTED_PROXIES",
        "The addresses of proxies in front, as CIDRs; the variable takes them separated by commas. Only they are believed about the address of a client.";
    FORWARDED_HEADER = "server.forwarded_header": Kind::Choice(&["x-forwarded-for", "forwarded"]), Fallback::Example, r#""x-forwarded-for""#, None, "TOOLGATE_FORWARDED_HEADER",
        "The header in which trusted proxies name the client. The other one is not read.";
    PROXY_PROTOCOL = "server.proxy_protocol": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_PROXY_PROTOCOL",
        "Whether every connection to server.listen comes from a trusted proxy and begins with a header of the PROXY protocol, version 1 or 2.";
    MAX_BODY_BYTES = "server.max_body_bytes": Kind::Integer { least: 1024, most: 64 * 1024 * 1024 }, Fallback::Example, "1048576", None, "TOOLGATE_MAX_BODY_BYTES",
        "The largest request body that is read, in bytes.";
    BODY_MEMORY = "server.body_memory_mebibytes": Kind::Integer { least: 16, most: 1_048_576 }, Fallback::Example, "256", None, "TOOLGATE_BODY_MEMORY_MEBIBYTES",
        "How much memory the bodies of all requests in flight may take, in MiB, as read and as parsed; further large ones get 503. About a third of the memory of the process is a good value.";
    BODY_MEMORY_PER_KEY = "server.body_memory_per_key_mebibytes": Kind::Integer { least: 4, most: 1_048_576 }, Fallback::Example, "64", None, "TOOLGATE_BODY_MEMORY_PER_KEY_MEBIBYTES",
        "How much of that the requests of one key may take, in MiB; further large ones get 429.";
    MAX_CONNECTIONS = "server.max_connections": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "4096", None, "TOOLGATE_MAX_CONNECTIONS",
        "How many connections are served at a time. On a few more, /healthz, /readyz and /metrics are still answered and everything else gets 503; the rest are closed.";
    MAX_CONNECTIONS_PER_ADDRESS = "server.max_connections_per_address": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "2048", None, "TOOLGATE_MAX_CONNECTIONS_PER_ADDRESS",
        "How many connections one address (of IPv6, one /64 network) may have open on which no valid key was presented. Trusted proxies are not counted.";
    MAX_REQUESTS_PER_KEY = "server.max_requests_per_key": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "1024", None, "TOOLGATE_MAX_REQUESTS_PER_KEY",
        "How many requests of one key, or of one address without a key, may be in flight, calls that wait for an approver and streams of events included.";
    MAX_STREAMS_PER_PRINCIPAL = "server.max_streams_per_principal": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "64", None, "TOOLGATE_MAX_STREAMS_PER_PRINCIPAL",
        "How many streams of events (of approvals, of runs, of the log) one principal may have open on one gate.";
    HEADER_TIMEOUT = "server.header_timeout_seconds": Kind::Integer { least: 1, most: 3600 }, Fallback::Example, "15", None, "TOOLGATE_HEADER_TIMEOUT_SECONDS",
        "How long the headers of a request may take to arrive, in seconds; for the first request that is counted from the connection on, TLS included.";
    IDLE_TIMEOUT = "server.idle_timeout_seconds": Kind::Integer { least: 1, most: 86_400 }, Fallback::Example, "75", None, "TOOLGATE_IDLE_TIMEOUT_SECONDS",
        "How long a connection may stay open without a request, in seconds; longer than the proxy in front keeps its own.";
    LAME_DUCK = "server.lame_duck_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "5", None, "TOOLGATE_LAME_DUCK_SECONDS",
        "How long the gate goes on serving after SIGTERM while /readyz fails and connections are given up after their next response, in seconds, so that load balancers turn to other replicas. SIGINT, or a second SIGTERM, skips it.";
    DRAIN = "server.drain_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "30", None, "TOOLGATE_DRAIN_SECONDS",
        "How long requests in flight may take to finish after that, in seconds.";
    RATE_LIMIT_REQUESTS = "server.rate_limit.requests": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Nothing, "600", None, "TOOLGATE_RATE_LIMIT_REQUESTS",
        "How many requests one key, or one address without a key, may send in a period; more are answered with 429. Each gate counts for itself. Default: no limit.";
    RATE_LIMIT_PER_SECONDS = "server.rate_limit.per_seconds": Kind::Integer { least: 1, most: 2_678_400 }, Fallback::Nothing, "60", None, "TOOLGATE_RATE_LIMIT_PER_SECONDS",
        "The period of rate_limit.requests, in seconds; given with it or not at all.";
    RATE_LIMIT_BURST = "server.rate_limit.burst": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Nothing, "100", None, "TOOLGATE_RATE_LIMIT_BURST",
        "How many of these requests may come at once. Default: as many as rate_limit.requests.";
    PUBLIC_URL = "server.public_url": Kind::PublicUrl, Fallback::Nothing, r#""https://gate.example.com""#, None, "TOOLGATE_PUBLIC_URL",
        "Where people reach this gate with a browser, for the links that the webhook of approvals is sent. Default: none, no links are sent.";
    SEAMS = "server.seams": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_SEAMS",
        "Serves the seams of the OpenWOP conformance suite under /v1/host/sample. Leave it off in production.";
    DATA = "ledger.data": Kind::Path, Fallback::DataHome, r#""/var/lib/toolgate""#, Some("--data"), "TOOLGATE_DATA",
        "Directory of the embedded ledger; made with mode 0700 if it is not there, and owned by one process at a time. Default: toolgate in $XDG_DATA_HOME, which is ~/.local/share unless set.";
    DATABASE_URL = "ledger.database_url": Kind::DatabaseUrl, Fallback::Nothing, r#""postgres://toolgate@localhost:5432/toolgate""#, Some("--database"), "TOOLGATE_DATABASE_URL",
        "PostgreSQL 15 or later as the ledger instead of the embedded one. A password is better given by the variable than here. Default: none.";
    CONNECTIONS = "ledger.connections": Kind::Integer { least: 3, most: 1000 }, Fallback::Example, "16", None, "TOOLGATE_DATABASE_CONNECTIONS",
        "How many connections to PostgreSQL one gate holds at most; two of them are for calls alone.";
    LEDGER_TIMEOUT = "ledger.timeout_seconds": Kind::Integer { least: 1, most: 300 }, Fallback::Example, "15", None, "TOOLGATE_LEDGER_TIMEOUT_SECONDS",
        "How long one transaction on PostgreSQL may take, the wait for a connection included, in seconds. A connection on which it takes longer is closed.";
    PROVIDER = "keys.provider": Kind::Choice(&["file", "environment", "command"]), Fallback::Example, r#""file""#, None, "TOOLGATE_KEY_PROVIDER",
        "Where the master key is: in a file, in the variables TOOLGATE_MASTER_KEY and TOOLGATE_MASTER_KEY_PREVIOUS, or behind a command that wraps and unwraps.";
    KEY_FILE = "keys.file": Kind::Path, Fallback::ConfigurationHome("master.key"), r#""/etc/toolgate/master.key""#, None, "TOOLGATE_KEY_FILE",
        "The file of the provider `file`; made with mode 0600 on the first start, never inside the data directory. Without it no credential can be opened: keep a copy. Default: toolgate/master.key in $XDG_CONFIG_HOME, which is ~/.config unless set.";
    KEY_COMMAND = "keys.command": Kind::Words, Fallback::Nothing, r#"["/usr/local/bin/kms-wrap", "--region", "eu-1"]"#, None, "TOOLGATE_KEY_COMMAND",
        "The program of the provider `command` and its arguments; no shell reads them. The variable takes words separated by blanks. Default: none.";
    KEY_COMMAND_TIMEOUT = "keys.command_timeout_seconds": Kind::Integer { least: 1, most: 300 }, Fallback::Example, "10", None, "TOOLGATE_KEY_COMMAND_TIMEOUT_SECONDS",
        "How long one run of the command may take, in seconds.";
    AUDIT_KEY_FILE = "audit.key_file": Kind::Path, Fallback::BesideMasterKey("audit.key"), r#""/etc/toolgate/audit.key""#, None, "TOOLGATE_AUDIT_KEY_FILE",
        "The file of the Ed25519 key that signs the audit log; made with mode 0600 on the first start. A ledger accepts only the key that its log was begun with: keep a copy. Default: audit.key beside keys.file.";
    HEADS_DIRECTORY = "audit.heads_directory": Kind::Path, Fallback::DirectoryOfAuditKey, r#""/etc/toolgate""#, None, "TOOLGATE_AUDIT_HEADS_DIRECTORY",
        "The directory with a file for each ledger of the newest signed heads of its audit log, by which a ledger that went back is noticed at start. Must be writable, on storage that is not restored together with the ledger. Default: that of audit.key_file.";
    INTEGRATE = "audit.integrate_milliseconds": Kind::Integer { least: 10, most: 1000 }, Fallback::Example, "250", None, "TOOLGATE_AUDIT_INTEGRATE_MILLISECONDS",
        "How often committed events are taken into the signed log, in milliseconds.";
    REFUSALS_PER_SECOND = "audit.refusals_per_second": Kind::Integer { least: 1, most: 10_000 }, Fallback::Example, "10", None, "TOOLGATE_AUDIT_REFUSALS_PER_SECOND",
        "How many refused calls of one principal are recorded one by one in a second, after ten times as many at once; further ones are counted and recorded in one event.";
    GRANT_LIFETIME = "grants.default_lifetime_days": Kind::Integer { least: 1, most: 36_500 }, Fallback::Example, "30", None, "TOOLGATE_GRANT_LIFETIME_DAYS",
        "How long a grant lives that does not say when it expires, in days.";
    RETIRE_AFTER = "vault.retire_after_seconds": Kind::Integer { least: 121, most: 86_400 }, Fallback::Example, "150", None, "TOOLGATE_RETIRE_AFTER_SECONDS",
        "How long rotated material stays for calls already admitted, in seconds; longer than a call may take, which is 120.";
    APPROVALS_WAIT = "approvals.wait_seconds": Kind::Integer { least: 1, most: 604_800 }, Fallback::Example, "300", None, "TOOLGATE_APPROVALS_WAIT_SECONDS",
        "How long a call waits for a person's answer where neither its tool nor its session says, in seconds. Nobody answering means no.";
    APPROVALS_ATTENDANCE = "approvals.attendance": Kind::Choice(&["inbox", "required"]), Fallback::Example, r#""inbox""#, None, "TOOLGATE_APPROVALS_ATTENDANCE",
        "Whether a call waits where nobody follows the approvals just then (inbox), or is denied at once (required).";
    APPROVALS_MODE = "approvals.mode": Kind::Choice(&["default", "auto_edit", "force"]), Fallback::Example, r#""default""#, None, "TOOLGATE_APPROVALS_MODE",
        "The mode of sessions that set none: default asks before every call, auto_edit before commands and tools of others, force never.";
    APPROVALS_MODE_CHANGES = "approvals.mode_changes": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_APPROVALS_MODE_CHANGES",
        "Lets sessions raise their mode by a request, by whoever may answer approvals.";
    APPROVALS_HIGHEST_MODE = "approvals.highest_mode": Kind::Choice(&["default", "auto_edit", "force"]), Fallback::Example, r#""force""#, None, "TOOLGATE_APPROVALS_HIGHEST_MODE",
        "The most that any session may let pass, whatever else is said.";
    APPROVALS_OPEN_PER_AGENT = "approvals.open_per_agent": Kind::Integer { least: 1, most: 2000 }, Fallback::Example, "20", None, "TOOLGATE_APPROVALS_OPEN_PER_AGENT",
        "How many approvals of one agent may be open at a time; further calls that need one are refused until some are answered.";
    APPROVALS_DETACH = "approvals.detach": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_APPROVALS_DETACH",
        "Detaches every call that must wait for an approver: it is answered with 202 and goes on without its connection. Tools and agents can ask for the same by themselves.";
    APPROVALS_WEBHOOK_URL = "approvals.webhook_url": Kind::HookUrl, Fallback::Nothing, r#""https://hooks.example.com/toolgate""#, None, "TOOLGATE_APPROVALS_WEBHOOK_URL",
        "Where to send what happens to approvals, as signed JSON, so that somebody can be notified. The secret of the signatures is in the variable TOOLGATE_APPROVALS_WEBHOOK_SECRET: at least 24 characters, or whsec_ and base64. Default: none.";
    APPROVALS_WEBHOOK_DETAILS = "approvals.webhook_details": Kind::Choice(&["none", "description"]), Fallback::Example, r#""none""#, None, "TOOLGATE_APPROVALS_WEBHOOK_DETAILS",
        "What the webhook is told of a call besides its tool and its agent: nothing, or its description, which may show parts of the arguments. The arguments themselves are never sent.";
    STORED_RESULTS = "calls.stored_results_mebibytes": Kind::Integer { least: 1, most: 1_048_576 }, Fallback::Example, "256", None, "TOOLGATE_CALLS_STORED_RESULTS_MEBIBYTES",
        "How much of the results of calls with idempotency keys is kept for one agent in a day, in MiB. Beyond that the key is kept, so that no call is made twice, and the result is not.";
    DETACHED_PER_AGENT = "calls.detached_per_agent": Kind::Integer { least: 1, most: 10_000 }, Fallback::Example, "100", None, "TOOLGATE_CALLS_DETACHED_PER_AGENT",
        "How many detached calls of one agent are stored, those that wait and those whose result is kept.";
    DETACHED_BYTES_PER_AGENT = "calls.detached_bytes_per_agent": Kind::Integer { least: 65_536, most: 1 << 34 }, Fallback::Example, "67108864", None, "TOOLGATE_CALLS_DETACHED_BYTES_PER_AGENT",
        "How many bytes the requests and results of one agent's detached calls may have, sealed.";
    KEEP_RESULTS = "calls.keep_results_seconds": Kind::Integer { least: 60, most: 2_592_000 }, Fallback::Example, "86400", None, "TOOLGATE_CALLS_KEEP_RESULTS_SECONDS",
        "How long the result of a detached call is kept for its caller, in seconds.";
    WORKSPACE_ROOT = "workspace.root": Kind::Path, Fallback::Nothing, r#""/home/me/project""#, None, "TOOLGATE_WORKSPACE_ROOT",
        "Switches the tools of this machine on (Read, Glob, Grep, Write, Edit, Bash, AskUserQuestion), limited to this directory, for agents that hold workspace:read, workspace:write or workspace:exec. Default: none, they are off.";
    WORKSPACE_TENANTS = "workspace.tenants": Kind::Tenants, Fallback::Example, r#"["default"]"#, None, "TOOLGATE_WORKSPACE_TENANTS",
        "The tenants whose agents may be given the tools of this machine; for all others there are none. The variable takes them separated by commas.";
    WORKSPACE_NETWORK = "workspace.network": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_WORKSPACE_NETWORK",
        "Lets commands of the workspace use the network.";
    WORKSPACE_SANDBOX = "workspace.sandbox": Kind::Choice(&["required", "where_possible", "off"]), Fallback::Example, r#""where_possible""#, None, "TOOLGATE_WORKSPACE_SANDBOX",
        "Whether commands of the workspace must run in a sandbox (Landlock or bubblewrap), which keeps their writes below the root and the network off.";
    WORKSPACE_MEMORY = "workspace.max_memory_mib": Kind::Integer { least: 64, most: 16_777_216 }, Fallback::Example, "8192", None, "TOOLGATE_WORKSPACE_MAX_MEMORY_MIB",
        "How much memory each process of a command may have for its own data, in MiB.";
    WORKSPACE_PROCESSES = "workspace.max_processes": Kind::Integer { least: 8, most: 4_194_304 }, Fallback::Example, "4096", None, "TOOLGATE_WORKSPACE_MAX_PROCESSES",
        "How many processes and threads a command may have. Linux does not hold root to it.";
    WORKSPACE_FILE_SIZE = "workspace.max_file_mib": Kind::Integer { least: 1, most: 16_777_216 }, Fallback::Example, "4096", None, "TOOLGATE_WORKSPACE_MAX_FILE_MIB",
        "How large a file that a command writes may become, in MiB.";
    GUARDIANS_FILE = "guardians.file": Kind::Path, Fallback::Nothing, r#""guardians.toml""#, None, "TOOLGATE_GUARDIANS_FILE",
        "A file with the guardians that are asked about calls and results, and with what is agreed with runtimes that ask at /v1/hooks/aos. Default: none.";
    GUARDIANS_BUDGET = "guardians.budget_milliseconds": Kind::Integer { least: 1, most: 120_000 }, Fallback::Example, "2000", None, "TOOLGATE_GUARDIANS_BUDGET_MILLISECONDS",
        "How long all guardians together have for one event, whatever each of them may take.";
    EGRESS_ALLOW = "egress.allow": Kind::Networks, Fallback::Example, "[]", None, "TOOLGATE_EGRESS_ALLOW",
        "Networks that calls of tools may reach although they are private, as CIDRs; the variable takes them separated by commas. Everything that is not a public address is refused otherwise.";
    MAX_OUTBOUND = "egress.max_connections": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "4096", None, "TOOLGATE_EGRESS_MAX_CONNECTIONS",
        "How many calls to services may be in flight, each with a connection of its own; as far as the limit of open files leaves room for them. Further calls are refused with 503 before they are admitted.";
    MAX_LOOKUPS = "egress.max_lookups": Kind::Integer { least: 4, most: 500 }, Fallback::Example, "32", None, "TOOLGATE_EGRESS_MAX_LOOKUPS",
        "How many names of services are looked up at a time; a quarter of them for one credential, or for one agent that fetches without any. Further look-ups wait.";
    SESSIONS_PER_PRINCIPAL = "openwop.sessions_per_principal": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "100", None, "TOOLGATE_OPENWOP_SESSIONS_PER_PRINCIPAL",
        "How many tool sessions one principal may have open at a time.";
    OPENWOP_TOOL_LIST = "openwop.tool_list": Kind::Choice(&["array", "object"]), Fallback::Example, r#""array""#, None, "TOOLGATE_OPENWOP_TOOL_LIST",
        "How GET /v1/tools answers: a bare array, as the conformance suite of OpenWOP wants it, or an object with `tools`, as the text of RFC 0078 says.";
    MCP_ALLOWED_ORIGINS = "mcp.allowed_origins": Kind::Origins, Fallback::Example, "[]", None, "TOOLGATE_MCP_ALLOWED_ORIGINS",
        "The origins of web pages that may use /mcp, besides pages of this machine and of server.public_url; the variable takes them separated by commas.";
    MCP_HOLD = "mcp.hold_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "25", None, "TOOLGATE_MCP_HOLD_SECONDS",
        "How long a call of an MCP client that waits for an approver is held on its connection, in seconds; after that the client is told to call again.";
    MCP_SESSIONS = "mcp.sessions": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "10000", None, "TOOLGATE_MCP_SESSIONS",
        "How many sessions of MCP clients of versions before 2026-07-28 may be open. One more ends the one that was idle for the longest time.";
    MCP_SESSIONS_PER_PRINCIPAL = "mcp.sessions_per_principal": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "100", None, "TOOLGATE_MCP_SESSIONS_PER_PRINCIPAL",
        "How many of them one principal may have open.";
    MCP_SESSION_IDLE = "mcp.session_idle_seconds": Kind::Integer { least: 10, most: 604_800 }, Fallback::Example, "3600", None, "TOOLGATE_MCP_SESSION_IDLE_SECONDS",
        "After how long without a request such a session ends, in seconds.";
    OTLP_ENDPOINT = "telemetry.otlp_endpoint": Kind::PublicUrl, Fallback::Nothing, r#""http://127.0.0.1:4318""#, None, "TOOLGATE_TELEMETRY_OTLP_ENDPOINT",
        "The OpenTelemetry collector that traces and metrics are exported to, by OTLP over HTTP with protobuf; /v1/traces and /v1/metrics are added. It may be on this machine or in a private network. A bearer token for it is in the variable TOOLGATE_TELEMETRY_OTLP_TOKEN. Default: none, nothing is exported.";
    TRACES_PER_MILLION = "telemetry.traces_per_million": Kind::Integer { least: 0, most: 1_000_000 }, Fallback::Example, "10000", None, "TOOLGATE_TELEMETRY_TRACES_PER_MILLION",
        "How many of a million calls are exported as traces. For requests of server.trusted_proxies with a traceparent, its sampled flag decides instead.";
    METRICS_INTERVAL = "telemetry.metrics_interval_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "60", None, "TOOLGATE_TELEMETRY_METRICS_INTERVAL_SECONDS",
        "How often metrics are exported, in seconds; 0 for never.";
    LOG_FORMAT = "log.format": Kind::Choice(&["auto", "human", "json"]), Fallback::Example, r#""auto""#, None, "TOOLGATE_LOG_FORMAT",
        "How the log on standard error looks; auto is human on a terminal and json elsewhere.";
    LOG_LEVEL = "log.level": Kind::LogLevel, Fallback::Example, r#""info""#, None, "TOOLGATE_LOG",
        "What is logged: error, warn, info, debug or trace; or by part, as in \"warn,toolgate_ledger=debug\".";
    LOG_CALLS = "log.calls": Kind::Choice(&["off", "refused", "all"]), Fallback::Example, r#""refused""#, None, "TOOLGATE_LOG_CALLS",
        "Which finished calls get a line at level info: none, those that were refused or whose outcome is unknown, or all. Refusals beyond audit.refusals_per_second get none.";
}

/// Variables that are no keys of the file.
pub const OTHER_VARIABLES: &[&str] = &["TOOLGATE_CONFIG", "TOOLGATE_PROFILE", "TOOLGATE_URL"];

/// Variables that are no keys of the file and hold a secret.
pub const SECRET_VARIABLES: &[&str] = &[
    "TOOLGATE_ADMIN_TOKEN",
    "TOOLGATE_APPROVALS_WEBHOOK_SECRET",
    "TOOLGATE_MASTER_KEY",
    "TOOLGATE_MASTER_KEY_PREVIOUS",
    "TOOLGATE_TELEMETRY_OTLP_TOKEN",
    "TOOLGATE_TOKEN",
];

/// Every variable that means something.
pub fn variables() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.variable).chain(OTHER_VARIABLES.iter().chain(SECRET_VARIABLES).copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_path_and_no_variable_stands_for_two_things() {
        let paths: BTreeSet<&str> = KEYS.iter().map(|key| key.path).collect();
        assert_eq!(paths.len(), KEYS.len());
        let distinct: BTreeSet<&str> = variables().collect();
        assert_eq!(distinct.len(), variables().count());
        assert!(distinct.iter().all(|name| name.starts_with("TOOLGATE_")));
        let durations: Vec<&str> = KEYS.iter().filter_map(Key::duration_path).collect();
        assert!(durations.contains(&"server.idle_timeout") && durations.iter().all(|path| !paths.contains(path)));
    }

    #[test]
    fn the_keys_of_a_section_stand_together() {
        let mut sections: Vec<&str> = KEYS.iter().map(Key::section).collect();
        sections.dedup();
        let distinct: BTreeSet<&str> = sections.iter().copied().collect();
        assert_eq!(sections.len(), distinct.len());
    }
}
