//! What stands in the URL: ids in the path, filters and paging in the query.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use http::Uri;
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolgate_gate::ports::ledger::PageRequest;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::text::check_identifier;

use crate::body::misfit;
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
            Err(misfit(place, message))
        }
    }
}

/// An id in the path, read by its own rules. What is no id cannot name anything: it is not found.
pub struct Id<T>(pub T);

/// What can be read from a path.
pub trait FromPath: Sized {
    /// What is said where the text is no id.
    const MISSING: Code;

    /// Reads it.
    fn from_path(text: &str) -> Option<Self>;
}

impl<T: FromPath> FromRequestParts<Arc<App>> for Id<T> {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Denied> {
        let missing = || Refusal::new(T::MISSING, "there is no such thing");
        let Path(text) = Path::<String>::from_request_parts(parts, app).await.map_err(|_| missing())?;
        T::from_path(&text).map(Self).ok_or_else(|| missing().into())
    }
}

macro_rules! path_ids {
    ($($kind:ty => $code:ident,)+) => {$(
        impl FromPath for $kind {
            const MISSING: Code = Code::$code;

            fn from_path(text: &str) -> Option<Self> {
                <$kind>::parse(text).ok()
            }
        }
    )+};
}

path_ids! {
    toolgate_model::id::CredentialId => CredentialNotFound,
    toolgate_model::id::GrantId => GrantNotFound,
    toolgate_model::id::KeyId => KeyNotFound,
    toolgate_model::id::VaultId => VaultNotFound,
    toolgate_model::principal::PrincipalId => AgentNotFound,
    toolgate_model::principal::TenantId => TenantNotFound,
}

/// Paging, the same for every list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// How many at most.
    pub limit: Option<u32>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

impl Paging {
    /// How many a page has when nobody says.
    const USUAL: u32 = 100;

    /// As the ledger takes it.
    pub fn request(self) -> Result<PageRequest, Refusal> {
        page(self.limit, self.cursor)
    }
}

/// Checks paging that stands among other parameters.
pub fn page(limit: Option<u32>, cursor: Option<String>) -> Result<PageRequest, Refusal> {
    let limit = limit.unwrap_or(Paging::USUAL);
    if !(1..=PageRequest::LIMIT).contains(&limit) {
        let reason = format!("`limit` must be from 1 to {}", PageRequest::LIMIT);
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "limit"));
    }
    if cursor.as_deref().is_some_and(|cursor| check_identifier(cursor).is_err()) {
        let reason = "`cursor` must be the `next_cursor` of an earlier answer";
        return Err(Refusal::new(Code::InvalidCursor, reason).with("path", "cursor"));
    }
    Ok(PageRequest { after: cursor, limit })
}
