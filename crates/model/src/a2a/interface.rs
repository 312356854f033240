//! How an agent can be reached: the interfaces that its card lists, in the places of both versions.

use serde_json::Value;
use url::Url;

use crate::service::PathTemplate;

/// How messages are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// JSON-RPC 2.0 in POST requests.
    JsonRpc,
    /// Resources over HTTP.
    HttpJson,
}

impl Binding {
    pub const ALL: [Self; 2] = [Self::JsonRpc, Self::HttpJson];

    /// As cards and definitions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }

    /// Reads [`Binding::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|binding| binding.as_str() == text)
    }
}

/// The version of the protocol. The patch number is never on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V1_0,
    V0_3,
}

impl Version {
    pub const ALL: [Self; 2] = [Self::V1_0, Self::V0_3];

    /// As headers and definitions write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_0 => "1.0",
            Self::V0_3 => "0.3",
        }
    }

    /// Reads [`Version::as_str`] back; only major and minor count.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().split('.');
        let (major, minor) = (numbers.next()?, numbers.next().unwrap_or("0"));
        match (major, minor) {
            ("1", "0") => Some(Self::V1_0),
            ("0", "3") => Some(Self::V0_3),
            _ => None,
        }
    }
}

/// An interface that the gate can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub binding: Binding,
    pub version: Version,
    pub url: Url,
    pub tenant: Option<String>,
}

impl Interface {
    /// The path of its URL, as a template has it.
    pub(super) fn path(&self) -> &str {
        self.url.path().trim_end_matches('/')
    }

    /// The interfaces of a card that the gate can use, in the order of the card. Others, such as gRPC, are left out.
    pub fn of_card(card: &Value) -> Vec<Self> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut found = Vec::new();
        for listed in card.get("supportedInterfaces").and_then(Value::as_array).into_iter().flatten() {
            let version = text(listed, "protocolVersion");
            found.push((text(listed, "url"), text(listed, "protocolBinding"), version, text(listed, "tenant")));
        }
        // Where cards of 0.3 have them, and cards of 1.0 may have them as well.
        if let Some(url) = text(card, "url") {
            let version = text(card, "protocolVersion").or_else(|| Some("0.3".to_owned()));
            let transport = text(card, "preferredTransport").or_else(|| Some("JSONRPC".to_owned()));
            found.push((Some(url), transport, version.clone(), None));
            for listed in card.get("additionalInterfaces").and_then(Value::as_array).into_iter().flatten() {
                found.push((text(listed, "url"), text(listed, "transport"), version.clone(), None));
            }
        }
        let mut interfaces: Vec<Self> = Vec::new();
        for (url, binding, version, tenant) in found {
            let read = || {
                let url = Url::parse(&url?).ok()?;
                let usable = matches!(url.scheme(), "http" | "https")
                    && url.host_str().is_some_and(|host| !host.is_empty())
                    && url.query().is_none()
                    && url.fragment().is_none()
                    && url.username().is_empty()
                    && url.password().is_none()
                    && PathTemplate::parse(url.path()).is_ok_and(|path| path.placeholders().is_empty());
                let tenant = tenant.filter(|tenant| !tenant.is_empty());
                let (binding, version) = (Binding::parse(&binding?)?, Version::parse(&version?)?);
                usable.then_some(Self { binding, version, url, tenant })
            };
            if let Some(interface) = read()
                && !interfaces.contains(&interface)
            {
                interfaces.push(interface);
            }
        }
        interfaces
    }
}

/// The interface that is used for each form of messages: both bindings of 1.0 carry the same ones, those of 0.3 do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Messages of 1.0.
    pub modern: Option<Interface>,
    /// Messages of 0.3 over JSON-RPC.
    pub legacy: Option<Interface>,
    /// Messages of 0.3 as HTTP and JSON.
    pub legacy_http: Option<Interface>,
}

impl Offered {
    /// What a card offers, all of it at one origin: that of the first interface. A credential is sent to no other.
    pub fn of_card(card: &Value) -> Self {
        let mut interfaces = Interface::of_card(card);
        let origin = interfaces.first().map(|interface| interface.url.origin());
        interfaces.retain(|interface| Some(interface.url.origin()) == origin);
        let find =
            |binding, version| interfaces.iter().find(|one| one.binding == binding && one.version == version).cloned();
        Self {
            modern: find(Binding::JsonRpc, Version::V1_0).or_else(|| find(Binding::HttpJson, Version::V1_0)),
            legacy: find(Binding::JsonRpc, Version::V0_3),
            legacy_http: find(Binding::HttpJson, Version::V0_3),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Interface> {
        [&self.modern, &self.legacy, &self.legacy_http].into_iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub fn has_legacy(&self) -> bool {
        self.legacy.is_some() || self.legacy_http.is_some()
    }
}
