//! The Model Context Protocol at `/mcp`, over streamable HTTP: version 2026-07-28, in which each request stands alone, and
//! the three versions before it, in which a client opens a session. Every caller sees one server whose tools are those
//! that it may call.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::{delete, get, post};
use http::Method;
use http::request::Parts;
use toolgate_gate::ports::clock::Clock;

use crate::router::Route;

use self::sessions::Sessions;

mod call;
mod client;
mod discover;
mod endpoint;
mod era;
mod form;
mod forward;
mod headers;
mod held;
mod input;
mod interruption;
mod list;
mod listen;
mod live;
mod log_level;
mod message;
mod origin;
mod progressive;
mod reply;
mod result;
mod sessions;
mod sse;
mod tasks;

/// Where the protocol is served.
pub const PATH: &str = "/mcp";

/// How the protocol is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The origins of web pages that may use it, besides those of this gate and this machine.
    pub allowed_origins: Vec<String>,
    /// Where people reach this gate with a browser.
    pub public_url: Option<String>,
    /// How long a call that waits for an approver is held on its connection.
    pub hold: Duration,
    /// How many sessions there are at most.
    pub sessions: usize,
    /// How many of one principal.
    pub sessions_of_principal: usize,
    /// After how long without a request a session ends.
    pub session_idle: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allowed_origins: Vec::new(),
            public_url: None,
            hold: Duration::from_secs(25),
            sessions: 10_000,
            sessions_of_principal: 100,
            session_idle: Duration::from_secs(3600),
        }
    }
}

/// What the requests of this protocol share.
pub struct Mcp {
    settings: Settings,
    sessions: Sessions,
}

impl Mcp {
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self { sessions: Sessions::new(&settings, clock), settings }
    }

    /// Where people reach this gate with a browser.
    pub(crate) fn public_url(&self) -> Option<&str> {
        self.settings.public_url.as_deref()
    }

    /// Refuses a request that a web page from elsewhere sends.
    pub(crate) fn check_origin(&self, parts: &Parts, client: IpAddr) -> Result<(), &'static str> {
        origin::check(parts, client, &self.settings)
    }
}

/// The routes of this protocol, which need a key.
pub fn routes() -> Vec<Route> {
    vec![
        Route { method: Method::POST, path: PATH, handler: post(endpoint::post) },
        Route { method: Method::GET, path: PATH, handler: get(endpoint::get) },
        Route { method: Method::DELETE, path: PATH, handler: delete(endpoint::delete) },
    ]
}
