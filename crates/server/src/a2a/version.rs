//! Which version of the protocol a request speaks. Its method or path decides, and its header must agree.

use http::request::Parts;
use serde_json::{Map, json};
use toolgate_model::a2a::{A2aError, ErrorKind, Version};

const HEADER: &str = "a2a-version";

/// Checks what a request says about its version. Without a word it speaks 0.3.
pub(super) fn check(parts: &Parts, speaks: Version) -> Result<(), A2aError> {
    let mut headers = parts.headers.get_all(HEADER).iter().map(|value| value.to_str().unwrap_or("?"));
    let header = headers.next();
    let query = || {
        let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        query.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(HEADER)).map(|(_, value)| value.into_owned())
    };
    let said = header.map(str::to_owned).or_else(query).unwrap_or_default();
    let version = if said.trim().is_empty() { Some(Version::V0_3) } else { Version::parse(&said) };
    if version == Some(speaks) && headers.next().is_none() {
        return Ok(());
    }
    let said: String = said.chars().filter(|letter| letter.is_ascii_graphic()).take(16).collect();
    let said = if said.is_empty() { "nothing, which means 0.3".to_owned() } else { said };
    let needed = speaks.as_str();
    let reason = format!("this request is one of version {needed}, and the header A2A-Version says {said}");
    Err(unsupported(&reason))
}

/// A version that is not spoken.
pub(super) fn unsupported(reason: &str) -> A2aError {
    let supported = Version::ALL.map(Version::as_str).join(", ");
    let metadata = Map::from_iter([("supportedVersions".to_owned(), json!(supported))]);
    A2aError::new(ErrorKind::VersionNotSupported, reason, metadata)
}
