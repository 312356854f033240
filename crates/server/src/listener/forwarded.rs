//! The client behind proxies. Only a configured proxy is trusted, and only for the one configured header: read from the
//! right, past other trusted proxies, to the first address that is not one.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

/// Which header names the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`: addresses, separated by commas.
    #[default]
    XForwardedFor,
    /// `Forwarded` of RFC 7239.
    Forwarded,
}

/// The proxies that the operator trusts.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    pub networks: Vec<IpNet>,
    /// The header with the client address.
    pub header: ForwardedHeader,
}

impl TrustedProxies {
    /// Whether this is the address of one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// The client of a request from this address. If a trusted proxy names no client, the proxy is the client.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if self.networks.is_empty() || !self.contains(peer) {
            return peer;
        }
        let mut client = peer;
        let name = match self.header {
            ForwardedHeader::XForwardedFor => HeaderName::from_static("x-forwarded-for"),
            ForwardedHeader::Forwarded => header::FORWARDED,
        };
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
        let hops = values.iter().rev().flat_map(|value| self.hops(value).into_iter().rev());
        for hop in hops {
            // Nothing is known past a hop that hides itself.
            let Some(hop) = hop else { return client };
            client = hop;
            if !self.contains(hop) {
                return client;
            }
        }
        client
    }

    /// The addresses in one header, in order; `None` for anything else.
    fn hops(&self, value: &[u8]) -> Vec<Option<IpAddr>> {
        let Ok(text) = std::str::from_utf8(value) else { return vec![None] };
        match self.header {
            ForwardedHeader::XForwardedFor => text.split(',').map(|hop| node(hop.trim())).collect(),
            ForwardedHeader::Forwarded => elements(text).into_iter().map(for_node).collect(),
        }
    }
}

/// An address, with or without a port.
fn node(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// The elements of a `Forwarded` header: a comma within quotes separates nothing.
fn elements(text: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character| {
        let separates = character == ',' && !quoted;
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        separates
    })
    .collect()
}

/// The `for` of one element. Two of them, or nested quotes, are an attempt at ambiguity.
fn for_node(element: &str) -> Option<IpAddr> {
    let mut found = element.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    });
    let (value, None) = (found.next()?, found.next()) else { return None };
    node(value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(header: ForwardedHeader, peer: &str, values: &[&str]) -> String {
        let networks = ["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap()).to_vec();
        let name = match header {
            ForwardedHeader::XForwardedFor => "x-forwarded-for",
            ForwardedHeader::Forwarded => "forwarded",
        };
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().unwrap());
        }
        TrustedProxies { networks, header }.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let client = |peer, values: &[&str]| client(ForwardedHeader::XForwardedFor, peer, values);
        assert_eq!(client("192.0.2.9", &["203.0.113.5"]), "192.0.2.9");
        assert_eq!(client("10.1.2.3", &["203.0.113.5"]), "203.0.113.5");
        assert_eq!(client("::ffff:10.1.2.3", &["203.0.113.5"]), "203.0.113.5");
        assert_eq!(client("10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn what_a_client_wrote_itself_stands_to_the_left_and_is_not_reached() {
        let client = |values: &[&str]| client(ForwardedHeader::XForwardedFor, "10.0.0.1", values);
        assert_eq!(client(&["127.0.0.1, 203.0.113.5"]), "203.0.113.5");
        assert_eq!(client(&["127.0.0.1", "203.0.113.5, 10.0.0.7"]), "203.0.113.5");
        assert_eq!(client(&["127.0.0.1", "203.0.113.5", "10.0.0.7"]), "203.0.113.5");
        assert_eq!(client(&["10.0.0.8, 10.0.0.7"]), "10.0.0.8");
    }

    #[test]
    fn what_is_no_address_ends_the_search() {
        let client = |values: &[&str]| client(ForwardedHeader::XForwardedFor, "10.0.0.1", values);
        for hidden in ["unknown", "_hidden", "", "1.2.3", "203.0.113.5 evil", "localhost"] {
            assert_eq!(client(&[&format!("127.0.0.1, {hidden}")]), "10.0.0.1", "{hidden}");
            assert_eq!(client(&[&format!("127.0.0.1, {hidden}, 10.0.0.7")]), "10.0.0.7", "{hidden}");
        }
    }

    #[test]
    fn ports_and_brackets_are_read() {
        let client = |value: &str| client(ForwardedHeader::XForwardedFor, "10.0.0.1", &[value]);
        assert_eq!(client("203.0.113.5:4711"), "203.0.113.5");
        assert_eq!(client("[2001:db8::5]:4711"), "2001:db8::5");
        assert_eq!(client("[2001:db8::5]"), "2001:db8::5");
        assert_eq!(client("2001:db8::5"), "2001:db8::5");
    }

    #[test]
    fn forwarded_is_read_as_its_rfc_says() {
        let client = |values: &[&str]| client(ForwardedHeader::Forwarded, "10.0.0.1", values);
        assert_eq!(client(&["for=192.0.2.60;proto=http;by=203.0.113.43"]), "192.0.2.60");
        assert_eq!(client(&["For=\"[2001:db8:cafe::17]:4711\""]), "2001:db8:cafe::17");
        assert_eq!(client(&["for=192.0.2.43, for=198.51.100.17"]), "198.51.100.17");
        assert_eq!(client(&["for=127.0.0.1, for=\"_gazonk\""]), "10.0.0.1");
        assert_eq!(client(&["for=127.0.0.1;for=192.0.2.60"]), "10.0.0.1");
        assert_eq!(client(&["for=127.0.0.1;host=\"a,for=1.2.3.4\", for=198.51.100.17"]), "198.51.100.17");
        assert_eq!(client(&["proto=https"]), "10.0.0.1");
    }

    #[test]
    fn the_other_header_is_not_read() {
        let proxies =
            TrustedProxies { networks: vec!["10.0.0.0/8".parse().unwrap()], header: ForwardedHeader::Forwarded };
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "203.0.113.5".parse().unwrap());
        assert_eq!(proxies.client("10.0.0.1".parse().unwrap(), &headers).to_string(), "10.0.0.1");
    }
}
