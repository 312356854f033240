//! File descriptors: as many as the system allows, and never all of them for clients.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number reserved for the ledger, for services and for everything else that the gate opens.
const RESERVED: u64 = 256;

/// How many of those are for the ledger, for guardians and for files.
const OWN: usize = 64;

/// Raises the limit as far as possible, and returns the possible number of client connections, at most `wanted`.
pub fn connections(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| maximum.is_none_or(|maximum| maximum > current))
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "could not raise the limit of open files");
    }
    let limit = getrlimit(Resource::Nofile).current;
    let possible = within(limit, wanted);
    if possible < wanted {
        tracing::warn!(
            limit,
            wanted,
            connections = possible,
            "server.max_connections exceeds what the limit of open files allows; raise LimitNOFILE, or ulimit -n"
        );
    }
    possible
}

/// The possible number of requests of one key in flight with so many connections: one key never holds all of them.
pub fn requests_of_key(wanted: usize, connections: usize) -> usize {
    wanted.min((connections / 2).max(1))
}

/// The possible numbers of calls to services in flight and of idle connections to services, with so many client
/// connections.
pub fn outbound(wanted: usize, connections: usize) -> (usize, usize) {
    let (calls, waiting) = beside(getrlimit(Resource::Nofile).maximum, wanted, connections);
    if calls < wanted {
        tracing::warn!(
            wanted,
            calls,
            "egress.max_connections exceeds what the limit of open files allows; raise LimitNOFILE, or ulimit -n"
        );
    }
    (calls, waiting)
}

fn beside(limit: Option<u64>, wanted: usize, connections: usize) -> (usize, usize) {
    let Some(limit) = limit else { return (wanted, wanted) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let left = limit.saturating_sub(within(u64::try_from(limit).ok(), connections)).saturating_sub(OWN).max(4);
    // One in four is for idle connections.
    let waiting = left / 4;
    (wanted.min(left - waiting), waiting)
}

fn within(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit else { return wanted };
    let left = limit.saturating_sub(RESERVED).max(limit / 2).max(1);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_get_what_clients_and_the_ledger_leave() {
        assert_eq!(beside(None, 4096, 4096), (4096, 4096));
        assert_eq!(beside(Some(65_536), 4096, 4096), (4096, 15_344));
        assert_eq!(beside(Some(1024), 4096, 4096), (144, 48));
        assert_eq!(beside(Some(1024), 100, 4096), (100, 48));
        assert_eq!(beside(Some(0), 4096, 4096), (3, 1));
    }

    #[test]
    fn clients_get_what_is_left_of_the_limit() {
        assert_eq!(within(None, 4096), 4096);
        assert_eq!(within(Some(65_536), 4096), 4096);
        assert_eq!(within(Some(1024), 4096), 768);
        assert_eq!(within(Some(256), 4096), 128);
        assert_eq!(within(Some(0), 4096), 1);
    }

    #[test]
    fn one_key_never_holds_all_connections() {
        assert_eq!(requests_of_key(1024, 4096), 1024);
        assert_eq!(requests_of_key(1024, 128), 64);
        assert_eq!(requests_of_key(1024, 1), 1);
    }
}
