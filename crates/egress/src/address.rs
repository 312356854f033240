//! The addresses that calls may reach: globally routable unicast addresses, and those that the operator allows. All
//! others belong to this machine, to its network or to nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// An address that a call may not reach.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{address} is {kind}, which calls may not reach; to allow it, add it to `egress.allow`")]
pub struct ForbiddenAddress {
    /// An IPv4-mapped IPv6 address is converted to IPv4.
    pub address: IpAddr,
    pub kind: &'static str,
}

/// The operator's exemptions from the rule.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    /// INVARIANT: no network inside `::ffff:0:0/96`; these are held as the IPv4 networks that they are.
    allow: Vec<IpNet>,
}

impl AddressPolicy {
    /// A policy that exempts these networks (`egress.allow`).
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow: allow.into_iter().map(canonical).collect() }
    }

    /// Whether a call may reach this address.
    pub fn check(&self, address: IpAddr) -> Result<(), ForbiddenAddress> {
        let address = address.to_canonical();
        match address {
            IpAddr::V4(inner) => match v4_kind(inner) {
                Some(kind) if !self.names(address) => Err(ForbiddenAddress { address, kind }),
                _ => Ok(()),
            },
            IpAddr::V6(outer) => match v6_kind(outer) {
                Some(kind) if !self.exempts_v6(outer) => Err(ForbiddenAddress { address, kind }),
                _ => Ok(()),
            },
        }
    }

    /// Whether the operator names this address, so that even a name that is private by its spelling may lead to it.
    pub fn exempts(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V6(outer) => self.exempts_v6(outer),
            address @ IpAddr::V4(_) => self.names(address),
        }
    }

    /// Whether the operator names no address at all.
    pub fn exempts_nothing(&self) -> bool {
        self.allow.is_empty()
    }

    /// INVARIANT: an IPv6 address that carries an IPv4 address never reaches more than the IPv4 address may.
    fn exempts_v6(&self, outer: Ipv6Addr) -> bool {
        let named = self.names(IpAddr::V6(outer));
        match embedded(outer) {
            None => named,
            Some(EmbeddedV4 { inner, by: Embedding::Compatible }) => self.names(IpAddr::V4(inner)),
            Some(EmbeddedV4 { inner, by: Embedding::Translator }) => named && self.check(IpAddr::V4(inner)).is_ok(),
        }
    }

    fn names(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|network| network.contains(&address))
    }
}

/// An IPv4 address inside an IPv6 address.
struct EmbeddedV4 {
    inner: Ipv4Addr,
    by: Embedding,
}

enum Embedding {
    /// `::a.b.c.d`: another spelling of the IPv4 address.
    Compatible,
    /// A prefix behind which some machine translates or unwraps to IPv4.
    Translator,
}

fn embedded(outer: Ipv6Addr) -> Option<EmbeddedV4> {
    let [a, b, c, d, e, f, g, h] = outer.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    let (inner, by) = match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0] if g != 0 || h > 1 => (v4(g, h), Embedding::Compatible),
        [0x64, 0xff9b, 0 | 1, ..] => (v4(g, h), Embedding::Translator),
        [0x2002, high, low, ..] => (v4(high, low), Embedding::Translator),
        // Teredo stores the client's address with every bit turned over.
        [0x2001, 0, ..] => (v4(!g, !h), Embedding::Translator),
        _ => return None,
    };
    Some(EmbeddedV4 { inner, by })
}

fn canonical(network: IpNet) -> IpNet {
    match network {
        IpNet::V6(v6) => match (v6.addr().to_ipv4_mapped(), v6.prefix_len().checked_sub(96)) {
            (Some(inner), Some(prefix)) => Ipv4Net::new(inner, prefix).map_or(network, IpNet::V4),
            _ => network,
        },
        IpNet::V4(_) => network,
    }
}

fn v4_kind(address: Ipv4Addr) -> Option<&'static str> {
    V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, kind)| *kind)
}

fn v6_kind(address: Ipv6Addr) -> Option<&'static str> {
    if let Some((_, kind)) = V6.iter().find(|(network, _)| network.contains(&address)) {
        return Some(kind);
    }
    (!GLOBAL_UNICAST.contains(&address)).then_some("outside the range of global addresses")
}

const METADATA: &str = "a cloud metadata address";

/// IANA's special-purpose IPv4 addresses, and cloud metadata addresses. The first match names the kind.
const V4: [(Ipv4Net, &str); 20] = [
    (v4_net([169, 254, 169, 254], 32), METADATA),
    (v4_net([100, 100, 100, 200], 32), METADATA),
    (v4_net([192, 0, 0, 192], 32), METADATA),
    // A public address by number, but inside Azure it is the host that a virtual machine runs on.
    (v4_net([168, 63, 129, 16], 32), METADATA),
    (v4_net([0, 0, 0, 0], 8), "an address of this machine"),
    (v4_net([127, 0, 0, 0], 8), "a loopback address"),
    (v4_net([10, 0, 0, 0], 8), "a private address"),
    (v4_net([172, 16, 0, 0], 12), "a private address"),
    (v4_net([192, 168, 0, 0], 16), "a private address"),
    (v4_net([100, 64, 0, 0], 10), "an address shared behind a carrier's NAT"),
    (v4_net([169, 254, 0, 0], 16), "a link-local address"),
    (v4_net([192, 0, 0, 0], 24), "reserved for protocols"),
    (v4_net([192, 0, 2, 0], 24), "reserved for documentation"),
    (v4_net([198, 51, 100, 0], 24), "reserved for documentation"),
    (v4_net([203, 0, 113, 0], 24), "reserved for documentation"),
    (v4_net([192, 88, 99, 0], 24), "a relay from IPv6"),
    (v4_net([198, 18, 0, 0], 15), "reserved for benchmarks"),
    (v4_net([224, 0, 0, 0], 4), "a multicast address"),
    (v4_net([255, 255, 255, 255], 32), "the broadcast address"),
    (v4_net([240, 0, 0, 0], 4), "a reserved address"),
];

/// The same for IPv6. Addresses outside `2000::/3` are refused anyway and are listed only to name their kind.
const V6: [(Ipv6Net, &str); 20] = [
    (v6_net([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), METADATA),
    (v6_net([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), METADATA),
    (v6_net([0, 0, 0, 0, 0, 0, 0, 0], 128), "an address of this machine"),
    (v6_net([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6_net([0, 0, 0, 0, 0, 0, 0, 0], 96), "an IPv4-mapped IPv6 address"),
    (v6_net([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), "an address that is translated to IPv4"),
    (v6_net([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "an address that is translated to IPv4"),
    (v6_net([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "an address whose traffic is discarded"),
    (v6_net([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "an address that tunnels to IPv4"),
    (v6_net([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "an address that tunnels to IPv4"),
    (v6_net([0x2001, 0x10, 0, 0, 0, 0, 0, 0], 28), "an identifier that cannot be routed"),
    (v6_net([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28), "an identifier that cannot be routed"),
    (v6_net([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "reserved for protocols"),
    (v6_net([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "reserved for documentation"),
    (v6_net([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "reserved for documentation"),
    (v6_net([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "a segment identifier of a network"),
    (v6_net([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6_net([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6_net([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a private address"),
    (v6_net([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

const GLOBAL_UNICAST: Ipv6Net = v6_net([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

const fn v4_net([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6_net([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}
