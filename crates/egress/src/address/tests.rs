//! The edges of every refused network, and the extent of exemptions.

use proptest::prelude::*;

use super::*;

fn kind(address: &str) -> Option<&'static str> {
    AddressPolicy::default().check(address.parse().unwrap()).err().map(|forbidden| forbidden.kind)
}

fn policy(networks: &[&str]) -> AddressPolicy {
    AddressPolicy::new(networks.iter().map(|network| network.parse().unwrap()).collect())
}

fn admits(policy: &AddressPolicy, address: &str) -> bool {
    policy.check(address.parse().unwrap()).is_ok()
}

/// The first and the last address of everything that is refused, and their neighbours outside.
#[test]
fn every_special_ipv4_network_is_refused_from_its_first_to_its_last_address() {
    let networks = [
        (None, "0.0.0.0", "0.255.255.255", Some("1.0.0.0")),
        (Some("9.255.255.255"), "10.0.0.0", "10.255.255.255", Some("11.0.0.0")),
        (Some("100.63.255.255"), "100.64.0.0", "100.127.255.255", Some("100.128.0.0")),
        (Some("126.255.255.255"), "127.0.0.0", "127.255.255.255", Some("128.0.0.0")),
        (Some("168.63.129.15"), "168.63.129.16", "168.63.129.16", Some("168.63.129.17")),
        (Some("169.253.255.255"), "169.254.0.0", "169.254.255.255", Some("169.255.0.0")),
        (Some("172.15.255.255"), "172.16.0.0", "172.31.255.255", Some("172.32.0.0")),
        (Some("191.255.255.255"), "192.0.0.0", "192.0.0.255", Some("192.0.1.0")),
        (Some("192.0.1.255"), "192.0.2.0", "192.0.2.255", Some("192.0.3.0")),
        (Some("192.88.98.255"), "192.88.99.0", "192.88.99.255", Some("192.88.100.0")),
        (Some("192.167.255.255"), "192.168.0.0", "192.168.255.255", Some("192.169.0.0")),
        (Some("198.17.255.255"), "198.18.0.0", "198.19.255.255", Some("198.20.0.0")),
        (Some("198.51.99.255"), "198.51.100.0", "198.51.100.255", Some("198.51.101.0")),
        (Some("203.0.112.255"), "203.0.113.0", "203.0.113.255", Some("203.0.114.0")),
        (Some("223.255.255.255"), "224.0.0.0", "239.255.255.255", None),
        (None, "240.0.0.0", "255.255.255.255", None),
    ];
    for (before, first, last, after) in networks {
        assert!(kind(first).is_some() && kind(last).is_some(), "{first} to {last}");
        for outside in [before, after].into_iter().flatten() {
            assert_eq!(kind(outside), None, "{outside}");
        }
    }
}

#[test]
fn every_special_ipv6_network_is_refused_from_its_first_to_its_last_address() {
    let networks = [
        ("::", "::ffff:ffff"),
        ("64:ff9b::", "64:ff9b::ffff:ffff"),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
        ("100::", "100::ffff:ffff:ffff:ffff"),
        ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("ff00::", "ff0e::1"),
    ];
    for (first, last) in networks {
        assert!(kind(first).is_some() && kind(last).is_some(), "{first} to {last}");
    }
    for outside in ["2000::1", "2001:200::", "2001:db7::1", "2001:db9::", "2003::", "3ffe::", "3fff:1000::"] {
        assert_eq!(kind(outside), None, "{outside}");
    }
}

#[test]
fn metadata_addresses_are_called_by_that_name() {
    for address in ["169.254.169.254", "::ffff:169.254.169.254", "100.100.100.200", "fd00:ec2::254", "168.63.129.16"] {
        assert_eq!(kind(address), Some(METADATA), "{address}");
    }
}

#[test]
fn an_exemption_reaches_as_far_as_it_is_written() {
    let policy = policy(&["127.0.0.1/32", "fd00::/64"]);
    for admitted in ["127.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1", "fd00::5"] {
        assert!(admits(&policy, admitted), "{admitted}");
    }
    for refused in ["127.0.0.2", "::1", "::ffff:127.0.0.2", "::127.0.0.2", "fd01::5", "10.0.0.1", "64:ff9b::7f00:1"] {
        assert!(!admits(&policy, refused), "{refused}");
    }
}

#[test]
fn an_exemption_in_ipv6_dress_is_the_ipv4_exemption() {
    let policy = policy(&["::ffff:10.1.0.0/112"]);
    assert!(admits(&policy, "10.1.2.3") && admits(&policy, "::ffff:10.1.2.3"));
    assert!(!admits(&policy, "10.2.0.1"));
}

#[test]
fn an_exempt_ipv6_network_opens_no_way_to_a_forbidden_ipv4_address() {
    let policy = policy(&["::/0"]);
    assert!(admits(&policy, "::1") && admits(&policy, "fd00::1"));
    let carriers = [
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::10.0.0.1",
        "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:5601:5601",
    ];
    for carrier in carriers {
        assert!(!admits(&policy, carrier), "{carrier}");
    }
    // Where the network translates for all its hosts, the operator names the prefix and public services work.
    assert!(admits(&policy, "64:ff9b::8.8.8.8") && admits(&policy, "2002:808:808::1"));
}

proptest! {
    #[test]
    fn an_ipv4_address_fares_the_same_in_ipv6_dress(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let policy = policy(&["10.0.0.0/9", "192.168.7.0/24"]);
        let plain = policy.check(IpAddr::V4(address));
        prop_assert_eq!(policy.check(IpAddr::V6(address.to_ipv6_mapped())), plain);
    }

    #[test]
    fn what_the_standard_library_calls_special_is_refused(bits: u32) {
        let address = Ipv4Addr::from_bits(bits);
        let special = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
            || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
        prop_assert!(!special || AddressPolicy::default().check(IpAddr::V4(address)).is_err());
    }
}
