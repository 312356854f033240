//! URL parameters: ids in the path, filters and paging in the query.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use http::Uri;
use http::request::Parts;
use serde::de::DeserializeOwned;
use toolgate_api::parameters::{Limit, PathText};
use toolgate_gate::ports::ledger::PageRequest;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::text::check_identifier;

use crate::body::invalid_member;
use crate::openintent::error::Denied;
use crate::router::App;

/// Reads the query, strictly.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    match Query::<T>::try_from_uri(uri) {
        Ok(Query(query)) => Ok(query),
        Err(rejection) => {
            let text = rejection.body_text();
            let message = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            let (path, message) =
                message.split_once(": ").filter(|(path, _)| !path.contains(' ')).unwrap_or(("", message));
            let place = if path.is_empty() { "the query" } else { path };
            Err(invalid_member(place, message))
        }
    }
}

/// An id in the path, parsed by its own rules. Text that is not an id is not found.
pub struct Id<T>(pub T);

/// A type that can be parsed from a path, or from a field that names something.
pub trait FromPath: Sized {
    /// The code for text that is not an id.
    const MISSING: Code;
    /// The form of such an id.
    const SHAPE: &'static str;

    fn from_path(text: &str) -> Option<Self>;

    /// From the values of all placeholders, which are one for most types.
    fn from_values(values: &[String]) -> Result<Self, Refusal> {
        id(values.first().map(String::as_str).unwrap_or_default())
    }
}

/// Parses an id. Text of the wrong form names nothing, and the refusal describes the form.
pub fn id<T: FromPath>(text: &str) -> Result<T, Refusal> {
    T::from_path(text).ok_or_else(|| Refusal::new(T::MISSING, format!("not found: {}", T::SHAPE)))
}

/// Parses the values of all placeholders of a path.
pub fn ids<T: FromPath>(values: &[String]) -> Result<T, Refusal> {
    T::from_values(values)
}

impl<T: FromPath> FromRequestParts<Arc<App>> for Id<T> {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Denied> {
        // A path that is not UTF-8 is not an id either.
        let text = Path::<String>::from_request_parts(parts, app).await.map(|Path(text)| text).unwrap_or_default();
        Ok(Self(id(&text)?))
    }
}

impl FromPath for () {
    const MISSING: Code = Code::RouteNotFound;
    const SHAPE: &'static str = "there is no id in this path";

    fn from_path(_: &str) -> Option<Self> {
        Some(())
    }
}

/// Two ids in one path: if both are wrong, the first one is refused.
impl<A: FromPath, B: FromPath> FromPath for (A, B) {
    const MISSING: Code = B::MISSING;
    const SHAPE: &'static str = B::SHAPE;

    fn from_path(_: &str) -> Option<Self> {
        None
    }

    fn from_values(values: &[String]) -> Result<Self, Refusal> {
        let value = |index: usize| values.get(index).map(String::as_str).unwrap_or_default();
        Ok((id(value(0))?, id(value(1))?))
    }
}

impl<T> FromPath for PathText<T> {
    const MISSING: Code = Code::RouteNotFound;
    const SHAPE: &'static str = "any text is accepted";

    fn from_path(text: &str) -> Option<Self> {
        Some(Self::new(text))
    }
}

macro_rules! path_ids {
    ($($kind:ty => $code:ident, $shape:literal;)+) => {$(
        impl FromPath for $kind {
            const MISSING: Code = Code::$code;
            const SHAPE: &'static str = $shape;

            fn from_path(text: &str) -> Option<Self> {
                <$kind>::parse(text).ok()
            }
        }
    )+};
}

path_ids! {
    toolgate_model::approval::LinkToken => ApprovalNotFound, "a link ends with 64 lower-case hexadecimal digits";
    toolgate_model::approval::SessionName => SessionNotFound, "the name of a session has letters, digits and . _ : @ -";
    toolgate_model::id::ApprovalId => ApprovalNotFound, "the id of an approval is appr_ followed by 26 letters and \
        digits";
    toolgate_model::id::StandingApprovalId => StandingApprovalNotFound, "the id of a standing approval is standing_ \
        followed by 26 letters and digits";
    toolgate_model::id::CredentialId => CredentialNotFound, "the id of a credential is cred_ followed by 26 letters \
        and digits";
    toolgate_model::id::GrantId => GrantNotFound, "the id of a grant is grant_ followed by 26 letters and digits";
    toolgate_model::id::InvocationId => InvocationNotFound, "the id of an invocation is inv_ followed by 26 letters \
        and digits";
    toolgate_model::id::KeyId => KeyNotFound, "the id of a key is key_ followed by 26 letters and digits";
    toolgate_model::hook::RunId => RunNotFound, "the id of an execution has letters, digits and . _ : @ -";
    toolgate_model::id::SessionId => SessionNotFound, "the id of a session is session_ followed by 26 letters and \
        digits";
    toolgate_model::context::ContextId => RouteNotFound, "an intent's or task's id has letters, digits and . _ : @ -";
    toolgate_model::document::DocumentId => DocumentNotFound, "the id of a document has letters, digits and . _ : @ -";
    toolgate_model::credential::ServiceName => ServiceNotFound, "the name of a service has letters, digits and . _ : @ -";
    toolgate_model::id::CoordinatorId => CoordinatorNotFound, "the id of a coordinator is coord_ followed by 26 letters \
        and digits";
    toolgate_model::id::IntentId => IntentNotFound, "the id of an intent is intent_ followed by 26 letters and digits";
    toolgate_model::id::LeaseId => LeaseNotFound, "the id of a lease is lease_ followed by 26 letters and digits";
    toolgate_model::id::PlanId => PlanNotFound, "the id of a plan is plan_ followed by 26 letters and digits";
    toolgate_model::id::TaskId => TaskNotFound, "the id of a task is task_ followed by 26 letters and digits";
    toolgate_model::id::VaultId => VaultNotFound, "the id of a vault is vault_ followed by 26 letters and digits";
    toolgate_model::principal::PrincipalId => AgentNotFound, "the id of an agent has letters, digits and . _ : @ -";
    toolgate_model::principal::TenantId => TenantNotFound, "the id of a tenant has letters, digits and . _ : @ -";
}

/// Whether a text may be a cursor: an id, or the name of one of several lists that follow each other, with an id in it.
fn is_cursor(text: &str) -> bool {
    let is_identifier = |text: &str| check_identifier(text).is_ok();
    match text.split_once('/') {
        None => is_identifier(text),
        Some((list, id)) => {
            let is_name = !list.is_empty() && list.bytes().all(|letter| letter.is_ascii_lowercase());
            is_name && (id.is_empty() || is_identifier(id))
        }
    }
}

/// The requested page.
pub fn page(limit: Option<impl Into<u32>>, cursor: Option<impl Into<String>>) -> Result<PageRequest, Refusal> {
    let limit = limit.map_or(Limit::DEFAULT, Into::into);
    let cursor: Option<String> = cursor.map(Into::into);
    if !(1..=PageRequest::LIMIT).contains(&limit) {
        let reason = format!("`limit` must be from 1 to {}", PageRequest::LIMIT);
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "limit"));
    }
    if cursor.as_deref().is_some_and(|cursor| !is_cursor(cursor)) {
        let reason = "`cursor` must be the `next_cursor` of an earlier response";
        return Err(Refusal::new(Code::InvalidCursor, reason).with("path", "cursor"));
    }
    Ok(PageRequest { after: cursor, limit })
}
