//! Webhooks, verified by a receiver that knows only the raw request and HMAC as RFC 2104 defines it.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolgate_gate::ports::source::FailureKind;
use toolgate_model::id::InvocationId;
use toolgate_testkit::upstream::{Received, Reply, Upstream};

use super::*;
use crate::adapter::tests::{Fixture, Shelf, local_client, material, now};

const PLAIN: &str = "a signing secret";
const STANDARD_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const STANDARD_KEY: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn receiver() -> Upstream {
    Upstream::start(|_| Reply::json(200, json!({"ok": true})))
}

async fn post(fixture: &Fixture, fields: &[(&str, &str)]) -> (Result<InboundResponse, SourceFailure>, Redactor) {
    let shelf = Shelf::new(material(&[]));
    let material = material(fields);
    let outbound = fixture.outbound(&material, &shelf);
    let mut redactor = Redactor::new(&material);
    let response = Webhook.carry_out(&local_client(), outbound, &mut redactor).await;
    (response, redactor)
}

async fn received_with(secret: (&str, &str)) -> Received {
    let upstream = receiver();
    let fixture = Fixture::new(json!({"base_url": upstream.url()}));
    assert_eq!(post(&fixture, &[secret]).await.0.unwrap().status, 200);
    upstream.received().remove(0)
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > 64 { digest(&SHA256, key).as_ref().to_vec() } else { key.to_vec() };
    block.resize(64, 0);
    let padded = |pad: u8| block.iter().map(move |byte| byte ^ pad);
    let inner: Vec<u8> = padded(0x36).chain(message.iter().copied()).collect();
    let outer: Vec<u8> = padded(0x5c).chain(digest(&SHA256, &inner).as_ref().iter().copied()).collect();
    digest(&SHA256, &outer).as_ref().to_vec()
}

/// As the Standard Webhooks sign.
fn standard_signature(key: &[u8], id: &str, timestamp: &str, body: &[u8]) -> String {
    let content = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    format!("v1,{}", STANDARD.encode(hmac_sha256(key, &content)))
}

fn verify(request: &Received, plain_key: &[u8], standard_key: &[u8]) {
    let hex: String = hmac_sha256(plain_key, &request.body).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(request.header("x-openintent-signature"), Some(format!("sha256={hex}").as_str()));
    let (id, timestamp) = (request.header("webhook-id").unwrap(), request.header("webhook-timestamp").unwrap());
    let signature = standard_signature(standard_key, id, timestamp, &request.body);
    assert_eq!(request.header("webhook-signature"), Some(signature.as_str()));
}

#[test]
fn the_receiver_of_these_tests_agrees_with_the_published_example() {
    let key = STANDARD.decode(STANDARD_KEY).unwrap();
    let body = b"{\"test\": 2432232314}";
    let signature = standard_signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[tokio::test]
async fn a_message_holds_the_call_and_says_when_and_which() {
    let request = received_with(("signing_secret", PLAIN)).await;
    let id = InvocationId::new(now(), [7; 10]).to_string();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let expected = json!({
        "tool_name": "files.list",
        "parameters": {"folder": "années", "limit": 3},
        "timestamp": 1_770_544_800.25,
        "invocation_id": id,
    });
    assert_eq!(request.json(), expected);
    assert_eq!(request.header("webhook-id"), Some(id.as_str()));
    assert_eq!(request.header("webhook-timestamp"), Some("1770544800"));
}

#[tokio::test]
async fn signatures_are_over_the_very_bytes_that_arrive() {
    for name in ["signing_secret", "secret"] {
        verify(&received_with((name, PLAIN)).await, PLAIN.as_bytes(), PLAIN.as_bytes());
    }
    let long = "long ".repeat(40);
    verify(&received_with(("signing_secret", &long)).await, long.as_bytes(), long.as_bytes());
}

#[tokio::test]
async fn a_standard_secret_is_decoded_for_the_standard_signature_only() {
    let key = STANDARD.decode(STANDARD_KEY).unwrap();
    verify(&received_with(("signing_secret", STANDARD_SECRET)).await, STANDARD_SECRET.as_bytes(), &key);
}

#[tokio::test]
async fn the_secret_is_hidden_with_and_without_its_prefix() {
    let upstream = receiver();
    let fixture = Fixture::new(json!({"base_url": upstream.url()}));
    let (_, redactor) = post(&fixture, &[("signing_secret", STANDARD_SECRET)]).await;
    assert!(redactor.hides(STANDARD_SECRET) && redactor.hides(STANDARD_KEY));
    assert!(!upstream.received()[0].text().contains(STANDARD_KEY));
}

#[tokio::test]
async fn a_tool_with_a_path_of_its_own_is_sent_there() {
    let upstream = receiver();
    let base_url = format!("{}/hooks", upstream.url());
    let path_of = async |metadata: Value, rendered: Option<&str>| {
        let mut fixture = Fixture::new(metadata);
        if let Some(path) = rendered {
            fixture.request.url.set_path(path);
        }
        post(&fixture, &[("secret", PLAIN)]).await.0.unwrap();
        upstream.received().pop().unwrap().target
    };
    assert_eq!(path_of(json!({"base_url": base_url}), None).await, "/hooks");
    let endpoints = json!({"files.list": {"path": "/list"}});
    assert_eq!(path_of(json!({"base_url": base_url, "endpoints": endpoints}), None).await, "/hooks/list");
    // The default endpoint, configured explicitly.
    let endpoints = json!({"files.list": {}});
    assert_eq!(path_of(json!({"base_url": base_url, "endpoints": endpoints}), None).await, "/hooks/files.list");
    // A registered tool has its path from its definition.
    assert_eq!(path_of(json!({"base_url": base_url}), Some("/hooks/v2/list")).await, "/hooks/v2/list");
}

#[tokio::test]
async fn headers_of_the_tool_are_sent_too_but_none_where_a_signature_belongs() {
    let upstream = receiver();
    let mut fixture = Fixture::new(json!({"base_url": upstream.url()}));
    fixture.request.headers.push(("X-Team".to_owned(), "payments".to_owned()));
    post(&fixture, &[("secret", PLAIN)]).await.0.unwrap();
    assert_eq!(upstream.received()[0].header("x-team"), Some("payments"));
    for name in ["Webhook-Signature", "webhook_id", "WEBHOOK_TIMESTAMP", "x_openintent-signature"] {
        fixture.request.headers = vec![(name.to_owned(), "forged".to_owned())];
        let failure = post(&fixture, &[("secret", PLAIN)]).await.0.unwrap_err();
        assert_eq!((failure.kind, failure.sent), (FailureKind::NotExecutable, false), "{name}");
    }
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn without_a_usable_secret_nothing_is_sent() {
    let upstream = receiver();
    let fixture = Fixture::new(json!({"base_url": upstream.url()}));
    for fields in [vec![], vec![("secret", "")], vec![("secret", "whsec_")], vec![("secret", "whsec_not base64!")]] {
        let failure = post(&fixture, &fields).await.0.unwrap_err();
        assert_eq!((failure.kind, failure.sent), (FailureKind::NotExecutable, false));
        assert!(failure.reason.contains("rotate it") && !failure.reason.contains("not base64!"));
    }
    assert_eq!(upstream.count(), 0);
}
