//! Handlers behind the endpoints that `toolgate-api` declares: method, path, parameters, body and reply are those of the
//! declaration, so a handler that differs from the document does not compile.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use http::Method;
use toolgate_api::{Endpoint, RequestBody};
use toolgate_gate::Caller;

use crate::body;
use crate::caller::Asked;
use crate::openintent::error::Denied;
use crate::parameters::{FromPath, Id};
use crate::router::{App, Route};

/// A request to an endpoint that needs a key. Its caller has been identified before anything else was read.
pub struct TypedRequest<E: Endpoint> {
    pub app: Arc<App>,
    pub caller: Caller,
    pub path: E::Path,
    pub query: E::Query,
    pub body: E::Body,
}

/// The route of an endpoint whose every success has the reply and the status of its declaration.
pub fn endpoint<E, H, F>(handler: H) -> Route
where
    E: Endpoint<Path: FromPath + Send, Query: Send, Reply: Send>,
    H: Fn(TypedRequest<E>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<E::Reply, Denied>> + Send + 'static,
{
    special::<E, _, _>(move |request: TypedRequest<E>| {
        let reply = handler(request);
        async move { reply.await.map(|reply| (E::STATUS, Json(reply))) }
    })
}

/// The route of an endpoint that needs more of the request, or has more kinds of responses, than the types of its
/// declaration say.
pub fn special<E: Endpoint, H: Handler<T, Arc<App>>, T: 'static>(handler: H) -> Route {
    // INVARIANT: all methods that endpoints have are among those that axum knows.
    let filter = MethodFilter::try_from(E::METHOD).unwrap_or(MethodFilter::GET);
    Route { method: E::METHOD, path: E::PATH, handler: on(filter, handler) }
}

impl<E> FromRequest<Arc<App>> for TypedRequest<E>
where
    E: Endpoint<Path: FromPath + Send, Query: Send>,
{
    type Rejection = Denied;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Denied> {
        let (mut parts, body) = request.into_parts();
        let Asked(caller, query) = Asked::<E::Query>::from_request_parts(&mut parts, app).await?;
        let Id(path) = Id::<E::Path>::from_request_parts(&mut parts, app).await?;
        let request = Request::from_parts(parts, body);
        // The body of a GET is not read.
        let absent = E::Body::absent().filter(|_| E::METHOD == Method::GET);
        let body = match absent {
            Some(absent) => absent,
            None => body::json_or(request, app.max_body, E::Body::absent).await?,
        };
        Ok(Self { app: Arc::clone(app), caller, path, query, body })
    }
}
