//! Networks that an agent may call from.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A set of networks, aggregated; the empty set includes none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSet(Vec<IpNet>);

impl NetworkSet {
    /// Parses CIDRs and single addresses; the error has the number of the invalid entry and does not repeat it.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let networks = (1..).zip(texts).map(|(number, text): (usize, _)| {
            parse_one(text).map_err(|reason| format!("has an entry, number {number}, that {reason}"))
        });
        networks.collect::<Result<Vec<_>, _>>().map(Self::from_networks)
    }

    /// Whether this address is in one of the networks. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Formatted as CIDRs.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(IpNet::to_string)
    }

    pub(super) fn widening(&self, source: &Self) -> Option<String> {
        let outside = self.0.iter().find(|own| !source.0.iter().any(|network| network.contains(*own)))?;
        Some(format!("contains {outside}, which the source grant does not allow"))
    }

    pub(super) fn meet(&self, other: &Self) -> Self {
        let smaller = |left: &IpNet, right: &IpNet| match (left.contains(right), right.contains(left)) {
            (true, _) => Some(*right),
            (_, true) => Some(*left),
            _ => None,
        };
        Self::from_networks(
            self.0.iter().flat_map(|left| other.0.iter().filter_map(move |right| smaller(left, right))).collect(),
        )
    }

    fn from_networks(networks: Vec<IpNet>) -> Self {
        let mut aggregated = IpNet::aggregate(&networks);
        aggregated.sort_unstable();
        Self(aggregated)
    }
}

fn parse_one(text: &str) -> Result<IpNet, String> {
    let network: IpNet = text
        .parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "is not a network; use a CIDR such as 10.0.0.0/8 or 2001:db8::/32".to_owned())?;
    if network.trunc() != network {
        return Err(format!("is {network} and has bits beyond its prefix; use {}", network.trunc()));
    }
    canonical(network).ok_or_else(|| format!("is {network} and mixes IPv4 and IPv6; use the IPv4 network"))
}

/// An IPv4-mapped IPv6 network as the IPv4 network, because caller addresses are compared in that form.
fn canonical(network: IpNet) -> Option<IpNet> {
    let IpNet::V6(six) = network else { return Some(network) };
    let mapped = Ipv6Net::new(std::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped(), 96).ok()?;
    match six.addr().to_ipv4_mapped() {
        Some(four) if six.prefix_len() >= 96 => Ipv4Net::new(four, six.prefix_len() - 96).ok().map(IpNet::V4),
        _ if six.contains(&mapped) && six.prefix_len() > 0 => None,
        _ => Some(network),
    }
}
