//! Why parameters cannot become a request, in words that let an agent correct itself.

use thiserror::Error;

/// The longest address, in bytes: what common servers take.
pub(super) const URL_LIMIT: usize = 8 * 1024;

/// Parameters that cannot become a request. No variant carries a value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// A parameter of the path is missing.
    #[error("parameter `{parameter}` is part of the path; give a text or a number")]
    Missing {
        /// Which.
        parameter: String,
    },
    /// A value that has no form in its place.
    #[error("parameter `{parameter}` goes into the {place}, which takes {takes}")]
    Shape {
        /// Which.
        parameter: String,
        /// Where it goes.
        place: &'static str,
        /// What can go there.
        takes: &'static str,
    },
    /// A value that could leave its path segment.
    #[error(
        "parameter `{parameter}` goes into one segment of the path; it must not be empty, `.` or `..`, nor contain \
         slashes, backslashes or control characters, encoded or not"
    )]
    Segment {
        /// Which.
        parameter: String,
    },
    /// A value that no header can carry.
    #[error("parameter `{parameter}` {reason}")]
    HeaderValue {
        /// Which.
        parameter: String,
        /// What it must be like.
        reason: &'static str,
    },
    /// A name that would be read as something else.
    #[error("parameter `{parameter}` has brackets in its name; send nested values as objects and lists")]
    Brackets {
        /// Which.
        parameter: String,
    },
    /// An item that would be read as several.
    #[error(
        "parameter `{parameter}` is a list that is sent as one text; no item may contain {divider:?}, which divides them"
    )]
    Divided {
        /// Which.
        parameter: String,
        /// What divides its items.
        divider: &'static str,
    },
    /// An item that has no text.
    #[error("parameter `{parameter}` is a list that is sent as one text; its items must be texts, numbers or booleans")]
    Item {
        /// Which.
        parameter: String,
    },
    /// A parameter under the name that another one has in the request.
    #[error("parameter `{parameter}` goes by a name that another parameter is mapped to; send that one")]
    Reserved {
        /// Which.
        parameter: String,
    },
    /// A parameter that nothing in the request takes.
    #[error("parameter `{parameter}` has no place in the path; leave it out")]
    NoPlace {
        /// Which.
        parameter: String,
    },
    /// Too much for an address.
    #[error("the parameters make an address of more than {URL_LIMIT} bytes; send less")]
    TooLong,
    /// The finished address is not what the template says.
    #[error("the parameters lead out of the tool's address; send plain values")]
    Strayed,
}

impl RenderError {
    /// The parameter at fault, where it is one.
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
