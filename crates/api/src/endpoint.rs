//! The endpoint trait, and the notation in which the modules of this crate declare their endpoints.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::document::describe;
use crate::parameters::{Nothing, PathParameter};
use crate::schemas::Schemas;

/// One endpoint. Implemented by `endpoints!`, for a type without values that names it.
pub trait Endpoint: 'static {
    const METHOD: Method;
    /// With at most two placeholders in braces.
    const PATH: &'static str;
    /// The `operationId` of the document.
    const ID: &'static str;
    const TAG: &'static str;
    /// The summary; after an empty line, the description.
    const DOC: &'static str;
    const AUTHENTICATION: Authentication;
    /// The status of a success.
    const STATUS: StatusCode;
    /// The description of a success.
    const REPLY_DOC: &'static str;
    /// Errors besides those that follow from method, path and authentication.
    const ERRORS: &'static [ErrorResponse];
    /// The stream response, if a client can request one.
    const STREAM: Option<Stream>;

    type Path: PathParameter;
    type Query: JsonSchema + Serialize + DeserializeOwned;
    type Body: RequestBody;
    type Reply: JsonSchema + Serialize;
    /// One line or event of the stream.
    type Item: JsonSchema + Serialize;

    /// A request body for the document.
    fn example() -> Option<Value> {
        None
    }

    /// Adds to the document what the types do not express: headers, other media types, other successes.
    fn amend(_operation: &mut Value, _schemas: &mut Schemas) {}
}

/// The authentication that an endpoint requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    Key,
    Open,
}

/// An error that only some endpoints return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorResponse {
    pub status: ErrorStatus,
    /// Replaces the general description of the status.
    pub description: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorStatus {
    BadGateway,
    Conflict,
    Gone,
    NotFound,
    TooMany,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub kind: StreamKind,
    pub description: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// Server-sent events.
    Events,
    /// Lines of JSON.
    Lines,
}

impl StreamKind {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// A JSON body, which is an object.
pub trait RequestBody: JsonSchema + Serialize + DeserializeOwned + Send {
    /// The meaning of a request without a body; `None` if one is required.
    fn absent() -> Option<Self> {
        None
    }
}

impl RequestBody for Nothing {
    fn absent() -> Option<Self> {
        Some(Self {})
    }
}

/// The endpoints of one tag.
pub struct Group {
    pub tag: &'static str,
    pub description: &'static str,
    pub operations: Vec<Operation>,
}

/// The schema of each placeholder of a path, with what it is, in their order.
pub(crate) type PathParameters = Vec<(Option<&'static str>, Value)>;

/// An endpoint as a value, for the document and for tests that go through all of them.
pub struct Operation {
    pub method: Method,
    pub path: &'static str,
    pub id: &'static str,
    pub authentication: Authentication,
    pub(crate) describe: fn(&mut Schemas) -> Value,
    pub(crate) path_parameters: fn(&mut Schemas) -> PathParameters,
}

impl Operation {
    pub fn of<E: Endpoint>() -> Self {
        Self {
            method: E::METHOD,
            path: E::PATH,
            id: E::ID,
            authentication: E::AUTHENTICATION,
            describe: describe::<E>,
            path_parameters: |schemas| E::Path::schemas(schemas),
        }
    }
}

/// Declares the endpoints of one tag, and `group()` that lists them.
///
/// ```text
/// endpoints! {
///     tag "vaults" = "What the tag is about.";
///
///     /// The summary.
///     ///
///     /// The description.
///     CreateVault = POST "/api/v1/vaults" as "create_vault" {
///         path: VaultId,                          where the path has a placeholder
///         query: Paging,                          where there are parameters
///         body: NewVault = {"name": "main"},      with an example, or without
///         reply: CREATED Vault = "The vault.",
///         stream: Lines Step = "Lines of JSON.",  where the response can be a stream of them
///         errors: [NotFound, Gone = "Deleted."],  besides the usual ones
///         open: true,                             where no key is needed
///         amend: amend_create,                    a function as `Endpoint::amend`
///     }
/// }
/// ```
macro_rules! endpoints {
    (
        tag $tag:literal = $about:literal;
        $(
            $(#[doc = $doc:literal])+
            $name:ident = $method:ident $path:literal as $id:literal {
                $(path: $Path:ty,)?
                $(query: $Query:ty,)?
                $(body: $Body:ty $(= $example:tt)?,)?
                reply: $status:ident $Reply:ty = $said:literal,
                $(stream: $stream:ident $Item:ty = $streamed:literal,)?
                $(errors: [$($error:ident $(= $why:literal)?),+],)?
                $(open: $open:tt,)?
                $(amend: $amend:path,)?
            }
        )+
    ) => {
        $(
            $(#[doc = $doc])+
            pub struct $name;

            impl $crate::endpoint::Endpoint for $name {
                const METHOD: http::Method = http::Method::$method;
                const PATH: &'static str = $path;
                const ID: &'static str = $id;
                const TAG: &'static str = $tag;
                const DOC: &'static str = concat!($($doc, "\n"),+);
                const AUTHENTICATION: $crate::endpoint::Authentication = $crate::endpoint::endpoints!(@auth $($open)?);
                const STATUS: http::StatusCode = http::StatusCode::$status;
                const REPLY_DOC: &'static str = $said;
                const ERRORS: &'static [$crate::endpoint::ErrorResponse] = &[$($($crate::endpoint::ErrorResponse {
                    status: $crate::endpoint::ErrorStatus::$error,
                    description: $crate::endpoint::endpoints!(@option $($why)?),
                }),+)?];
                const STREAM: Option<$crate::endpoint::Stream> =
                    $crate::endpoint::endpoints!(@option $($crate::endpoint::Stream {
                        kind: $crate::endpoint::StreamKind::$stream,
                        description: $streamed,
                    })?);

                type Path = $crate::endpoint::endpoints!(@or (), $($Path)?);
                type Query = $crate::endpoint::endpoints!(@or $crate::parameters::Nothing, $($Query)?);
                type Body = $crate::endpoint::endpoints!(@or $crate::parameters::Nothing, $($Body)?);
                type Reply = $Reply;
                type Item = $crate::endpoint::endpoints!(@or $crate::parameters::Nothing, $($Item)?);

                $($(fn example() -> Option<serde_json::Value> {
                    Some(serde_json::json!($example))
                })?)?

                $(fn amend(operation: &mut serde_json::Value, schemas: &mut $crate::schemas::Schemas) {
                    $amend(operation, schemas);
                })?
            }
        )+

        pub(crate) fn group() -> $crate::endpoint::Group {
            $crate::endpoint::Group {
                tag: $tag,
                description: $about,
                operations: vec![$($crate::endpoint::Operation::of::<$name>()),+],
            }
        }
    };
    (@auth) => { $crate::endpoint::Authentication::Key };
    (@auth true) => { $crate::endpoint::Authentication::Open };
    (@option) => { None };
    (@option $given:expr) => { Some($given) };
    (@or $default:ty $(,)?) => { $default };
    (@or $default:ty, $given:ty) => { $given };
}
pub(crate) use endpoints;
