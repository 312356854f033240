//! Resolves names to addresses. A name is resolved once per connection, and one forbidden address among allowed ones
//! refuses the name: such a mix is an attempt to let the guard check one address and the socket use another.

use std::net::IpAddr;

use async_trait::async_trait;

use crate::address::AddressPolicy;
use crate::error::SendError;
use crate::pool::PoolKey;

pub use self::system::SystemResolver;

mod system;
#[cfg(test)]
mod tests;

#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of this name, for requests of this holder.
    async fn resolve(&self, name: &str, holder: PoolKey) -> Result<Vec<IpAddr>, LookupError>;
}

/// Why a name has no addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupError {
    /// The maximum number of lookups is in flight, in total or for this holder.
    Busy,
    /// The system resolver failed.
    Failed,
    /// The system resolver did not respond in time.
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
        // INVARIANT: the connected address is the checked one, so an IPv4-mapped address is converted here.
        let address = answer.to_canonical();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}
