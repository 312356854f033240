//! The HTTP request of a call: method, path template, and the place of every parameter.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use url::Url;

use crate::arguments::Arguments;
use crate::merkle::sha256;

use self::fixed_url::FixedUrl;
pub use self::render_error::RenderError;
pub use self::template::PathTemplate;

mod fixed_url;
pub(crate) mod header;
mod render;
mod render_error;
mod segment;
mod template;
mod wire;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq)]
pub struct HttpMapping {
    pub method: HttpMethod,
    /// The path below the base URL.
    pub path: PathTemplate,
    /// Parameters that are not placed by their name or the default of the method.
    pub placements: BTreeMap<String, Placement>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    pub body: BodyFormat,
    /// The status codes that count as success.
    pub success: SuccessCodes,
    /// The place of parameters that are neither placed nor in the path. By default the body of POST, PUT and PATCH,
    /// otherwise the query. With [`Place::Path`] there are no such parameters.
    pub default_placement: Option<Place>,
    fixed_url: FixedUrl,
}

/// The methods that a tool can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Delete,
    Get,
    Head,
    Patch,
    Post,
    Put,
}

/// A part of the request with parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Body,
    Header,
    Path,
    Query,
}

/// The place of one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    pub place: Place,
    /// The name there: of the placeholder, the header, the query parameter or the member of the body.
    pub name: String,
    /// The separator of the items of a list that is sent as one string. Without it a list in the query repeats the
    /// name.
    pub divider: Option<Divider>,
}

/// The separator of list items in one string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divider {
    /// `a,b`
    Comma,
    /// `a|b`
    Pipe,
    /// `a b`
    Space,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/x-www-form-urlencoded`, nested values in brackets: `a[b]=c`, `a[0]=c`.
    Form,
    /// `application/json`
    Json,
}

/// The status codes that count as success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuccessCodes(Vec<RangeInclusive<u16>>);

/// A request without its credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedRequest {
    pub method: HttpMethod,
    /// The base URL, and a path within the template.
    pub url: Url,
    /// The headers, except those of the body. Names are unique.
    pub headers: Vec<(String, String)>,
    pub body: Option<RenderedBody>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedBody {
    pub content_type: Cow<'static, str>,
    pub bytes: Vec<u8>,
}

impl HttpMapping {
    /// A mapping with the defaults of the method.
    pub fn new(method: HttpMethod, path: PathTemplate) -> Self {
        Self {
            method,
            path,
            placements: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: BodyFormat::Json,
            success: SuccessCodes::default(),
            default_placement: None,
            fixed_url: FixedUrl::default(),
        }
    }

    pub fn is_success(&self, status: u16) -> bool {
        self.success.0.iter().any(|range| range.contains(&status))
    }
}

impl RenderedRequest {
    /// SHA-256 of method, URL and canonical parameters: the same for the same request, without anything of a
    /// credential.
    pub fn fingerprint(&self, parameters: &Arguments<'_>) -> String {
        let mut text = Vec::with_capacity(256);
        text.extend_from_slice(self.method.as_str().as_bytes());
        text.push(b'\n');
        text.extend_from_slice(self.url.as_str().as_bytes());
        text.push(b'\n');
        text.extend_from_slice(parameters.canonical());
        sha256(&text).to_hex()
    }
}

impl HttpMethod {
    const ALL: [Self; 6] = [Self::Delete, Self::Get, Self::Head, Self::Patch, Self::Post, Self::Put];

    /// The form in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Patch => "PATCH",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }

    /// Parses [`HttpMethod::as_str`], in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether parameters go into the body by default.
    fn has_body(self) -> bool {
        matches!(self, Self::Patch | Self::Post | Self::Put)
    }

    /// Whether a body has a meaning.
    fn may_have_body(self) -> bool {
        self.has_body() || self == Self::Delete
    }
}

impl Place {
    /// The form in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Header => "header",
            Self::Path => "path",
            Self::Query => "query",
        }
    }
}

impl Divider {
    const WORDS: [(&'static str, Self); 3] = [(",", Self::Comma), ("|", Self::Pipe), (" ", Self::Space)];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comma => ",",
            Self::Pipe => "|",
            Self::Space => " ",
        }
    }
}

impl BodyFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Form => "application/x-www-form-urlencoded",
            Self::Json => "application/json",
        }
    }
}

impl Default for SuccessCodes {
    fn default() -> Self {
        Self(vec![200..=299])
    }
}
