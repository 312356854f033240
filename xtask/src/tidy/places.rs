//! Operations that are allowed only in few places: reading the clock, sleeping, opening outbound sockets. To add a
//! place, add a line with its reason to the list here.

use super::{File, Finding};

/// A path, or a prefix of paths, and why it is allowed.
struct Place {
    path: &'static str,
    reason: &'static str,
}

/// Code that only a few places may contain.
struct Rule {
    code: &'static [&'static str],
    message: &'static str,
    /// Whether tests may contain it too.
    free_in_tests: bool,
    places: &'static [Place],
}

const RULES: [Rule; 2] = [
    Rule {
        code: &["SystemTime::now", "Timestamp::now", "Instant::now", "thread::sleep", "time::sleep"],
        message: "take the time from the Clock port, and wait on an event instead of sleeping",
        free_in_tests: false,
        places: &[
            Place { path: "crates/cli/src/clock.rs", reason: "the command line has no clock port" },
            Place { path: "crates/egress/src/time.rs", reason: "deadlines, and the ages of connections" },
            Place { path: "crates/guardian/src/time.rs", reason: "deadlines of guardians, and how long they took" },
            Place { path: "crates/gate/src/ports/clock.rs", reason: "it is the clock" },
            Place { path: "crates/ledger/src/outage.rs", reason: "how long ago an outage was logged" },
            Place { path: "crates/ledger/src/postgres.rs", reason: "deadlines of transactions" },
            Place {
                path: "crates/server/src/listener.rs",
                reason: "pauses after failures, and deadlines of connections",
            },
            Place { path: "crates/server/src/listener/activity.rs", reason: "deadlines of connections" },
            Place {
                path: "crates/server/src/listener/client_certificate.rs",
                reason: "how long ago a client certificate was verified",
            },
            Place { path: "crates/server/src/listener/connection.rs", reason: "deadlines of connections" },
            Place { path: "crates/server/src/operations/metrics.rs", reason: "times requests for the operator" },
        ],
    },
    Rule {
        code: &[
            "TcpStream::connect",
            "TcpSocket::new",
            "UdpSocket::bind",
            "UnixStream::connect",
            "deadpool_postgres::",
            "hyper::client",
            "hyper_util::client",
            "tokio_postgres::connect",
        ],
        message: "outbound sockets are opened only in the places that xtask/src/tidy/places.rs lists",
        free_in_tests: true,
        places: &[
            Place { path: "crates/egress/src/connector.rs", reason: "it is the guarded connector" },
            Place { path: "crates/ledger/src/", reason: "it speaks to PostgreSQL" },
            Place { path: "crates/cli/src/client", reason: "the command line speaks to a running gate" },
            Place {
                path: "crates/toolgate/src/composition/endpoints.rs",
                reason: "finds a gate that has the socket file",
            },
        ],
    },
];

/// These drive programs and servers from outside, where the machine's time is the only one.
const EXEMPT: [Place; 2] = [
    Place { path: "crates/testkit/", reason: "fixtures of the tests" },
    Place { path: "xtask/", reason: "runs programs and times them" },
];

/// Forbidden code outside its places.
pub fn check(file: &File) -> Vec<Finding> {
    if !file.is("rs") || file.path.contains("/benches/") || listed(&EXEMPT, &file.path) {
        return Vec::new();
    }
    let rules = RULES.iter().filter(|rule| !listed(rule.places, &file.path));
    rules.flat_map(|rule| breaches(rule, file)).collect()
}

/// Places whose reason no longer exists: a file that is listed by its full name and does not need it.
pub fn stale(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in &RULES {
        for place in rule.places.iter().filter(|place| place.path.ends_with(".rs")) {
            let used = files.iter().any(|file| file.path == place.path && !breaches(rule, file).is_empty());
            if !used {
                let message =
                    format!("listed in xtask/src/tidy/places.rs ({}) but not needed: remove it", place.reason);
                findings.push(Finding { path: place.path.to_owned(), line: 1, message });
            }
        }
    }
    findings
}

fn breaches(rule: &Rule, file: &File) -> Vec<Finding> {
    let is_test = file.path.contains("/tests/") || file.name() == "tests.rs";
    if rule.free_in_tests && is_test {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        // Tests are last in a file.
        if rule.free_in_tests && line == "mod tests {" {
            break;
        }
        let is_comment = line.trim_start().starts_with("//");
        if let Some(code) = rule.code.iter().find(|code| !is_comment && line.contains(**code)) {
            findings.push(file.finding(number, format!("`{code}`: {}", rule.message)));
        }
    }
    findings
}

fn listed(places: &[Place], path: &str) -> bool {
    places.iter().any(|place| path.starts_with(place.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&File::new(path, text)).iter().map(|finding| finding.line).collect()
    }

    const CLOCK: &str = "//! Time.\nfn now() {\n    std::time::SystemTime::now();\n}\n";
    const SOCKET: &str = "//! Net.\nfn call() {\n    TcpStream::connect(address);\n}\n";

    #[test]
    fn the_clock_is_read_only_in_its_place() {
        assert_eq!(lines("crates/gate/src/admit.rs", CLOCK), [3]);
        assert_eq!(lines("crates/gate/tests/path.rs", CLOCK), [3]);
        assert_eq!(lines("crates/gate/src/ports/clock.rs", CLOCK), [0; 0]);
        assert_eq!(lines("crates/testkit/src/clock.rs", CLOCK), [0; 0]);
        assert_eq!(lines("crates/toolgate/benches/authority.rs", CLOCK), [0; 0]);
        assert_eq!(lines("docs/time.md", CLOCK), [0; 0]);
    }

    #[test]
    fn a_comment_may_name_what_is_forbidden() {
        assert_eq!(lines("crates/gate/src/admit.rs", "//! Never thread::sleep.\n    // nor Instant::now\n"), [0; 0]);
    }

    #[test]
    fn sockets_are_opened_only_in_their_places_and_in_tests() {
        assert_eq!(lines("crates/server/src/openintent.rs", SOCKET), [3]);
        assert_eq!(lines("crates/ledger/src/postgres/pool.rs", SOCKET), [0; 0]);
        assert_eq!(lines("crates/cli/src/client.rs", SOCKET), [0; 0]);
        assert_eq!(lines("crates/server/tests/routes.rs", SOCKET), [0; 0]);
        assert_eq!(lines("crates/server/src/limit/tests.rs", SOCKET), [0; 0]);
        let own_tests = "//! Net.\n#[cfg(test)]\nmod tests {\n    TcpStream::connect(address);\n}\n";
        assert_eq!(lines("crates/server/src/openintent.rs", own_tests), [0; 0]);
    }

    #[test]
    fn a_place_without_need_is_found() {
        let clock = "crates/gate/src/ports/clock.rs";
        let found = |files: &[File]| stale(files).iter().any(|finding| finding.path == clock);
        assert!(!found(&[File::new(clock, CLOCK)]));
        assert!(found(&[File::new(clock, "//! No clock.\n")]));
        assert!(found(&[]));
    }
}
