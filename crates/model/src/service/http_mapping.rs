//! How a call becomes an HTTP request: method, path template, and the place of every parameter.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use url::Url;

use crate::arguments::Arguments;
use crate::merkle::sha256;

pub use self::render_error::RenderError;
pub use self::template::PathTemplate;

pub(crate) mod header;
mod render;
mod render_error;
mod segment;
mod template;
mod wire;

#[cfg(test)]
mod tests;

/// The HTTP side of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpMapping {
    /// The method.
    pub method: HttpMethod,
    /// The path below the base URL.
    pub path: PathTemplate,
    /// Where parameters go that do not go where their name or the method says.
    pub placements: BTreeMap<String, Placement>,
    /// Headers that every request carries.
    pub headers: BTreeMap<String, String>,
    /// How the body is written.
    pub body: BodyFormat,
    /// Which answers are successes.
    pub success: SuccessCodes,
    /// Where parameters go that are neither placed nor in the path. Without one the method says: into the body of POST,
    /// PUT and PATCH, else into the query. With [`Place::Path`] there are no such parameters.
    pub default_placement: Option<Place>,
}

/// The methods that a tool can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// `DELETE`
    Delete,
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `PATCH`
    Patch,
    /// `POST`
    Post,
    /// `PUT`
    Put,
}

/// A part of the request that carries parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The body.
    Body,
    /// A header.
    Header,
    /// The path.
    Path,
    /// The query.
    Query,
}

/// Where one parameter goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The part of the request.
    pub place: Place,
    /// Its name there: of the placeholder, the header, the query parameter or the member of the body.
    pub name: String,
    /// What divides the items of a list that goes there as one text. Without it a list in the query repeats the name.
    pub divider: Option<Divider>,
}

/// What divides the items of a list in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divider {
    /// `a,b`
    Comma,
    /// `a|b`
    Pipe,
    /// `a b`
    Space,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/x-www-form-urlencoded`, nested values in brackets: `a[b]=c`, `a[0]=c`.
    Form,
    /// `application/json`
    Json,
}

/// Which status codes are a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuccessCodes(Vec<RangeInclusive<u16>>);

/// A request without its credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedRequest {
    /// The method.
    pub method: HttpMethod,
    /// The address: that of the base, and a path within the template.
    pub url: Url,
    /// The headers, except for those of the body. No name is twice in it.
    pub headers: Vec<(String, String)>,
    /// The body, where there is one.
    pub body: Option<RenderedBody>,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedBody {
    /// Its media type.
    pub content_type: Cow<'static, str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl HttpMapping {
    /// A mapping that leaves everything else to the method.
    pub fn new(method: HttpMethod, path: PathTemplate) -> Self {
        Self {
            method,
            path,
            placements: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: BodyFormat::Json,
            success: SuccessCodes::default(),
            default_placement: None,
        }
    }

    /// Whether this status is a success.
    pub fn is_success(&self, status: u16) -> bool {
        self.success.0.iter().any(|range| range.contains(&status))
    }
}

impl RenderedRequest {
    /// SHA-256 of method, URL and canonical parameters: the same for the same request, and nothing of a credential.
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

    /// As it stands in a request.
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

    /// Reads [`HttpMethod::as_str`] back, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether parameters go into the body unless something else is said.
    fn has_body(self) -> bool {
        matches!(self, Self::Patch | Self::Post | Self::Put)
    }

    /// Whether a body has a meaning at all.
    fn may_have_body(self) -> bool {
        self.has_body() || self == Self::Delete
    }
}

impl Place {
    /// As definitions write it.
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

    /// As it stands between two items.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comma => ",",
            Self::Pipe => "|",
            Self::Space => " ",
        }
    }
}

impl BodyFormat {
    /// The media type.
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
