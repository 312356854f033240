//! The messages of a start: how to reach the gate, and at the first start the token and what to keep.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use toolgate_cli::output;
use toolgate_gate::maintenance::bootstrap::Bootstrap;

use super::LEDGER_FILE;
use crate::configuration::{Configuration, KeySource, Store};

/// Logs the start-up messages, and then prints, on standard output, the one line that programs wait for.
pub(super) fn announce(configuration: &Configuration, address: SocketAddr, bootstrap: Bootstrap) {
    let scheme = if configuration.network.tls.is_some() { "https" } else { "http" };
    if scheme == "http" && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "listening beyond loopback without TLS: put a proxy that terminates TLS in front, or keys travel in clear \
            text"
        );
    }
    let url = format!("{scheme}://{}", reachable(address));
    match bootstrap {
        Bootstrap::Existing => tracing::info!(
            "the administrator's token was shown at the first start; another administrator makes a new one with \
             `toolgate key create admin`, and `toolgate recover` does when there is none"
        ),
        Bootstrap::Given => output::say(&format!(
            "This is the first start. The administrator's token is the one in TOOLGATE_ADMIN_TOKEN.\n\n{}",
            next_steps(configuration, &url, "$TOOLGATE_ADMIN_TOKEN")
        )),
        Bootstrap::Generated(token) => output::say(&format!(
            "This is the first start. The administrator's token, shown this once only:\n\n    {}\n\n{}",
            token.expose(),
            next_steps(configuration, &url, token.expose())
        )),
    }
    if let Err(error) = output::print(&format!("toolgate listening on {scheme}://{address}")) {
        tracing::warn!(%address, %error, "listening, but could not write the start-up line to standard output");
    }
}

fn next_steps(configuration: &Configuration, url: &str, token: &str) -> String {
    let ledger = match &configuration.store {
        Store::Embedded { data } => data.join(LEDGER_FILE).display().to_string(),
        Store::Postgres { .. } => "PostgreSQL".to_owned(),
    };
    let master_key = match &configuration.key_source {
        KeySource::File(path) => absolute(path),
        KeySource::Environment { .. } => "from the environment".to_owned(),
        KeySource::Command { .. } => "behind the key command".to_owned(),
    };
    format!(
        "Try it:\n\n    curl -H \"Authorization: Bearer {token}\" {url}/api/v1/whoami\n\n\
         `toolgate login --url {url}` stores the token for the command line; `toolgate --help` lists the commands.\n\
         Ledger:     {ledger}\nMaster key: {master_key}\nAudit key:  {}\n\
         Keep copies of the keys, apart from the ledger: without them its credentials cannot be unsealed and its log \
         cannot be continued.\n",
        absolute(&configuration.audit_key_file)
    )
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path)).display().to_string()
}

/// An address that a program on this machine can connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
