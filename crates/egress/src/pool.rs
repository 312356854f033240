//! Connections that wait for the next call of the same credential to the same service. They are never lent to another
//! credential: whatever a service remembers about a connection, it remembers about one customer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, MissedTickBehavior};
use toolgate_model::id::CredentialId;
use toolgate_model::merkle::sha256;
use toolgate_model::principal::{PrincipalId, TenantId};

use crate::connector::Sender;
use crate::destination::Destination;
use crate::time::now;

#[cfg(test)]
mod tests;

/// How long an idle connection is kept. Short, because an idle connection does not notice that its name has moved.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection is used, however busy, for the same reason.
const AGE_LIMIT: Duration = Duration::from_secs(600);
/// How often expired connections are closed.
const SWEEP_PERIOD: Duration = Duration::from_secs(10);
/// The maximum number of idle connections per credential, in one runtime.
const CREDENTIAL_LIMIT: usize = 128;
/// The maximum number of idle connections in total.
const TOTAL_LIMIT: usize = 512;

/// The requests that share connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PoolKey {
    /// Those with the same credential, of whatever version.
    Credential(CredentialId),
    /// Those of one agent that fetches without a credential; by the hash of its name.
    Agent([u8; 32]),
    /// The gate's own notices.
    Notices,
    /// The gate's own requests to a guardian, over a client for that guardian only.
    Guardian,
    /// The gate's own telemetry, over a client that sends nothing else.
    Collector,
    /// The gate's own requests for the keys of an issuer, over clients for that issuer only.
    Issuer,
}

impl PoolKey {
    /// The one of this agent.
    pub fn of_agent(tenant: &TenantId, agent: &PrincipalId) -> Self {
        // Neither has a line break in it.
        Self::Agent(*sha256(format!("{tenant}\n{agent}").as_bytes()).as_bytes())
    }
}

impl From<CredentialId> for PoolKey {
    fn from(credential: CredentialId) -> Self {
        Self::Credential(credential)
    }
}

/// A connection and what it may be used for.
pub(crate) struct Connection {
    pub(crate) sender: Sender,
    key: PoolKey,
    secure: bool,
    host: Box<str>,
    port: u16,
    ca_certificate: Option<Box<str>>,
    opened: Instant,
    idle_since: Instant,
}

impl Connection {
    /// A connection that was opened just now.
    pub(crate) fn new(
        sender: Sender,
        key: PoolKey,
        destination: &Destination<'_>,
        ca_certificate: Option<&str>,
    ) -> Self {
        let opened = now();
        Self {
            sender,
            key,
            secure: destination.secure,
            host: destination.host.into(),
            port: destination.port,
            ca_certificate: ca_certificate.map(Into::into),
            opened,
            idle_since: opened,
        }
    }

    fn leads_to(&self, destination: &Destination<'_>, ca_certificate: Option<&str>) -> bool {
        self.port == destination.port
            && self.secure == destination.secure
            && *self.host == *destination.host
            && self.ca_certificate.as_deref() == ca_certificate
    }

    fn is_spent(&self, now: Instant) -> bool {
        self.sender.is_closed()
            || now.duration_since(self.idle_since) >= IDLE_LIMIT
            || now.duration_since(self.opened) >= AGE_LIMIT
    }
}

/// The idle connections.
pub(crate) struct Pool {
    idle_connections: Mutex<IdleConnections>,
    most: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self::keeping(TOTAL_LIMIT)
    }
}

#[derive(Default)]
struct IdleConnections {
    /// INVARIANT: within a list, the one that has been idle longest comes first.
    by_key: HashMap<(PoolKey, Id), Vec<Connection>>,
    /// INVARIANT: the number of connections in all lists.
    count: usize,
    swept: bool,
}

impl Pool {
    /// One in which so many connections wait at most.
    pub(crate) fn keeping(most: usize) -> Self {
        Self { idle_connections: Mutex::default(), most: most.clamp(1, TOTAL_LIMIT) }
    }

    /// The matching connection that was returned last. One whose last exchange has not quite ended is left to others.
    pub(crate) fn take(
        &self,
        key: PoolKey,
        destination: &Destination<'_>,
        ca_certificate: Option<&str>,
        now: Instant,
    ) -> Option<Connection> {
        let mut idle_connections = self.idle_connections();
        let IdleConnections { by_key, count, .. } = &mut *idle_connections;
        let idle_list = by_key.get_mut(&(key, here()))?;
        for position in (0..idle_list.len()).rev() {
            let connection = idle_list.get(position)?;
            let spent = connection.is_spent(now);
            if spent || (connection.sender.is_ready() && connection.leads_to(destination, ca_certificate)) {
                let connection = idle_list.remove(position);
                *count -= 1;
                if !spent {
                    return Some(connection);
                }
            }
        }
        None
    }

    /// Returns a connection whose response was read to its end.
    pub(crate) fn put(self: &Arc<Self>, mut connection: Connection) {
        let now = now();
        connection.idle_since = now;
        if connection.is_spent(now) {
            return;
        }
        let mut idle_connections = self.idle_connections();
        if idle_connections.count >= self.most {
            idle_connections.drop_longest_waiting();
        }
        let idle_list = idle_connections.by_key.entry((connection.key, here())).or_default();
        let full = idle_list.len() >= CREDENTIAL_LIMIT;
        if full {
            idle_list.remove(0);
        }
        idle_list.push(connection);
        idle_connections.count += usize::from(!full);
        if !std::mem::replace(&mut idle_connections.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn idle_connections(&self) -> MutexGuard<'_, IdleConnections> {
        self.idle_connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdleConnections {
    fn drop_longest_waiting(&mut self) {
        let waiting = self.by_key.values_mut().filter(|idle_list| !idle_list.is_empty());
        if let Some(idle_list) =
            waiting.min_by_key(|idle_list| idle_list.first().map(|connection| connection.idle_since))
        {
            idle_list.remove(0);
            self.count -= 1;
        }
    }

    /// Closes expired connections; returns whether any are left.
    fn sweep(&mut self, now: Instant) -> bool {
        self.by_key.retain(|_, idle_list| {
            idle_list.retain(|connection| !connection.is_spent(now));
            !idle_list.is_empty()
        });
        self.count = self.by_key.values().map(Vec::len).sum();
        self.swept = self.count > 0;
        self.swept
    }
}

/// The runtime that the caller runs in. A connection lives in the one that it was opened in, and is lent only there: it
/// would wake a thread for every message.
fn here() -> Id {
    Handle::current().id()
}

/// Runs while connections wait.
async fn sweep(pool: Weak<Pool>) {
    let mut ticks = tokio::time::interval_at(now() + SWEEP_PERIOD, SWEEP_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        if !pool.idle_connections().sweep(now()) {
            return;
        }
    }
}
