//! The versions of the protocol. A request of the modern era stands alone; one of a legacy version belongs to a session.

use http::HeaderMap;

use super::message::Params;

/// The modern version.
pub(super) const MODERN: &str = "2026-07-28";
/// The version that a legacy client without a header means.
const UNDECLARED: LegacyVersion = LegacyVersion::V2025_03_26;
/// Names the version in the headers.
pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
/// Names it in the `_meta` of a modern request.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The versions in which a client opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LegacyVersion {
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

/// Which rules a request follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy(LegacyVersion),
}

impl LegacyVersion {
    const ALL: [Self; 3] = [Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26];
    /// What a client is offered that asks for a version that is not known.
    pub(super) const NEWEST: Self = Self::V2025_11_25;

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }
}

impl Era {
    /// That of a request. The body decides: a request that names its version there is a modern one, and its headers must
    /// agree.
    pub(super) fn of(headers: &HeaderMap, params: &Params) -> Self {
        if params.has_meta(VERSION_KEY) {
            return Self::Modern;
        }
        Self::of_headers(headers)
    }

    /// That of a request without a body.
    pub(super) fn of_headers(headers: &HeaderMap) -> Self {
        match headers.get(VERSION_HEADER) {
            None => Self::Legacy(UNDECLARED),
            Some(value) => value
                .to_str()
                .ok()
                .and_then(|value| LegacyVersion::parse(value.trim()))
                .map_or(Self::Modern, Self::Legacy),
        }
    }

    /// Whether a request of a session of this version may have these headers: they name it or none.
    pub(super) fn agrees(headers: &HeaderMap, version: LegacyVersion) -> bool {
        !headers.contains_key(VERSION_HEADER) || Self::of_headers(headers) == Self::Legacy(version)
    }

    pub(super) fn is_modern(self) -> bool {
        self == Self::Modern
    }
}

/// All versions, newest first.
pub(super) fn supported() -> [&'static str; 4] {
    let [first, second, third] = LegacyVersion::ALL.map(LegacyVersion::as_str);
    [MODERN, first, second, third]
}
