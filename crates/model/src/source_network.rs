//! The network of a client, for telling clients apart.

use std::net::IpAddr;

/// The network of an address: an IPv4 address by itself, in any notation, and for IPv6 the whole /64, because a client
/// with one address of it has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceNetwork(IpAddr);

impl SourceNetwork {
    /// The network of this address.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(six) => {
                let [a, b, c, d, ..] = six.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            four @ IpAddr::V4(_) => four,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_client_are_in_one_network_and_those_of_two_are_not() {
        let network = |address: &str| SourceNetwork::of(address.parse().unwrap());

        assert_eq!(network("2001:db8:0:1::1"), network("2001:db8:0:1:9:9:9:9"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
        assert_eq!(network("192.0.2.1"), network("::ffff:192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
