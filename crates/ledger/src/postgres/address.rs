//! The address of the server, and the errors when it cannot be used. Contains no password.

use std::fmt;
use std::time::Duration;

use deadpool_postgres::PoolError;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// How long the peer may be silent before the system closes a connection. The settings of the URL take precedence.
const SILENCE: Duration = Duration::from_secs(15);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// The default of the library.
const LIBRARY_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Sets timeouts for connections whose peer has disappeared silently.
pub(super) fn set_timeouts(config: &mut Config) {
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_keepalives_idle() == LIBRARY_KEEPALIVE_IDLE {
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL).keepalives_retries(3);
    }
}

/// Server, database and role.
#[derive(Debug)]
pub(super) struct DatabaseAddress(String);

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl DatabaseAddress {
    pub(super) fn of(config: &Config) -> Self {
        let ports = config.get_ports();
        let hosts: Vec<String> = config
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(number, host)| {
                let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
                match host {
                    Host::Tcp(name) => format!("{name}:{port}"),
                    Host::Unix(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
                }
            })
            .collect();
        let user = config.get_user().unwrap_or("the current user");
        let database = config.get_dbname().unwrap_or(user);
        Self(format!("database `{database}` at {} as role `{user}`", hosts.join(" or ")))
    }

    /// Why there is no connection, with the server's message if it sent one.
    pub(super) fn failure(&self, error: &PoolError) -> String {
        match error {
            PoolError::Backend(error) => format!("{}: {}", self.0, cause(error)),
            PoolError::Timeout(_) => format!("{}: no connection became available in time", self.0),
            other => format!("{}: {other}", self.0),
        }
    }

    /// The error for a timeout.
    pub(super) fn silent(&self) -> String {
        format!("{}: no response in time", self.0)
    }
}

/// The server's message, or the last error of the chain, which comes from the system.
fn cause(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return format!("{} ({})", said.message(), said.code().code());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_host_database_and_role_and_no_password() {
        let address = |url: &str| DatabaseAddress::of(&url.parse().unwrap()).silent();
        assert_eq!(
            address("postgres://gate:hunter2@db.internal:5433/tools"),
            "database `tools` at db.internal:5433 as role `gate`: no response in time"
        );
        assert_eq!(
            address("host=/run/postgresql user=gate"),
            "database `gate` at /run/postgresql/.s.PGSQL.5432 as role `gate`: no response in time"
        );
    }

    #[test]
    fn what_the_url_says_goes_first() {
        let mut config: Config = "postgres://a@b/c?tcp_user_timeout=3000&connect_timeout=2".parse().unwrap();
        set_timeouts(&mut config);
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(2)));
        assert_eq!(config.get_keepalives_idle(), KEEPALIVE_IDLE);
        assert_ne!(config.get_tcp_user_timeout(), Some(&SILENCE));
    }
}
