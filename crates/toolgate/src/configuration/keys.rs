//! Every key of the configuration. The example file, the check for unknown keys, `toolgate config check` and the typed
//! configuration all use this table.

use toml::de::DeValue;
use toolgate_cli::durations;
use toolgate_cli::environment::Environment;

use super::file::nearest;
use super::mounts::SECRET_VARIABLE;
use super::value::{Kind, Value};

#[derive(Debug)]
pub struct Key {
    /// `section.name`, or `section.group.name`.
    pub path: &'static str,
    pub kind: Kind,
    /// The value if none is given.
    pub fallback: Fallback,
    /// The value in the example file, as TOML: the default if it is fixed.
    pub example: &'static str,
    /// The flag of `toolgate serve` that sets it.
    pub flag: Option<&'static str>,
    /// The variable that sets it.
    pub variable: &'static str,
    /// The description in the example file.
    pub meaning: &'static str,
}

/// The value of a key that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The value of the example.
    Example,
    /// None: the feature stays off.
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

    /// The path of a duration key when the duration is written with its unit: `idle_timeout = "75s"` for
    /// `idle_timeout_seconds = 75`. `None` for all other keys.
    pub fn duration_path(&self) -> Option<&'static str> {
        self.unit().map(|(path, _)| path)
    }

    /// The expected form, for errors.
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

    /// The path without its unit, and the unit in milliseconds.
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

        /// All keys, in the order of the example file: by section, and a key after those that its default depends on.
        pub static KEYS: &[Key] = &[$($constant,)+];
    };
}

keys! {
    LISTEN = "server.listen": Kind::Address, Fallback::Example, r#""127.0.0.1:7300""#, Some("--listen"), "TOOLGATE_LISTEN",
        "Address and port to listen on. Beyond loopback this needs server.tls, or server.allow_plain_http.";
    UNIX_SOCKET = "server.unix_socket": Kind::Path, Fallback::Nothing, r#""/run/toolgate/gate.sock""#, None, "TOOLGATE_UNIX_SOCKET",
        "A Unix socket to listen on as well, with mode 0600, for programs that run as the same user. Its clients \
        count as 127.0.0.1. Default: none.";
    ALLOW_PLAIN_HTTP = "server.allow_plain_http": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_ALLOW_PLAIN_HTTP",
        "Allows listening beyond loopback without TLS. Keys then travel in clear text, so put a proxy that terminates \
        TLS in front.";
    TLS_CERTIFICATE = "server.tls.certificate": Kind::Path, Fallback::Nothing, r#""/etc/toolgate/tls/cert.pem""#, None, "TOOLGATE_TLS_CERTIFICATE",
        "The certificate chain for server.listen, PEM. It is reloaded within ten seconds of a change, and on SIGHUP. \
        Default: none, plain HTTP.";
    TLS_KEY = "server.tls.key": Kind::Path, Fallback::Nothing, r#""/etc/toolgate/tls/key.pem""#, None, "TOOLGATE_TLS_KEY",
        "The private key of server.tls.certificate, PEM. Set both or neither.";
    TLS_MINIMUM_VERSION = "server.tls.minimum_version": Kind::Choice(&["1.2", "1.3"]), Fallback::Example, r#""1.2""#, None, "TOOLGATE_TLS_MINIMUM_VERSION",
        "The minimum TLS version.";
    TLS_CLIENT_CA = "server.tls.client_ca": Kind::Path, Fallback::Nothing, r#""/etc/toolgate/tls/client-ca.pem""#, None, "TOOLGATE_TLS_CLIENT_CA",
        "The CAs whose client certificates are accepted, PEM, reloaded like server.tls.certificate. Default: none, \
        client certificates are not requested.";
    TLS_CLIENT_CERTIFICATES = "server.tls.client_certificates": Kind::Choice(&["optional", "required"]), Fallback::Example, r#""optional""#, None, "TOOLGATE_TLS_CLIENT_CERTIFICATES",
        "With server.tls.client_ca: whether clients without a certificate may connect. If a certificate is required, \
        probes that have none need server.unix_socket.";
    TRUSTED_PROXIES = "server.trusted_proxies": Kind::Networks, Fallback::Example, "[]", None, "TOOLGATE_TRUSTED_PROXIES",
        "The addresses of trusted proxies, as CIDRs; the variable takes them separated by commas. The client address \
        is taken from their headers only.";
    FORWARDED_HEADER = "server.forwarded_header": Kind::Choice(&["x-forwarded-for", "forwarded"]), Fallback::Example, r#""x-forwarded-for""#, None, "TOOLGATE_FORWARDED_HEADER",
        "The header in which trusted proxies send the client address. The other one is not read.";
    PROXY_PROTOCOL = "server.proxy_protocol": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_PROXY_PROTOCOL",
        "Requires that every connection to server.listen comes from a trusted proxy and begins with a PROXY protocol \
        header, version 1 or 2.";
    MAX_BODY_BYTES = "server.max_body_bytes": Kind::Integer { least: 1024, most: 64 * 1024 * 1024 }, Fallback::Example, "1048576", None, "TOOLGATE_MAX_BODY_BYTES",
        "The maximum size of a request body, in bytes.";
    BODY_MEMORY = "server.body_memory_mebibytes": Kind::Integer { least: 16, most: 1_048_576 }, Fallback::Example, "256", None, "TOOLGATE_BODY_MEMORY_MEBIBYTES",
        "The maximum memory for the bodies of all requests in flight, raw and parsed, in MiB; further large bodies \
        get 503. About a third of the memory of the process is a good value.";
    BODY_MEMORY_PER_KEY = "server.body_memory_per_key_mebibytes": Kind::Integer { least: 4, most: 1_048_576 }, Fallback::Example, "64", None, "TOOLGATE_BODY_MEMORY_PER_KEY_MEBIBYTES",
        "The maximum share of one key in that memory, in MiB; further large bodies get 429.";
    MAX_CONNECTIONS = "server.max_connections": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "4096", None, "TOOLGATE_MAX_CONNECTIONS",
        "The maximum number of open connections. A few more are accepted for /healthz, /readyz and /metrics, where \
        other requests get 503; the rest are closed.";
    MAX_CONNECTIONS_PER_ADDRESS = "server.max_connections_per_address": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "2048", None, "TOOLGATE_MAX_CONNECTIONS_PER_ADDRESS",
        "The maximum number of open connections of one address (for IPv6, one /64 network) on which no valid key was \
        presented. Trusted proxies are exempt.";
    MAX_REQUESTS_PER_KEY = "server.max_requests_per_key": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "1024", None, "TOOLGATE_MAX_REQUESTS_PER_KEY",
        "The maximum number of requests in flight of one key, or of one address without a key, including calls that \
        wait for an approver and event streams.";
    MAX_STREAMS_PER_PRINCIPAL = "server.max_streams_per_principal": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "64", None, "TOOLGATE_MAX_STREAMS_PER_PRINCIPAL",
        "The maximum number of open event streams (approvals, runs, log) of one principal on one gate.";
    HEADER_TIMEOUT = "server.header_timeout_seconds": Kind::Integer { least: 1, most: 3600 }, Fallback::Example, "15", None, "TOOLGATE_HEADER_TIMEOUT_SECONDS",
        "The timeout for receiving the headers of a request, in seconds; for the first request it starts with the \
        connection and includes the TLS handshake.";
    IDLE_TIMEOUT = "server.idle_timeout_seconds": Kind::Integer { least: 1, most: 86_400 }, Fallback::Example, "75", None, "TOOLGATE_IDLE_TIMEOUT_SECONDS",
        "The timeout for idle connections, in seconds. Use a longer one than the proxy in front.";
    LAME_DUCK = "server.lame_duck_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "5", None, "TOOLGATE_LAME_DUCK_SECONDS",
        "How long the gate keeps serving after SIGTERM, in seconds, while /readyz fails and connections are closed \
        after their next response, so that load balancers switch to other replicas. SIGINT, or a second SIGTERM, \
        skips this phase.";
    DRAIN = "server.drain_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "30", None, "TOOLGATE_DRAIN_SECONDS",
        "The timeout for the requests in flight to finish after that, in seconds.";
    RATE_LIMIT_REQUESTS = "server.rate_limit.requests": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Nothing, "600", None, "TOOLGATE_RATE_LIMIT_REQUESTS",
        "The maximum number of requests of one key, or of one address without a key, in a period; further ones get \
        429. Each gate counts separately. Default: no limit.";
    RATE_LIMIT_PER_SECONDS = "server.rate_limit.per_seconds": Kind::Integer { least: 1, most: 2_678_400 }, Fallback::Nothing, "60", None, "TOOLGATE_RATE_LIMIT_PER_SECONDS",
        "The period of rate_limit.requests, in seconds. Set both or neither.";
    RATE_LIMIT_BURST = "server.rate_limit.burst": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Nothing, "100", None, "TOOLGATE_RATE_LIMIT_BURST",
        "The maximum number of these requests in a burst. Default: rate_limit.requests.";
    PUBLIC_URL = "server.public_url": Kind::PublicUrl, Fallback::Nothing, r#""https://gate.example.com""#, None, "TOOLGATE_PUBLIC_URL",
        "The URL of this gate for browsers, used for the links that the approval webhook receives and as the \
        audience of access tokens. Default: none, no links are sent.";
    SEAMS = "server.seams": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_SEAMS",
        "Serves the conformance endpoints (\"seams\") of OpenWOP under /v1/host/sample. Leave it off in production.";
    DATA = "ledger.data": Kind::Path, Fallback::DataHome, r#""/var/lib/toolgate""#, Some("--data"), "TOOLGATE_DATA",
        "The directory of the embedded ledger; created with mode 0700 if it does not exist, and used by one process \
        at a time. Default: toolgate in $XDG_DATA_HOME, which is ~/.local/share unless set.";
    DATABASE_URL = "ledger.database_url": Kind::DatabaseUrl, Fallback::Nothing, r#""postgres://toolgate@localhost:5432/toolgate""#, Some("--database"), "TOOLGATE_DATABASE_URL",
        "The PostgreSQL database (15 or later) to use as the ledger instead of the embedded one. Set a password by \
        the variable rather than here. Default: none.";
    CONNECTIONS = "ledger.connections": Kind::Integer { least: 3, most: 1000 }, Fallback::Example, "16", None, "TOOLGATE_DATABASE_CONNECTIONS",
        "The maximum number of connections of one gate to PostgreSQL; two of them are reserved for calls.";
    LEDGER_TIMEOUT = "ledger.timeout_seconds": Kind::Integer { least: 1, most: 300 }, Fallback::Example, "15", None, "TOOLGATE_LEDGER_TIMEOUT_SECONDS",
        "The timeout for one transaction on PostgreSQL, in seconds, including the wait for a connection. A connection \
        that exceeds it is closed.";
    PROVIDER = "keys.provider": Kind::Choice(&["file", "environment", "command"]), Fallback::Example, r#""file""#, None, "TOOLGATE_KEY_PROVIDER",
        "The source of the master key: a file, the variables TOOLGATE_MASTER_KEY and TOOLGATE_MASTER_KEY_PREVIOUS, or \
        a command that wraps and unwraps data keys.";
    KEY_FILE = "keys.file": Kind::Path, Fallback::ConfigurationHome("master.key"), r#""/etc/toolgate/master.key""#, None, "TOOLGATE_KEY_FILE",
        "The file of the provider `file`; created with mode 0600 at the first start, and not allowed inside the data \
        directory. Without it no credential can be unsealed: keep a copy. Default: toolgate/master.key in \
        $XDG_CONFIG_HOME, which is ~/.config unless set.";
    KEY_COMMAND = "keys.command": Kind::Words, Fallback::Nothing, r#"["/usr/local/bin/kms-wrap", "--region", "eu-1"]"#, None, "TOOLGATE_KEY_COMMAND",
        "The program of the provider `command` and its arguments; no shell is used. The variable takes words \
        separated by spaces. Default: none.";
    KEY_COMMAND_TIMEOUT = "keys.command_timeout_seconds": Kind::Integer { least: 1, most: 300 }, Fallback::Example, "10", None, "TOOLGATE_KEY_COMMAND_TIMEOUT_SECONDS",
        "The timeout for one run of the command, in seconds.";
    AUDIT_KEY_FILE = "audit.key_file": Kind::Path, Fallback::BesideMasterKey("audit.key"), r#""/etc/toolgate/audit.key""#, None, "TOOLGATE_AUDIT_KEY_FILE",
        "The file of the Ed25519 key that signs the audit log; created with mode 0600 at the first start. A ledger \
        accepts only the key that its log was started with: keep a copy. Default: audit.key beside keys.file.";
    HEADS_DIRECTORY = "audit.heads_directory": Kind::Path, Fallback::DirectoryOfAuditKey, r#""/etc/toolgate""#, None, "TOOLGATE_AUDIT_HEADS_DIRECTORY",
        "The directory for the newest signed heads of the audit log, one file per ledger. At start they reveal a \
        ledger that was rolled back. It must be writable, on storage that is not restored together with the ledger. \
        Default: the directory of audit.key_file.";
    INTEGRATE = "audit.integrate_milliseconds": Kind::Integer { least: 10, most: 1000 }, Fallback::Example, "250", None, "TOOLGATE_AUDIT_INTEGRATE_MILLISECONDS",
        "The interval at which committed events are integrated into the signed log, in milliseconds.";
    REFUSALS_PER_SECOND = "audit.refusals_per_second": Kind::Integer { least: 1, most: 10_000 }, Fallback::Example, "10", None, "TOOLGATE_AUDIT_REFUSALS_PER_SECOND",
        "The number of refused calls of one principal that are recorded individually per second, after a burst of ten \
        times as many; further ones are counted and recorded in one event.";
    GRANT_LIFETIME = "grants.default_lifetime_days": Kind::Integer { least: 1, most: 36_500 }, Fallback::Example, "30", None, "TOOLGATE_GRANT_LIFETIME_DAYS",
        "The lifetime of grants without `expires_at`, in days.";
    RETIRE_AFTER = "vault.retire_after_seconds": Kind::Integer { least: 121, most: 86_400 }, Fallback::Example, "150", None, "TOOLGATE_RETIRE_AFTER_SECONDS",
        "How long rotated material is kept for calls already admitted, in seconds. It must exceed the maximum \
        duration of a call, which is 120.";
    APPROVALS_WAIT = "approvals.wait_seconds": Kind::Integer { least: 1, most: 604_800 }, Fallback::Example, "300", None, "TOOLGATE_APPROVALS_WAIT_SECONDS",
        "How long a call waits for a decision if neither its tool nor its session sets a time, in seconds. Without a \
        decision the call is denied.";
    APPROVALS_ATTENDANCE = "approvals.attendance": Kind::Choice(&["inbox", "required"]), Fallback::Example, r#""inbox""#, None, "TOOLGATE_APPROVALS_ATTENDANCE",
        "Whether a call waits if no approver is connected (inbox), or is denied at once (required).";
    APPROVALS_MODE = "approvals.mode": Kind::Choice(&["default", "auto_edit", "force"]), Fallback::Example, r#""default""#, None, "TOOLGATE_APPROVALS_MODE",
        "The mode of sessions that set none: default asks before every call, auto_edit before commands and external \
        tools, force never.";
    APPROVALS_MODE_CHANGES = "approvals.mode_changes": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_APPROVALS_MODE_CHANGES",
        "Allows approvers to raise the mode of a session by a request.";
    APPROVALS_HIGHEST_MODE = "approvals.highest_mode": Kind::Choice(&["default", "auto_edit", "force"]), Fallback::Example, r#""force""#, None, "TOOLGATE_APPROVALS_HIGHEST_MODE",
        "The highest mode that any session can have, regardless of other settings.";
    APPROVALS_OPEN_PER_AGENT = "approvals.open_per_agent": Kind::Integer { least: 1, most: 2000 }, Fallback::Example, "20", None, "TOOLGATE_APPROVALS_OPEN_PER_AGENT",
        "The maximum number of pending approvals of one agent; further calls that need one are refused until some are \
        decided.";
    APPROVALS_DETACH = "approvals.detach": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_APPROVALS_DETACH",
        "Detaches every call that must wait for an approver: the response is 202, and the call continues without its \
        connection. Tools and agents can also request this themselves.";
    APPROVALS_WEBHOOK_URL = "approvals.webhook_url": Kind::HookUrl, Fallback::Nothing, r#""https://hooks.example.com/toolgate""#, None, "TOOLGATE_APPROVALS_WEBHOOK_URL",
        "The webhook that approval events are sent to, as signed JSON, so that approvers can be notified. The signing \
        secret is in the variable TOOLGATE_APPROVALS_WEBHOOK_SECRET: at least 24 characters, or whsec_ and base64. \
        Default: none.";
    APPROVALS_WEBHOOK_DETAILS = "approvals.webhook_details": Kind::Choice(&["none", "description"]), Fallback::Example, r#""none""#, None, "TOOLGATE_APPROVALS_WEBHOOK_DETAILS",
        "What the webhook receives about a call besides its tool and agent: nothing, or its description, which may \
        show parts of the arguments. The arguments themselves are never sent.";
    STORED_RESULTS = "calls.stored_results_mebibytes": Kind::Integer { least: 1, most: 1_048_576 }, Fallback::Example, "256", None, "TOOLGATE_CALLS_STORED_RESULTS_MEBIBYTES",
        "How many results of calls with idempotency keys are stored for one agent per day, in MiB. Beyond that only \
        the key is stored, so that no call is made twice, and not the result.";
    DETACHED_PER_AGENT = "calls.detached_per_agent": Kind::Integer { least: 1, most: 10_000 }, Fallback::Example, "100", None, "TOOLGATE_CALLS_DETACHED_PER_AGENT",
        "The maximum number of stored detached calls of one agent: those that wait and those whose result is kept.";
    DETACHED_BYTES_PER_AGENT = "calls.detached_bytes_per_agent": Kind::Integer { least: 65_536, most: 1 << 34 }, Fallback::Example, "67108864", None, "TOOLGATE_CALLS_DETACHED_BYTES_PER_AGENT",
        "The maximum size of the sealed requests and results of one agent's detached calls, in bytes.";
    KEEP_RESULTS = "calls.keep_results_seconds": Kind::Integer { least: 60, most: 2_592_000 }, Fallback::Example, "86400", None, "TOOLGATE_CALLS_KEEP_RESULTS_SECONDS",
        "How long the result of a detached call is kept for its caller, in seconds.";
    WORKSPACE_ROOT = "workspace.root": Kind::Path, Fallback::Nothing, r#""/home/me/project""#, None, "TOOLGATE_WORKSPACE_ROOT",
        "Enables the workspace tools (Read, Glob, Grep, Write, Edit, Bash, AskUserQuestion), limited to this \
        directory, for agents with the scope workspace:read, workspace:write or workspace:exec. Default: none, they \
        are disabled.";
    WORKSPACE_TENANTS = "workspace.tenants": Kind::Tenants, Fallback::Example, r#"["default"]"#, None, "TOOLGATE_WORKSPACE_TENANTS",
        "The tenants whose agents may use the workspace tools; other tenants do not have them. The variable takes \
        them separated by commas.";
    WORKSPACE_NETWORK = "workspace.network": Kind::Switch, Fallback::Example, "false", None, "TOOLGATE_WORKSPACE_NETWORK",
        "Allows workspace commands to use the network.";
    WORKSPACE_SANDBOX = "workspace.sandbox": Kind::Choice(&["required", "where_possible", "off"]), Fallback::Example, r#""where_possible""#, None, "TOOLGATE_WORKSPACE_SANDBOX",
        "Whether workspace commands must run in a sandbox (Landlock or bubblewrap), which limits their writes to the \
        root and disables the network.";
    WORKSPACE_MEMORY = "workspace.max_memory_mib": Kind::Integer { least: 64, most: 16_777_216 }, Fallback::Example, "8192", None, "TOOLGATE_WORKSPACE_MAX_MEMORY_MIB",
        "The maximum private memory of each process of a command, in MiB.";
    WORKSPACE_PROCESSES = "workspace.max_processes": Kind::Integer { least: 8, most: 4_194_304 }, Fallback::Example, "4096", None, "TOOLGATE_WORKSPACE_MAX_PROCESSES",
        "The maximum number of processes and threads of a command. Linux does not enforce it for root.";
    WORKSPACE_FILE_SIZE = "workspace.max_file_mib": Kind::Integer { least: 1, most: 16_777_216 }, Fallback::Example, "4096", None, "TOOLGATE_WORKSPACE_MAX_FILE_MIB",
        "The maximum size of a file that a command writes, in MiB.";
    MOUNTS_FILE = "mounts.file": Kind::Path, Fallback::Nothing, r#""mounts.toml""#, None, "TOOLGATE_MOUNTS_FILE",
        "A file with mounted MCP servers: over HTTP, and processes of this machine. Default: none.";
    MOUNTS_CHECK = "mounts.check_seconds": Kind::Integer { least: 10, most: 86_400 }, Fallback::Example, "300", None, "TOOLGATE_MOUNTS_CHECK_SECONDS",
        "How often each mounted MCP server is inspected for changed definitions. A `list_changed` notification triggers an inspection at once.";
    IDENTITY_FILE = "identity.file": Kind::Path, Fallback::Nothing, r#""identity.toml""#, None, "TOOLGATE_IDENTITY_FILE",
        "A file with the issuers whose access tokens are accepted besides keys. It needs server.public_url. Default: \
        none, only keys are accepted.";
    GUARDIANS_FILE = "guardians.file": Kind::Path, Fallback::Nothing, r#""guardians.toml""#, None, "TOOLGATE_GUARDIANS_FILE",
        "A file that configures the guardians consulted about calls and results, and the runtimes that send hook \
        requests to /v1/hooks/aos. Default: none.";
    GUARDIANS_BUDGET = "guardians.budget_milliseconds": Kind::Integer { least: 1, most: 120_000 }, Fallback::Example, "2000", None, "TOOLGATE_GUARDIANS_BUDGET_MILLISECONDS",
        "The timeout for all guardians together for one event, in addition to their own timeouts.";
    EGRESS_ALLOW = "egress.allow": Kind::Networks, Fallback::Example, "[]", None, "TOOLGATE_EGRESS_ALLOW",
        "Private networks that tool calls may reach, as CIDRs; the variable takes them separated by commas. All other \
        addresses that are not public are refused.";
    MAX_OUTBOUND = "egress.max_connections": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "4096", None, "TOOLGATE_EGRESS_MAX_CONNECTIONS",
        "The maximum number of calls to services in flight, each with its own connection; the limit of open files may \
        lower it. Further calls are refused with 503 before they are admitted.";
    MAX_LOOKUPS = "egress.max_lookups": Kind::Integer { least: 4, most: 500 }, Fallback::Example, "32", None, "TOOLGATE_EGRESS_MAX_LOOKUPS",
        "The maximum number of concurrent DNS lookups of services; one credential, or one agent that fetches without \
        a credential, may use a quarter of them. Further lookups wait.";
    SESSIONS_PER_PRINCIPAL = "openwop.sessions_per_principal": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "100", None, "TOOLGATE_OPENWOP_SESSIONS_PER_PRINCIPAL",
        "The maximum number of open tool sessions of one principal.";
    OPENWOP_TOOL_LIST = "openwop.tool_list": Kind::Choice(&["array", "object"]), Fallback::Example, r#""array""#, None, "TOOLGATE_OPENWOP_TOOL_LIST",
        "The response of GET /v1/tools: a bare array, as the OpenWOP conformance suite expects, or an object with \
        `tools`, as the text of RFC 0078 says.";
    MCP_ALLOWED_ORIGINS = "mcp.allowed_origins": Kind::Origins, Fallback::Example, "[]", None, "TOOLGATE_MCP_ALLOWED_ORIGINS",
        "The origins of web pages that may use /mcp, besides pages of this machine and of server.public_url; the variable takes them separated by commas.";
    MCP_HOLD = "mcp.hold_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "25", None, "TOOLGATE_MCP_HOLD_SECONDS",
        "How long a call of an MCP client that waits for an approver is held on its connection, in seconds; after that the response asks the client to repeat the call.";
    MCP_SESSIONS = "mcp.sessions": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "10000", None, "TOOLGATE_MCP_SESSIONS",
        "The maximum number of open sessions of MCP clients of versions before 2026-07-28. At the limit, the session that has been idle longest is closed.";
    MCP_SESSIONS_PER_PRINCIPAL = "mcp.sessions_per_principal": Kind::Integer { least: 1, most: 1_000_000 }, Fallback::Example, "100", None, "TOOLGATE_MCP_SESSIONS_PER_PRINCIPAL",
        "The maximum number of these sessions per principal.";
    MCP_SESSION_IDLE = "mcp.session_idle_seconds": Kind::Integer { least: 10, most: 604_800 }, Fallback::Example, "3600", None, "TOOLGATE_MCP_SESSION_IDLE_SECONDS",
        "After how long without a request such a session ends, in seconds.";
    OTLP_ENDPOINT = "telemetry.otlp_endpoint": Kind::PublicUrl, Fallback::Nothing, r#""http://127.0.0.1:4318""#, None, "TOOLGATE_TELEMETRY_OTLP_ENDPOINT",
        "The OpenTelemetry collector that traces and metrics are exported to, by OTLP over HTTP with protobuf; \
        /v1/traces and /v1/metrics are added. It may be on this machine or in a private network. Its bearer token is \
        in the variable TOOLGATE_TELEMETRY_OTLP_TOKEN. Default: none, nothing is exported.";
    TRACES_PER_MILLION = "telemetry.traces_per_million": Kind::Integer { least: 0, most: 1_000_000 }, Fallback::Example, "10000", None, "TOOLGATE_TELEMETRY_TRACES_PER_MILLION",
        "The number of calls per million that are exported as traces. For requests from server.trusted_proxies with a \
        traceparent, its sampled flag decides instead.";
    METRICS_INTERVAL = "telemetry.metrics_interval_seconds": Kind::Integer { least: 0, most: 3600 }, Fallback::Example, "60", None, "TOOLGATE_TELEMETRY_METRICS_INTERVAL_SECONDS",
        "The interval at which metrics are exported, in seconds; 0 disables the export.";
    LOG_FORMAT = "log.format": Kind::Choice(&["auto", "human", "json"]), Fallback::Example, r#""auto""#, None, "TOOLGATE_LOG_FORMAT",
        "The format of the log on standard error; auto is human on a terminal and json elsewhere.";
    LOG_LEVEL = "log.level": Kind::LogLevel, Fallback::Example, r#""info""#, None, "TOOLGATE_LOG",
        "The log level: error, warn, info, debug or trace; or levels by module, as in \"warn,toolgate_ledger=debug\".";
    LOG_CALLS = "log.calls": Kind::Choice(&["off", "refused", "all"]), Fallback::Example, r#""refused""#, None, "TOOLGATE_LOG_CALLS",
        "The finished calls that are logged at level info: none, those that were refused or whose outcome is unknown, \
        or all. Refusals beyond audit.refusals_per_second are not logged.";
}

/// Variables that are no keys of the file.
pub const OTHER_VARIABLES: &[&str] = &["TOOLGATE_CONFIG", "TOOLGATE_PROFILE", "TOOLGATE_URL"];

/// Variables without a key in the file, which contain a secret.
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

/// Warnings about variables that look like Toolgate's and are not. No error, since others may set such names: an
/// orchestrator does so for every service that it knows.
pub fn unknown_variables(environment: &Environment) -> Vec<String> {
    let is_known = |name: &str| name.starts_with(SECRET_VARIABLE) || variables().any(|known| known == name);
    let unknown = environment.names().filter(|name| name.starts_with("TOOLGATE_") && !is_known(name));
    unknown
        .map(|name| match nearest(name, variables()) {
            Some(near) => format!("the variable {name} is not known and has no effect; did you mean {near}?"),
            None => format!("the variable {name} is not known and has no effect"),
        })
        .collect()
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
    fn an_unknown_variable_is_reported_with_the_nearest_known_one() {
        let set = ["TOOLGATE_LISTN", "TOOLGATE_DATBASE_URL"].map(|name| (name.to_owned(), "x".into()));
        let warnings = unknown_variables(&Environment::new(set));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].contains("TOOLGATE_DATABASE_URL"), "{}", warnings[0]);
        assert!(warnings[1].contains("TOOLGATE_LISTEN"), "{}", warnings[1]);
    }

    #[test]
    fn the_keys_of_a_section_stand_together() {
        let mut sections: Vec<&str> = KEYS.iter().map(Key::section).collect();
        sections.dedup();
        let distinct: BTreeSet<&str> = sections.iter().copied().collect();
        assert_eq!(sections.len(), distinct.len());
    }
}
