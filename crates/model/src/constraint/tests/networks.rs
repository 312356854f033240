//! From where a call may come, and where it may go.

use std::net::IpAddr;

use super::*;

fn networks(texts: &[&str]) -> NetworkSet {
    NetworkSet::parse(texts.iter().copied()).unwrap()
}

fn hosts(texts: &[&str]) -> HostSet {
    HostSet::parse(texts.iter().copied()).unwrap()
}

fn admits(networks: &NetworkSet, address: &str) -> bool {
    networks.contains(address.parse::<IpAddr>().unwrap())
}

#[test]
fn an_address_is_admitted_by_the_networks_that_hold_it() {
    let set = networks(&["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"]);
    for address in ["10.0.0.0", "10.255.255.255", "192.0.2.7", "2001:db8::1"] {
        assert!(admits(&set, address), "{address}");
    }
    for address in ["11.0.0.0", "192.0.2.8", "2001:db9::1", "::1"] {
        assert!(!admits(&set, address), "{address}");
    }
    assert!(!admits(&networks(&[]), "10.0.0.1"), "the empty list admits nobody");
}

#[test]
fn an_ipv4_address_in_ipv6_dress_is_the_ipv4_address() {
    assert!(admits(&networks(&["10.0.0.0/8"]), "::ffff:10.1.2.3"));
    assert!(!admits(&networks(&["10.0.0.0/8"]), "::ffff:11.1.2.3"));
    assert!(admits(&networks(&["::ffff:10.0.0.0/104"]), "10.1.2.3"));
    assert_eq!(networks(&["::ffff:10.0.0.0/104"]), networks(&["10.0.0.0/8"]));
    assert!(!admits(&networks(&["::/0"]), "10.1.2.3"), "the IPv6 internet is not the IPv4 internet");
    assert!(NetworkSet::parse(["::ffff:0:0/95"]).is_err(), "a mix of both is refused");
}

#[test]
fn neighbouring_networks_are_one() {
    assert_eq!(networks(&["10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16"]), networks(&["10.0.0.0/8"]));
    let child = constraints(json!({"ip_allowlist": ["10.0.0.0/8"]}));
    let source = constraints(json!({"ip_allowlist": ["10.128.0.0/9", "10.0.0.0/9"]}));
    assert_eq!(child.first_widening(&source), None);
}

#[test]
fn what_is_no_network_is_refused_with_advice() {
    let reason = |text| NetworkSet::parse([text]).unwrap_err();
    assert!(reason("10.0.0.1/8").contains("use 10.0.0.0/8"));
    for text in ["", "10.0.0.0/33", "example.com", "10.0.0", "10.0.0.0/8 "] {
        assert!(reason(text).contains("is not a network"), "{text}");
    }
}

#[test]
fn a_host_name_admits_itself_and_the_names_below_it() {
    let set = hosts(&["Example.com", "192.0.2.7", "[2001:db8::1]"]);
    for host in ["example.com", "API.example.com", "a.b.example.com", "example.com.", "192.0.2.7", "2001:db8:0::1"] {
        assert!(set.contains(host), "{host}");
    }
    for host in ["notexample.com", "example.com.evil.org", "com", "192.0.2.8", "1.192.0.2.7", "2001:db8::2", "", "."] {
        assert!(!set.contains(host), "{host}");
    }
    assert!(!hosts(&[]).contains("example.com"), "the empty list admits none");
}

#[test]
fn an_ipv4_host_in_ipv6_dress_is_the_ipv4_host() {
    assert!(hosts(&["192.0.2.7"]).contains("[::ffff:192.0.2.7]"));
    assert_eq!(hosts(&["::ffff:192.0.2.7"]), hosts(&["192.0.2.7"]));
}

#[test]
fn what_is_no_host_is_refused_by_its_number_and_not_repeated() {
    for text in ["", "a b", "example.com:443", "example.com/x", "*.example.com", "-a.com", "a..com", "127.1", "0177.1"]
    {
        let error = HostSet::parse(["example.com", text]).unwrap_err();
        assert!(error.contains("number 2,"), "{text}: {error}");
    }
    assert!(!HostSet::parse(["sk live 1"]).unwrap_err().contains("sk live 1"), "it may be a secret");
    assert!(!NetworkSet::parse(["sk live 1"]).unwrap_err().contains("sk live 1"));
    assert!(HostSet::parse([&*"a.".repeat(127)]).is_ok() && HostSet::parse([&*"a.".repeat(128)]).is_err());
}

#[test]
fn the_meet_of_networks_is_what_both_hold() {
    let meet = networks(&["10.0.0.0/8", "192.0.2.0/24"]).meet(&networks(&["10.1.0.0/16", "192.0.0.0/8", "::/0"]));
    assert_eq!(meet, networks(&["10.1.0.0/16", "192.0.2.0/24"]));
    assert_eq!(networks(&["10.0.0.0/8"]).meet(&networks(&["11.0.0.0/8"])), networks(&[]));
}

#[test]
fn the_meet_of_hosts_is_what_both_hold() {
    let meet = hosts(&["example.com", "a.example.org"]).meet(&hosts(&["api.example.com", "example.org", "other.net"]));
    assert_eq!(meet, hosts(&["api.example.com", "a.example.org"]));
    assert_eq!(hosts(&["example.com"]).meet(&hosts(&["example.org"])), hosts(&[]));
}
