//! Connects handlers with the endpoints that `toolgate-api` declares: method, path, parameters, body and reply are
//! those of the declaration, so a handler that differs from the document does not compile.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use http::{HeaderMap, Method, StatusCode};
use toolgate_api::{Endpoint, RequestBody};
use toolgate_gate::Caller;
use toolgate_gate::refusal::Refusal;

use crate::router::{App, Route};
use crate::{body, caller, parameters};

/// A request to an endpoint that needs a key. Its caller has been identified before anything else was read.
pub struct TypedRequest<E: Endpoint> {
    pub app: Arc<App>,
    pub caller: Caller,
    pub path: E::Path,
    pub query: E::Query,
    pub body: E::Body,
    pub headers: HeaderMap,
}

/// The route of an endpoint whose every success has the reply and the status of its declaration. The handler determines
/// the format of refusals.
pub fn endpoint<E, H, F, R>(handler: H) -> Route
where
    E: Endpoint<Path: parameters::FromPath + Send, Query: Send, Reply: Send>,
    H: Fn(TypedRequest<E>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<E::Reply, R>> + Send + 'static,
    R: From<Refusal> + IntoResponse + Send + 'static,
{
    responding::<E, _, _, _>(move |request: TypedRequest<E>| {
        let reply = handler(request);
        async move {
            reply.await.map(|reply| match E::STATUS {
                StatusCode::NO_CONTENT => StatusCode::NO_CONTENT.into_response(),
                status => (status, Json(reply)).into_response(),
            })
        }
    })
}

/// The route of an endpoint with more kinds of responses than its declaration.
pub fn responding<E, H, F, R>(handler: H) -> Route
where
    E: Endpoint<Path: parameters::FromPath + Send, Query: Send>,
    H: Fn(TypedRequest<E>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, R>> + Send + 'static,
    R: From<Refusal> + IntoResponse + Send + 'static,
{
    special::<E, _, _>(move |State(app): State<Arc<App>>, request: Request| async move {
        let request = TypedRequest::read(&app, request).await?;
        handler(request).await
    })
}

/// The route of an endpoint whose handler reads the request itself.
pub fn special<E: Endpoint, H: Handler<T, Arc<App>>, T: 'static>(handler: H) -> Route {
    // INVARIANT: axum knows all methods of the endpoints.
    let filter = MethodFilter::try_from(E::METHOD).unwrap_or(MethodFilter::GET);
    Route { method: E::METHOD, path: E::PATH, handler: on(filter, handler) }
}

impl<E: Endpoint<Path: parameters::FromPath>> TypedRequest<E> {
    async fn read(app: &Arc<App>, request: Request) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let caller = caller::identify_acting(&mut parts, app).await?;
        let query = parameters::query(&parts.uri)?;
        // A path that is not UTF-8 is not an id.
        let values = Path::<Vec<(String, String)>>::from_request_parts(&mut parts, app).await;
        let values =
            values.map_or_else(|_| vec![String::new()], |Path(all)| all.into_iter().map(|(_, value)| value).collect());
        let path = parameters::ids(&values)?;
        let headers = parts.headers.clone();
        let request = Request::from_parts(parts, body);
        // The body of a GET is not read.
        let absent = E::Body::absent().filter(|_| E::METHOD == Method::GET);
        let body = match absent {
            Some(absent) => absent,
            None => body::json_or(request, app.max_body, E::Body::absent).await?,
        };
        Ok(Self { app: Arc::clone(app), caller, path, query, body, headers })
    }
}
