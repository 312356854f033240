//! Where a request may come from. A web page must not reach a gate on the machine or in the network of its visitor, not
//! even by DNS rebinding.

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, Uri, header};

use super::Settings;

/// Refuses a request that a web page from elsewhere sends, or that came here by a foreign name.
pub(super) fn check(parts: &Parts, client: IpAddr, settings: &Settings) -> Result<(), &'static str> {
    let host = host_of(&parts.headers, &parts.uri);
    let own = settings.public_url.as_deref().and_then(authority);
    let is_own = |host: &str| own.is_some_and(|own| name_of(own).eq_ignore_ascii_case(host));
    if client.is_loopback() {
        // A client on this machine has no reason to use another host name.
        let named = host.map(name_of);
        if named.is_some_and(|name| !is_loopback(name) && !is_own(name)) {
            return Err("the Host of the request is not this gate: use its address, or set server.public_url");
        }
    }
    let mut origins = parts.headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let refused = Err("this Origin is not allowed: add it to mcp.allowed_origins");
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else { return refused };
    let is_listed = settings.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
    let Some(authority) = authority(origin) else { return if is_listed { Ok(()) } else { refused } };
    let name = name_of(authority);
    // An address is not looked up, so that no name can suddenly lead to it.
    let is_same = host.is_some_and(|host| host.eq_ignore_ascii_case(authority)) && address(name).is_some();
    if is_listed || is_loopback(name) || is_own(name) || is_same { Ok(()) } else { refused }
}

fn host_of<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let authority = uri.authority().map(http::uri::Authority::as_str);
    authority.or_else(|| headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?")))
}

/// Host and port of a URL.
fn authority(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    matches!(scheme, "http" | "https").then_some(authority)
}

/// The host without its port.
fn name_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}

fn address(name: &str) -> Option<IpAddr> {
    let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    inner.parse().ok()
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || address(name).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http::Request;

    use super::*;

    fn checked(client: &str, host: &str, origin: Option<&str>, settings: &Settings) -> bool {
        let mut request = Request::builder().uri("/mcp").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts, client.parse().unwrap(), settings).is_ok()
    }

    #[test]
    fn pages_of_this_machine_and_listed_ones_may_and_no_others() {
        let listed = Settings { allowed_origins: vec!["https://chat.example".to_owned()], ..Settings::default() };
        let here = Ipv4Addr::LOCALHOST.to_string();
        for (origin, allowed) in [
            (None, true),
            (Some("http://localhost:8080"), true),
            (Some("http://127.0.0.1"), true),
            (Some("http://[::1]:7300"), true),
            (Some("https://chat.example"), true),
            (Some("https://chat.example:8443"), false),
            (Some("https://evil.example"), false),
            (Some("http://localhost.evil.example"), false),
            (Some("http://127.0.0.1.evil.example"), false),
            (Some("null"), false),
            (Some("file:///etc/passwd"), false),
        ] {
            assert_eq!(checked(&here, "127.0.0.1:7300", origin, &listed), allowed, "{origin:?}");
        }
    }

    #[test]
    fn a_name_that_suddenly_leads_here_is_refused() {
        let settings = Settings::default();
        assert!(!checked("127.0.0.1", "evil.example", Some("http://evil.example"), &settings));
        assert!(!checked("127.0.0.1", "evil.example", None, &settings));
        assert!(!checked("10.0.0.7", "evil.example", Some("http://evil.example"), &settings));
        assert!(checked("10.0.0.7", "10.0.0.1:7300", Some("http://10.0.0.1:7300"), &settings));
        assert!(checked("10.0.0.7", "gate.example", None, &settings));
        let public = Settings { public_url: Some("https://gate.example".to_owned()), ..Settings::default() };
        assert!(checked("127.0.0.1", "gate.example", Some("https://gate.example"), &public));
    }

    #[test]
    fn names_are_compared_without_case() {
        let public = Settings { public_url: Some("https://Gate.example".to_owned()), ..Settings::default() };
        assert!(checked("127.0.0.1", "gate.example", Some("https://gate.EXAMPLE"), &public));
        assert!(checked("127.0.0.1", "GATE.example:443", None, &public));
        assert!(checked("10.0.0.7", "[FD00::1]:7300", Some("http://[fd00::1]:7300"), &public));
        assert!(!checked("127.0.0.1", "gate.example.evil", None, &public));
    }
}
