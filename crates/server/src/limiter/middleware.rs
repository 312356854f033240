//! The limiter in front of the routes, and the form of its refusals in each protocol.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::key::KeyDigest;

use super::{Limited, Limiter, Scope};
use crate::caller::{Credential, Peer, peer};
use crate::openintent::error::Denied;
use crate::openwop::error::{Flat, speaks_for};
use crate::router::App;

#[cfg(test)]
mod tests;

/// Never limited: an orchestrator that is refused would stop the gate.
const NEVER_LIMITED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses a request whose key has too many in flight. Then the rate limit is checked.
pub async fn bound(app: &App, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if NEVER_LIMITED.contains(&path) {
        return next.run(request).await;
    }
    let peer = match peer(request.extensions()) {
        Ok(peer) => peer,
        Err(refusal) => return Denied::from(refusal).into_response(),
    };
    let subject = verified_subject(app, &request, peer);
    let holder = match subject {
        Some(VerifiedSubject(subject)) => subject.map(Credential::Subject),
        None => Credential::of(request.headers(), peer),
    };
    let Some(taken) = app.in_flight.take(holder, peer.address) else {
        let most = app.in_flight.most();
        let reason = format!(
            "{most} requests with this key are in flight, the maximum; wait for some of them to \
            finish"
        );
        let refusal = Refusal::new(Code::TooManyInFlight, reason).with("limit", most);
        return match speaks_for(path) {
            true => Flat::from(refusal).into_response(),
            false => Denied::from(refusal).into_response(),
        };
    };
    // The parsed body lives until its request has ended, and sometimes longer: then the call holds it too.
    let body = Arc::new(app.body_memory.share(taken.holder()));
    request.extensions_mut().insert(Arc::clone(&body));
    if let Some(subject) = subject {
        request.extensions_mut().insert(subject);
    }
    taken.with(body).until_written(limit(app.limiter.as_ref(), request, next).await)
}

/// A request with an access token: its subject, if the token was verified before. Anybody can write tokens, and their
/// issuer as many as it likes, so that an unverified one holds what its address may hold.
#[derive(Debug, Clone, Copy)]
struct VerifiedSubject(Option<KeyDigest>);

fn verified_subject(app: &App, request: &Request, peer: &Peer) -> Option<VerifiedSubject> {
    let Some(Credential::Key(key)) = Credential::of(request.headers(), peer) else { return None };
    let authenticator = &app.gate.authenticator;
    authenticator.is_token(key).then(|| VerifiedSubject(authenticator.subject_of(key)))
}

/// Refuses a request whose key or address has sent too many. The response has its [`Limited`] attached.
pub async fn limit(limiter: Option<&Arc<Limiter>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let Some(limiter) = limiter.filter(|_| !NEVER_LIMITED.contains(&path)) else {
        return next.run(request).await;
    };
    let peer = match peer(request.extensions()) {
        Ok(peer) => peer,
        Err(refusal) => return Denied::from(refusal).into_response(),
    };
    let credential = match request.extensions().get::<VerifiedSubject>() {
        Some(VerifiedSubject(Some(subject))) => Some(Credential::Subject(*subject)),
        _ => Credential::of(request.headers(), peer),
    };
    match limiter.count(credential, peer.address) {
        Ok(unverified_key) => {
            if let Some(unverified_key) = unverified_key {
                request.extensions_mut().insert(unverified_key);
            }
            next.run(request).await
        }
        Err(limited) => {
            let mut response = refused(limited, path);
            response.extensions_mut().insert(limited);
            response
        }
    }
}

/// The refusal in the format of the path's protocol. OpenWOP's scopes are a closed set without addresses.
fn refused(limited: Limited, path: &str) -> Response {
    let refusal = |scope: &str| {
        Refusal::new(Code::RequestRateLimited, reason(limited))
            .with("scope", scope)
            .with("retry_after_seconds", limited.wait.seconds())
    };
    match limited.scope {
        scope if !speaks_for(path) => Denied::from(refusal(scope.as_str())).into_response(),
        Scope::Key => Flat::from(refusal("key")).into_response(),
        Scope::Address => Flat::from(refusal("global")).into_response(),
    }
}

fn reason(Limited { scope, wait }: Limited) -> String {
    let seconds = wait.seconds();
    match scope {
        Scope::Key => format!("too many requests with this key; try again in {seconds} seconds"),
        Scope::Address => format!(
            "too many requests from this address without a key, or with unverified keys; try again in {seconds} seconds"
        ),
    }
}
