//! The destination of a request, checked by its URL alone, before any name is resolved. The URL parser has already
//! converted every spelling of an IPv4 address (`0x7f.1`, `2130706433`, full-width digits) into an address literal.

use std::net::IpAddr;

use toolgate_model::constraint::HostSet;
use url::{Host, Url};

use crate::address::AddressPolicy;
use crate::error::SendError;

#[cfg(test)]
mod tests;

/// A destination that may be connected to or, for a name, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination<'a> {
    pub target: Target<'a>,
    /// The host as in the URL, an IPv6 address in brackets.
    pub host: &'a str,
    /// The port, given or the scheme's own.
    pub port: u16,
    /// Whether TLS is spoken.
    pub secure: bool,
}

/// The target of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// An address that was checked, without IPv6 dress.
    Address(IpAddr),
    /// A name, whose addresses are still to be checked.
    Name {
        /// In lower case, international names in their ASCII form, without final dot.
        name: &'a str,
        /// Whether it names this machine, its network or its cloud, so that only exempt addresses will do.
        private: bool,
    },
}

impl<'a> Destination<'a> {
    /// Checks a URL on its own, and against each of these host sets.
    pub fn check(url: &'a Url, policy: &AddressPolicy, hosts: &[&HostSet]) -> Result<Self, SendError> {
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(SendError::UnsupportedScheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(SendError::UserInfo);
        }
        let (Some(parsed), Some(host)) = (url.host(), url.host_str()) else { return Err(SendError::NoHost) };
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or(SendError::NoHost)?;
        if !hosts.iter().all(|set| set.contains(host)) {
            return Err(SendError::ForbiddenHost { host: host.to_owned() });
        }
        let target = match parsed {
            Host::Ipv4(address) => checked(IpAddr::V4(address), policy)?,
            Host::Ipv6(address) => checked(IpAddr::V6(address), policy)?,
            Host::Domain(name) => named(name, policy)?,
        };
        Ok(Self { target, host, port, secure })
    }
}

fn checked(address: IpAddr, policy: &AddressPolicy) -> Result<Target<'static>, SendError> {
    policy.check(address)?;
    Ok(Target::Address(address.to_canonical()))
}

fn named<'a>(spelled: &'a str, policy: &AddressPolicy) -> Result<Target<'a>, SendError> {
    let name = spelled.strip_suffix('.').unwrap_or(spelled);
    if name.is_empty() || name.starts_with('.') || name.ends_with('.') {
        return Err(SendError::NoHost);
    }
    // A trailing dot is a second spelling of every name, which rules for the first one do not match.
    let private = name.len() != spelled.len() || is_private(name);
    if private && policy.exempts_nothing() {
        return Err(SendError::PrivateName { host: spelled.to_owned() });
    }
    Ok(Target::Name { name, private })
}

/// Names that have a meaning only inside a machine, a network or a cloud. Their addresses would be checked anyway; but
/// some resolve differently from inside, and none is a service on the Internet.
fn is_private(name: &str) -> bool {
    PRIVATE_NAMES.contains(&name)
        || PRIVATE_DOMAINS
            .iter()
            .any(|domain| name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

const PRIVATE_NAMES: [&str; 16] = [
    "broadcasthost",
    "instance-data",
    "ip6-allhosts",
    "ip6-allnodes",
    "ip6-allrouters",
    "ip6-localhost",
    "ip6-loopback",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "localhost4",
    "localhost6",
    "metadata",
    "metadata.goog",
    "metadata.tencentyun.com",
    "rancher-metadata",
];

const PRIVATE_DOMAINS: [&str; 7] =
    ["localhost", "localdomain", "localdomain4", "localdomain6", "local", "internal", "home.arpa"];
