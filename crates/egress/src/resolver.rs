//! From names to addresses. A name is asked for once for each connection, and one forbidden answer among good ones
//! refuses the name: whoever mixes them wants the guard to look at one and the socket to take another.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;

use crate::address::AddressPolicy;
use crate::error::SendError;

#[cfg(test)]
mod tests;

/// How long the system's resolver may think. Its thread cannot be stopped, but the call need not wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whoever turns names into addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of this name.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::time::timeout(PATIENCE, tokio::net::lookup_host((name, 0))).await??;
        Ok(found.map(|socket| socket.ip()).collect())
    }
}

/// The addresses of a name, every one of which a call may reach. A name that is `private` by its spelling must lead
/// only where the operator exempts addresses.
pub(crate) async fn resolve_checked(
    resolver: &dyn Resolve,
    policy: &AddressPolicy,
    name: &str,
    private: bool,
) -> Result<Vec<IpAddr>, SendError> {
    let answers = resolver.resolve(name).await.unwrap_or_default();
    if answers.is_empty() {
        return Err(SendError::Unresolvable { host: name.to_owned() });
    }
    let mut addresses = Vec::with_capacity(answers.len());
    for answer in answers {
        policy.check(answer)?;
        if private && !policy.exempts(answer) {
            return Err(SendError::PrivateName { host: name.to_owned() });
        }
        // INVARIANT: what is connected to is what was judged, so an IPv4 address leaves its IPv6 dress here.
        let address = answer.to_canonical();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}
