//! From names to addresses. A name is asked for once for each connection, and one forbidden answer among good ones
//! refuses the name: whoever mixes them wants the guard to look at one and the socket to take another.

use std::net::IpAddr;

use async_trait::async_trait;

use crate::address::AddressPolicy;
use crate::error::SendError;
use crate::pool::PoolKey;

pub use self::system::SystemResolver;

mod system;
#[cfg(test)]
mod tests;

/// Whoever turns names into addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of this name, for requests of this holder.
    async fn resolve(&self, name: &str, holder: PoolKey) -> Result<Vec<IpAddr>, LookupError>;
}

/// Why a name has no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupError {
    /// As many look-ups are in flight as may be, in all or for this holder.
    Busy,
    /// The resolver of the system says so, or cannot be asked.
    Failed,
    /// The resolver of the system did not say anything in time.
    TimedOut,
}

/// The addresses of a name, every one of which a call may reach. A name that is `private` by its spelling must lead
/// only where the operator exempts addresses.
pub(crate) async fn resolve_checked(
    resolver: &dyn Resolve,
    policy: &AddressPolicy,
    (name, private): (&str, bool),
    holder: PoolKey,
) -> Result<Vec<IpAddr>, SendError> {
    let host = || name.to_owned();
    let answers = match resolver.resolve(name, holder).await {
        Ok(answers) if !answers.is_empty() => answers,
        Ok(_) | Err(LookupError::Failed) => return Err(SendError::Unresolvable { host: host() }),
        Err(LookupError::Busy) => return Err(SendError::ResolverBusy { host: host() }),
        Err(LookupError::TimedOut) => return Err(SendError::LookupTimedOut { host: host() }),
    };
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
