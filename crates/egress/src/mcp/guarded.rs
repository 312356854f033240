//! Guardians on handshakes and lists: what the gate says to a server and hears from it besides the calls themselves.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolgate_gate::ports::mount::{McpEra, MessageGuard};
use toolgate_gate::ports::source::{FailureKind, SourceFailure};
use toolgate_model::guard::Direction;

use super::greeting::Greeting;
use super::listing::Peer;
use super::message::{self, Request};
use super::result::Raw;

/// Asks about the requests of a handshake before any is sent. If it is not known which era a server speaks, both may be.
pub(crate) async fn before_greeting(guard: &dyn MessageGuard, known: Option<McpEra>) -> Result<(), SourceFailure> {
    let methods: &[&str] =
        if known == Some(McpEra::Legacy) { &["initialize"] } else { &["server/discover", "initialize"] };
    for method in methods {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": {}});
        guard.check(Direction::Outbound, &message).await.map_err(refused)?;
    }
    Ok(())
}

/// Asks about what a server says about itself before anybody relies on it.
pub(crate) async fn after_greeting(guard: &dyn MessageGuard, greeting: &Greeting) -> Result<(), SourceFailure> {
    let mut server = json!({"name": greeting.server.name, "version": greeting.server.version});
    if let (Some(title), Some(server)) = (&greeting.server.title, server.as_object_mut()) {
        server.insert("title".to_owned(), json!(title));
    }
    let mut result = Map::new();
    result.insert("protocolVersion".to_owned(), json!(greeting.version));
    result.insert("serverInfo".to_owned(), server);
    result.insert("capabilities".to_owned(), Value::Object(greeting.capabilities.clone()));
    if let Some(instructions) = &greeting.instructions {
        result.insert("instructions".to_owned(), json!(instructions));
    }
    let message = json!({"jsonrpc": "2.0", "result": result});
    guard.check(Direction::Inbound, &message).await.map_err(refused)
}

/// A server whose lists are asked about.
pub(crate) struct GuardedPeer<'a> {
    pub(crate) peer: &'a mut dyn Peer,
    pub(crate) guard: &'a dyn MessageGuard,
}

#[async_trait]
impl Peer for GuardedPeer<'_> {
    async fn ask(&mut self, request: &Request<'_>) -> Result<Raw, SourceFailure> {
        let message = request.as_json();
        self.guard.check(Direction::Outbound, &message).await.map_err(refused)?;
        let raw = self.peer.ask(request).await?;
        // INVARIANT: read as the list is, so that nothing is used that was not asked about.
        if let Ok(Ok(result)) = message::response_with_list(&raw.message, raw.id) {
            let message = json!({"jsonrpc": "2.0", "result": result});
            self.guard.check(Direction::Inbound, &message).await.map_err(refused)?;
        }
        Ok(raw)
    }
}

fn refused(reason: String) -> SourceFailure {
    SourceFailure::not_sent(FailureKind::Proxy, format!("a message of the protocol was refused: {reason}"))
}
