//! The caller of a request of this protocol: identified as everywhere, refused in the flat envelope.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;
use toolgate_gate::Caller;

use super::error::Flat;
use crate::caller::identify_acting;
use crate::parameters;
use crate::router::App;

/// A request with parameters in its query, parsed strictly after the caller was identified. A handler that takes this
/// cannot be reached without a key.
pub(super) struct Asked<T>(pub Caller, pub T);

/// The placeholder of the path, percent-decoded. Text that is not UTF-8 is empty.
pub(super) struct PathName(pub String);

impl<T: DeserializeOwned> FromRequestParts<Arc<App>> for Asked<T> {
    type Rejection = Flat;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Flat> {
        let caller = identify_acting(parts, app).await?;
        Ok(Self(caller, parameters::query(&parts.uri)?))
    }
}

impl FromRequestParts<Arc<App>> for PathName {
    type Rejection = Flat;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Flat> {
        let name = Path::<String>::from_request_parts(parts, app).await.map(|Path(name)| name);
        Ok(Self(name.unwrap_or_default()))
    }
}
