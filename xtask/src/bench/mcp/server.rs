//! The called MCP servers: nginx again, so that a direct call is as fast as one can be. The id of a request is repeated
//! in the response, so nginx has to read the body first: `mirror` makes it do so, and the POST that `empty_gif` refuses
//! is answered from the body. Beside them nginx as a plain proxy.

use super::super::gate::nginx::Nginx;
use super::super::gate::scratch::Scratch;
use super::message::Era;

#[derive(Debug)]
pub struct Servers(Nginx);

impl Servers {
    /// Starts a server of each era.
    pub fn start(scratch: &Scratch) -> Result<Self, String> {
        let maps: String = Era::ALL.into_iter().map(maps).collect();
        let locations: String = Era::ALL.into_iter().map(locations).collect();
        let none = "location = /none { internal; return 204; }\n";
        Nginx::start(scratch, "mcp-servers", &maps, &format!("{none}{locations}")).map(Self)
    }

    /// The endpoint of one.
    pub fn url(&self, era: Era) -> String {
        format!("{}/{}", self.0.url(), era.name())
    }
}

/// nginx in front of the servers.
#[derive(Debug)]
pub struct Proxy(Nginx);

impl Proxy {
    pub fn start(scratch: &Scratch, servers: &Servers) -> Result<Self, String> {
        let address = servers.0.address();
        let beside = format!(
            "upstream servers {{ server {address}; keepalive 64; keepalive_requests 1000000000; keepalive_timeout 1h; }}"
        );
        let server =
            "location / { proxy_pass http://servers; proxy_http_version 1.1; proxy_set_header Connection \"\"; }";
        Nginx::start(scratch, "mcp-proxy", &beside, server).map(Self)
    }

    /// The endpoint of a server behind it.
    pub fn url(&self, era: Era) -> String {
        format!("{}/{}", self.0.url(), era.name())
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.0.process()
    }
}

/// The response to each body; empty for notifications.
fn maps(era: Era) -> String {
    let name = era.name();
    let unknown = r#"{"jsonrpc":"2.0","id":$asked,"error":{"code":-32601,"message":"no such method"}}"#;
    let reply = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":$asked,"result":{result}}}"#);
    let greeting = match era {
        Era::Modern => "server/discover",
        Era::Legacy => "initialize",
    };
    let methods = [("tools/call", era.result()), ("tools/list", era.list()), (greeting, era.greeting().to_owned())];
    let replies: String = methods
        .iter()
        .map(|(method, result)| {
            format!("        '~\"id\":(?<asked>\\d+),\"method\":\"{method}\"' '{}';\n", reply(result))
        })
        .collect();
    format!(
        r#"map $request_body ${name}_reply {{
{replies}        '~"id":(?<asked>\d+)' '{unknown}';
        default '';
    }}
    map $request_body ${name}_session {{ '~"method":"initialize"' 'session-of-the-benchmark'; default ''; }}
    "#
    )
}

fn locations(era: Era) -> String {
    let name = era.name();
    format!(
        r#"location = /{name} {{ mirror /none; empty_gif; error_page 405 =200 @{name}; }}
        location @{name} {{
            default_type application/json;
            add_header Mcp-Session-Id ${name}_session;
            if (${name}_reply = '') {{ return 202; }}
            return 200 ${name}_reply;
        }}
        "#
    )
}
