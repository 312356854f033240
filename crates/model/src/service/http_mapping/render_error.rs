//! Why parameters cannot become a request, in words that let an agent fix its call.

use thiserror::Error;

/// The maximum length of a URL in bytes: what common servers accept.
pub(super) const URL_LIMIT: usize = 8 * 1024;

/// Parameters that cannot become a request. No variant contains a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    #[error("parameter `{parameter}` is part of the path and required; send a string or a number")]
    Missing { parameter: String },
    /// A value that its place cannot represent.
    #[error("parameter `{parameter}` is sent in the {place} and must be {takes}")]
    Shape {
        parameter: String,
        place: &'static str,
        /// What the place accepts.
        takes: &'static str,
    },
    /// A value that could leave its path segment.
    #[error(
        "parameter `{parameter}` is one segment of the path; it must not be empty, `.` or `..`, nor contain \
         slashes, backslashes or control characters, encoded or not"
    )]
    Segment { parameter: String },
    #[error("parameter `{parameter}` {reason}")]
    HeaderValue { parameter: String, reason: &'static str },
    /// A name that would be read as something else.
    #[error("parameter `{parameter}` has brackets in its name; send nested values as objects and lists")]
    Brackets { parameter: String },
    /// An item that would be read as several.
    #[error("parameter `{parameter}` is a list sent as one string; no item may contain the separator {divider:?}")]
    Divided { parameter: String, divider: &'static str },
    #[error("parameter `{parameter}` is a list sent as one string; its items must be strings, numbers or booleans")]
    Item { parameter: String },
    /// A parameter with the name of another one in the request.
    #[error("parameter `{parameter}` has a name that another parameter is mapped to; send that one")]
    Reserved { parameter: String },
    #[error("parameter `{parameter}` is not part of the path; remove it")]
    NoPlace { parameter: String },
    #[error("the URL with these parameters exceeds {URL_LIMIT} bytes; send less")]
    TooLong,
    /// The finished URL is not within the template.
    #[error("the parameters lead out of the URL of the tool; send plain values")]
    Strayed,
}

impl RenderError {
    /// The invalid parameter, if it is one.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Self::Missing { parameter }
            | Self::Shape { parameter, .. }
            | Self::Segment { parameter }
            | Self::HeaderValue { parameter, .. }
            | Self::Brackets { parameter }
            | Self::Divided { parameter, .. }
            | Self::Item { parameter }
            | Self::Reserved { parameter }
            | Self::NoPlace { parameter } => Some(parameter),
            Self::TooLong | Self::Strayed => None,
        }
    }
}
