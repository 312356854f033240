//! Hosts that a call may reach: a name includes itself and every subdomain, an address only itself.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// A set of host names and addresses; the empty set includes none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSet(BTreeSet<String>);

impl HostSet {
    /// Parses host names and addresses; the error has the number of the invalid entry and does not repeat it.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let hosts = (1..).zip(texts).map(|(number, text): (usize, _)| {
            let advice = "that is not a host; use a name such as api.example.com or an address, without port or path";
            parse_one(text).ok_or_else(|| format!("has an entry, number {number}, {advice}"))
        });
        hosts.collect::<Result<BTreeSet<_>, _>>().map(Self)
    }

    /// Whether this host, as written in a URL, is included.
    pub fn contains(&self, host: &str) -> bool {
        parse_one(host).is_some_and(|host| self.0.iter().any(|own| covers(own, &host)))
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn widening(&self, source: &Self) -> Option<String> {
        let outside = self.0.iter().find(|own| !source.0.iter().any(|host| covers(host, own)))?;
        Some(format!("contains {outside}, which the source grant does not allow"))
    }

    pub(super) fn meet(&self, other: &Self) -> Self {
        let within = |inner: &Self, outer: &Self| {
            inner.0.iter().filter(|own| outer.0.iter().any(|host| covers(host, own))).cloned().collect::<Vec<_>>()
        };
        Self(within(self, other).into_iter().chain(within(other, self)).collect())
    }
}

fn covers(outer: &str, inner: &str) -> bool {
    if outer == inner {
        return true;
    }
    outer.parse::<IpAddr>().is_err() && inner.strip_suffix(outer).is_some_and(|rest| rest.ends_with('.'))
}

fn parse_one(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(address.to_canonical().to_string());
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label_fits = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // Some resolvers would read a last label of digits only as an address.
    let ends_in_a_number = name.rsplit('.').next().is_some_and(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    if name.len() > 253 || ends_in_a_number || !name.split('.').all(label_fits) {
        return None;
    }
    Some(name)
}
