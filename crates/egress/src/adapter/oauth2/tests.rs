//! OAuth2 against a token endpoint and a resource on loopback.

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolgate_gate::ports::source::FailureKind;
use toolgate_testkit::upstream::{CLIENT_ID, CLIENT_SECRET, Received, Reply, TokenServer, Upstream};

use super::*;
use crate::adapter::tests::{Fixture, Shelf, local_client, material, now};

mod deadline;
mod endpoint;
mod hosts;

/// A call that is over.
struct Outcome {
    response: Result<InboundResponse, SourceFailure>,
    redactor: Redactor,
}

impl Outcome {
    fn status(&self) -> u16 {
        self.response.as_ref().unwrap().status
    }

    fn failure(&self) -> &SourceFailure {
        self.response.as_ref().unwrap_err()
    }
}

/// Makes a call with the material of the shelf.
async fn call(fixture: &Fixture, shelf: &Shelf) -> Outcome {
    call_by(&local_client(), fixture, shelf).await
}

/// The same with an existing client: creating one takes time.
async fn call_by(client: &GuardedClient, fixture: &Fixture, shelf: &Shelf) -> Outcome {
    let material = shelf.current().await;
    let outbound = fixture.outbound(&material, shelf);
    let mut redactor = Redactor::new(&material);
    let response = OAuth2.carry_out(client, outbound, &mut redactor).await;
    Outcome { response, redactor }
}

fn fixture_of(server: &TokenServer) -> Fixture {
    Fixture::new(json!({"base_url": server.upstream().url(), "token_url": server.token_url()}))
}

/// A service whose token endpoint is at `/oauth/token` and responds like this; everything else is refused.
fn refusing_service(endpoint: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |request| match request.path() {
        "/oauth/token" => endpoint(request),
        _ => Reply::json(401, json!({"error": "invalid_token"})),
    })
}

fn fixture_at(upstream: &Upstream, further: &[(&str, &str)]) -> Fixture {
    let token_url = format!("{}/oauth/token", upstream.url());
    let mut metadata = json!({"base_url": upstream.url(), "token_url": token_url});
    for (name, value) in further {
        metadata[*name] = Value::from(*value);
    }
    Fixture::new(metadata)
}

fn paths(upstream: &Upstream) -> Vec<String> {
    upstream.received().iter().map(|request| request.path().to_owned()).collect()
}

/// The material of a credential after a person has authorised it.
fn authorised(server: &TokenServer) -> Shelf {
    Shelf::new(material(&[("access_token", &server.access_token()), ("refresh_token", &server.refresh_token())]))
}

fn in_seconds(seconds: u64) -> String {
    now().plus(Duration::from_secs(seconds)).to_string()
}

#[tokio::test]
async fn a_good_token_is_sent_and_nothing_is_renewed() {
    let server = TokenServer::start();
    let shelf = authorised(&server);
    assert_eq!(call(&fixture_of(&server), &shelf).await.status(), 200);
    assert_eq!((paths(server.upstream()), shelf.exchanges()), (vec!["/files.list".to_owned()], 0));
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_the_call_sent_once_more() {
    let server = TokenServer::start();
    let (fixture, shelf) = (fixture_of(&server), authorised(&server));
    let old = (server.access_token(), server.refresh_token());
    server.expire_access_token();
    let outcome = call(&fixture, &shelf).await;
    assert_eq!(outcome.status(), 200);
    assert_eq!(paths(server.upstream()), ["/files.list", "/oauth/token", "/files.list"]);
    let new = (server.access_token(), server.refresh_token());
    assert_eq!(shelf.kept("access_token").await, Some(new.0.clone()));
    assert_eq!(shelf.kept("refresh_token").await, Some(new.1.clone()));
    assert_eq!(shelf.kept(EXPIRY_FIELD).await, Some(in_seconds(3600)));
    for token in [old.0, old.1, new.0, new.1] {
        assert!(outcome.redactor.hides(&token), "{token}");
    }
}

#[tokio::test]
async fn the_next_call_uses_what_was_renewed() {
    let server = TokenServer::start();
    let (fixture, shelf) = (fixture_of(&server), authorised(&server));
    for round in 1..=3 {
        server.expire_access_token();
        assert_eq!(call(&fixture, &shelf).await.status(), 200);
        assert_eq!(call(&fixture, &shelf).await.status(), 200);
        // Each time with the refresh token that the last renewal brought: an old one is good for nothing.
        assert_eq!(server.exchanges(), round);
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    for (seconds, exchanges) in [(0, 1), (29, 1), (30, 1), (31, 0), (3600, 0)] {
        let server = TokenServer::start();
        let fields = [
            ("access_token", server.access_token()),
            ("refresh_token", server.refresh_token()),
            (EXPIRY_FIELD, in_seconds(seconds)),
        ];
        let shelf = Shelf::new(material(&fields.each_ref().map(|(name, value)| (*name, value.as_str()))));
        let outcome = call(&fixture_of(&server), &shelf).await;
        assert_eq!((outcome.status(), server.exchanges()), (200, exchanges), "{seconds} seconds");
        assert_eq!(server.upstream().count(), exchanges + 1, "the old token was not even tried");
    }
}

#[tokio::test]
async fn an_expiry_that_cannot_be_read_says_nothing() {
    let server = TokenServer::start();
    let fields = [
        ("access_token", server.access_token()),
        ("refresh_token", server.refresh_token()),
        (EXPIRY_FIELD, "soon".to_owned()),
    ];
    let shelf = Shelf::new(material(&fields.each_ref().map(|(name, value)| (*name, value.as_str()))));
    assert_eq!(call(&fixture_of(&server), &shelf).await.status(), 200);
    assert_eq!(server.exchanges(), 0);
}

#[tokio::test]
async fn many_calls_at_once_make_one_exchange() {
    let server = TokenServer::start();
    let (fixture, shelf) = (fixture_of(&server), authorised(&server));
    server.expire_access_token();
    let stale = shelf.current().await;
    let client = local_client();
    let calls = (0..64).map(|_| async {
        let outbound = fixture.outbound(&stale, &shelf);
        let mut redactor = Redactor::new(&stale);
        let response = OAuth2.carry_out(&client, outbound, &mut redactor).await;
        (response.unwrap().status, redactor.hides(&server.access_token()))
    });
    assert!(join_all(calls).await.iter().all(|outcome| *outcome == (200, true)));
    assert_eq!((server.exchanges(), shelf.exchanges()), (1, 1));
}

#[tokio::test]
async fn a_client_needs_no_access_token_to_begin_with() {
    let server = TokenServer::start();
    server.announce_lifetime(60);
    let shelf = Shelf::new(material(&[("client_id", CLIENT_ID), ("client_secret", CLIENT_SECRET)]));
    let fixture = fixture_of(&server);
    assert_eq!(call(&fixture, &shelf).await.status(), 200);
    assert_eq!(call(&fixture, &shelf).await.status(), 200);
    assert_eq!(paths(server.upstream()), ["/oauth/token", "/files.list", "/files.list"]);
    let kept = shelf.current().await;
    assert_eq!(kept.names().collect::<Vec<_>>(), ["access_token", EXPIRY_FIELD, "client_id", "client_secret"]);
    assert_eq!(shelf.kept(EXPIRY_FIELD).await, Some(in_seconds(60)));
}

#[tokio::test]
async fn a_second_refusal_is_the_answer() {
    let upstream = refusing_service(|_| Reply::json(200, json!({"access_token": "fresh-token"})));
    let fixture = fixture_at(&upstream, &[]);
    for expiry in [3600, 0] {
        let expiry = in_seconds(expiry);
        let tokens = [("access_token", "stale-token"), ("refresh_token", "refresh-token"), (EXPIRY_FIELD, &expiry)];
        let shelf = Shelf::new(material(&tokens));
        assert_eq!(call(&fixture, &shelf).await.status(), 401);
        assert_eq!(shelf.exchanges(), 1);
    }
    let resource = ["/files.list", "/oauth/token", "/files.list", "/oauth/token", "/files.list"];
    assert_eq!(paths(&upstream), resource);
}

#[tokio::test]
async fn without_anything_to_exchange_a_refusal_is_the_answer() {
    let upstream = refusing_service(|_| Reply::json(200, json!({"access_token": "fresh-token"})));
    let token = ("access_token", "stale-token");
    for (further, fields) in [
        (vec![], vec![token]),
        (vec![], vec![token, ("client_id", "c"), ("refresh_token", "")]),
        (vec![("token_grant_type", "refresh_token")], vec![token, ("client_id", "c"), ("client_secret", "s")]),
        (vec![("token_grant_type", "client_credentials")], vec![token, ("refresh_token", "r"), ("client_id", "c")]),
    ] {
        let shelf = Shelf::new(material(&fields));
        assert_eq!(call(&fixture_at(&upstream, &further), &shelf).await.status(), 401);
    }
    let shelf = Shelf::new(material(&[token, ("refresh_token", "refresh-token")]));
    assert_eq!(call(&Fixture::new(json!({"base_url": upstream.url()})), &shelf).await.status(), 401);
    assert_eq!(paths(&upstream), ["/files.list"; 5]);
}

#[tokio::test]
async fn without_a_token_or_a_way_to_one_the_call_is_not_executable() {
    let server = TokenServer::start();
    for fields in [vec![], vec![("client_id", CLIENT_ID)], vec![("access_token", ""), ("refresh_token", "")]] {
        let outcome = call(&fixture_of(&server), &Shelf::new(material(&fields))).await;
        let failure = outcome.failure();
        assert_eq!((failure.kind, failure.sent), (FailureKind::NotExecutable, false));
        assert!(failure.reason.contains("`access_token`") && failure.reason.contains("`refresh_token`"));
    }
    assert_eq!(server.upstream().count(), 0);
}

#[tokio::test]
async fn a_token_under_its_other_name_is_renewed_under_that_name() {
    let server = TokenServer::start();
    let fields = [("token", server.access_token()), ("refresh_token", server.refresh_token())];
    let shelf = Shelf::new(material(&fields.each_ref().map(|(name, value)| (*name, value.as_str()))));
    server.expire_access_token();
    assert_eq!(call(&fixture_of(&server), &shelf).await.status(), 200);
    assert_eq!(shelf.kept("token").await, Some(server.access_token()));
    assert_eq!(shelf.kept("access_token").await, None);
}
