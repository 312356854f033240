//! Base URLs: the location of a service, and nothing that could redirect, authenticate or parametrize a call by itself.

use std::fmt;

use url::Url;

/// The maximum length in bytes.
const LENGTH_LIMIT: usize = 2048;

/// An http or https URL with a host and optionally a path; no user, no query, no fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
    /// The path without its last slash, so that a template can be appended.
    path: String,
}

impl BaseUrl {
    /// Parses and normalizes a URL.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut url = parse_address(text)?;
        if url.query().is_some() {
            return Err("must not have a query; put parameters into the tools".to_owned());
        }
        let path = url.path().trim_end_matches('/').to_owned();
        if path.contains("//") {
            return Err("must not have consecutive slashes in its path".to_owned());
        }
        url.set_path(&path);
        Ok(Self { url, path })
    }

    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// The host as written in the URL.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The path without a trailing slash; empty at the root.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Parses an http or https URL in which nothing is hidden from a reader: no user, no fragment, and no character that
/// URL parsers drop or replace.
pub(crate) fn parse_address(text: &str) -> Result<Url, String> {
    if text.len() > LENGTH_LIMIT {
        return Err(format!("must be at most {LENGTH_LIMIT} bytes long"));
    }
    if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
        return Err("must not contain blanks, line breaks or backslashes".to_owned());
    }
    let advice = "use a URL such as https://api.example.com/v1";
    let url = Url::parse(text).map_err(|_| format!("is not a valid URL; {advice}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("must begin with http:// or https://; {advice}"));
    }
    let behind_scheme = text.split_once("://").map(|(_, rest)| rest);
    let authority = behind_scheme.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty() || url.host_str().is_none_or(str::is_empty) {
        return Err(format!("has no host; {advice}"));
    }
    // Also an empty user, which the parsed URL no longer shows.
    if authority.contains('@') {
        return Err("must not contain a user or password; store them as the credential's material".to_owned());
    }
    if url.fragment().is_some() {
        return Err("must not have a fragment".to_owned());
    }
    Ok(url)
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
