//! The limiter in front of a router: what it refuses, and in which format.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolgate_model::rate_limit::RateLimit;
use tower::ServiceExt;

use super::super::UnverifiedKey;
use super::super::tests::StillClock;
use super::*;
use crate::caller::{Peer, presented_key};

/// A burst of two requests per minute, in front of a service that accepts every key that begins with `good`.
fn served() -> (Router, Arc<StillClock>) {
    let clock = Arc::new(StillClock::default());
    let limit = RateLimit::new(1, 60, Some(2)).unwrap();
    let limiter = Arc::new(Limiter::new(limit, clock.clone()));
    (router(Some(limiter)), clock)
}

fn router(limiter: Option<Arc<Limiter>>) -> Router {
    let reached = |mut request: Request| async move {
        let key = presented_key(request.headers()).ok().flatten().map(str::to_owned);
        if let Some(unverified_key) = request.extensions_mut().remove::<UnverifiedKey>()
            && key.is_some_and(|key| key.starts_with("good"))
        {
            unverified_key.accepted();
        }
        "reached"
    };
    let limited = move |request: Request, next: Next| {
        let limiter = limiter.clone();
        async move { limit(limiter.as_ref(), request, next).await }
    };
    Router::new().fallback(reached).layer(from_fn(limited))
}

async fn ask(router: &Router, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(Peer::at("192.0.2.1".parse().unwrap()));
    router.clone().oneshot(request).await.unwrap()
}

async fn statuses(router: &Router, path: &str, headers: &[(&str, &str)], times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(ask(router, path, headers).await.status().as_u16());
    }
    statuses
}

async fn json_of(answer: Response) -> Value {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn the_error_object_says_which_limit_it_was_and_when_to_come_back() {
    let (router, clock) = served();
    let key = [("x-api-key", "good")];
    assert_eq!(statuses(&router, "/api/v1/whoami", &key, 2).await, [200, 200]);
    clock.advance(Duration::from_millis(500));
    let answer = ask(&router, "/api/v1/whoami", &key).await;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "60");
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.extensions().get::<Limited>().unwrap().scope, Scope::Key);
    let message = "too many requests with this key; try again in 60 seconds";
    let expected = json!({
        "status": "denied",
        "message": message,
        "errors": [message],
        "error": {"code": "REQUEST_RATE_LIMITED", "message": message, "scope": "key", "retry_after_seconds": 60},
    });
    assert_eq!(json_of(answer).await, expected);
}

#[tokio::test]
async fn openwop_paths_answer_the_flat_envelope_with_a_scope_of_its_set() {
    let (router, clock) = served();
    let key = [("authorization", "Bearer good")];
    assert_eq!(statuses(&router, "/v1/tools", &key, 2).await, [200, 200]);
    assert_eq!(statuses(&router, "/.well-known/openwop", &[], 2).await, [200, 200]);
    clock.advance(Duration::from_millis(500));
    for (path, headers, scope) in [("/v1/tools", key.as_slice(), "key"), ("/.well-known/openwop", &[], "global")] {
        let answer = ask(&router, path, headers).await;
        assert_eq!(answer.status(), 429);
        assert_eq!(answer.headers()["retry-after"], "60");
        let body = json_of(answer).await;
        assert_eq!(body["error"], "rate_limited");
        let expected = json!({"code": "REQUEST_RATE_LIMITED", "scope": scope, "retryAfterMs": 60_000});
        assert_eq!(body["details"], expected);
        assert_eq!(body.as_object().unwrap().len(), 3, "{body}");
    }
    let answer = ask(&router, "/v10/tools", &[]).await;
    assert_eq!(json_of(answer).await["error"]["scope"], "address");
}

#[tokio::test]
async fn probes_and_metrics_are_never_limited() {
    let (router, _) = served();
    for path in NEVER_LIMITED {
        assert_eq!(statuses(&router, path, &[], 10).await, [200; 10], "{path}");
    }
    assert_eq!(statuses(&router, "/healthz/", &[], 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn headers_without_a_single_key_count_by_address() {
    let (router, _) = served();
    let two = [("authorization", "Bearer good"), ("x-api-key", "good too")];
    assert_eq!(statuses(&router, "/v1/tools", &two, 1).await, [200]);
    assert_eq!(statuses(&router, "/v1/tools", &[("authorization", "Basic Zzz")], 2).await, [200, 429]);
    assert_eq!(statuses(&router, "/v1/tools", &[("x-api-key", "good")], 2).await, [200, 200]);
}

#[tokio::test]
async fn keys_that_nobody_accepts_share_what_their_address_has() {
    let (router, _) = served();
    let mut passed = 0;
    for number in 0..10 {
        let key = format!("invented {number}");
        passed += statuses(&router, "/v1/tools", &[("x-api-key", &key)], 1).await.iter().filter(|s| **s == 200).count();
    }
    assert_eq!(passed, 2);
}

#[tokio::test]
async fn without_a_limit_everything_passes() {
    assert_eq!(statuses(&router(None), "/api/v1/whoami", &[], 50).await, [200; 50]);
}
