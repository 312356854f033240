//! Links to guardians that respond, and to some that must not be trusted.

use std::sync::Arc;

use serde_json::json;
use toolgate_testkit::upstream::{Reply, Upstream};

use super::*;
use crate::address::AddressPolicy;
use crate::resolver::SystemResolver;

const TIMEOUT: Duration = Duration::from_secs(30);
const LIMIT: usize = 1024;

fn client(allowed: &[&str]) -> GuardedClient {
    let allowed = allowed.iter().map(|network| network.parse().unwrap()).collect();
    GuardedClient::new(AddressPolicy::new(allowed), Arc::new(SystemResolver::default()))
}

fn link(upstream: &Upstream, authentication: LinkAuthentication) -> GuardianLink {
    let url = Url::parse(&format!("{}/hooks?of=1", upstream.url())).unwrap();
    GuardianLink::new(client(&["127.0.0.1/32"]), url, authentication, LIMIT, None).unwrap()
}

fn header(name: &'static str, value: &str) -> LinkAuthentication {
    LinkAuthentication::Header { name: HeaderName::from_static(name), value: Secret::new(value.to_owned()) }
}

#[tokio::test]
async fn a_question_arrives_as_it_is_and_the_answer_comes_back() {
    let upstream = Upstream::start(|_| Reply::json_text(200, "{\"decision\": 1}"));
    let link = link(&upstream, LinkAuthentication::Bearer(Secret::new("token of the link".to_owned())));
    let response = link.post(b"{\"hook\":1}".to_vec(), TIMEOUT).await.unwrap();
    assert_eq!((response.status, response.content_type.as_deref()), (200, Some("application/json")));
    assert_eq!(response.body, b"{\"decision\": 1}");
    let received = upstream.received().remove(0);
    assert_eq!((received.method.as_str(), received.target.as_str()), ("POST", "/hooks?of=1"));
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("authorization"), Some("Bearer token of the link"));
    assert_eq!(received.text(), "{\"hook\":1}");
}

#[tokio::test]
async fn a_header_of_the_guardians_own_is_sent_and_no_other_authentication() {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    link(&upstream, header("x-guardian-key", "one")).post(Vec::new(), TIMEOUT).await.unwrap();
    link(&upstream, LinkAuthentication::None).post(Vec::new(), TIMEOUT).await.unwrap();
    let received = upstream.received();
    assert_eq!(received[0].header("x-guardian-key"), Some("one"));
    assert!(received.iter().all(|request| request.header("authorization").is_none()));
    assert_eq!(received[1].header("x-guardian-key"), None);
}

#[test]
fn a_secret_that_no_header_holds_and_a_header_of_the_message_are_refused_when_the_link_is_made() {
    let new = |authentication| {
        let url = Url::parse("https://guardian.example").unwrap();
        GuardianLink::new(client(&[]), url, authentication, LIMIT, None).err()
    };
    assert_eq!(new(header("x-key", "a\r\nb")), Some(LinkError::UnwritableSecret));
    assert_eq!(new(LinkAuthentication::Bearer(Secret::new("a\nb".to_owned()))), Some(LinkError::UnwritableSecret));
    for name in ["host", "content-type", "content-length"] {
        assert_eq!(new(header(name, "x")), Some(LinkError::OwnHeader));
    }
    assert_eq!(new(header("x-key", "a")), None);
}

#[tokio::test]
async fn questions_one_after_the_other_use_one_connection() {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let link = link(&upstream, LinkAuthentication::None);
    for _ in 0..5 {
        link.post(b"{}".to_vec(), TIMEOUT).await.unwrap();
    }
    assert_eq!((upstream.count(), upstream.connections()), (5, 1));
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere = Upstream::start(|_| Reply::json(200, json!({})));
    let place = elsewhere.url();
    let upstream = Upstream::start(move |_| Reply::redirect(&place));
    let response = link(&upstream, LinkAuthentication::None).post(b"{}".to_vec(), TIMEOUT).await.unwrap();
    assert_eq!((response.status, elsewhere.count()), (302, 0));
}

#[tokio::test]
async fn each_way_to_fail_has_its_name() {
    let table: [(Reply, LinkFailure); 5] = [
        (Reply::bytes(200, vec![b'x'; LIMIT + 1]), LinkFailure::Oversize),
        (Reply::endless(), LinkFailure::Oversize),
        (Reply::Close, LinkFailure::Broken),
        (Reply::raw("garbage\r\n\r\n"), LinkFailure::Broken),
        (Reply::bytes(200, "x").header("Content-Encoding", "br"), LinkFailure::Broken),
    ];
    for (reply, expected) in table {
        let shown = format!("{reply:?}");
        let upstream = Upstream::start(move |_| reply.clone());
        let failure = link(&upstream, LinkAuthentication::None).post(b"{}".to_vec(), TIMEOUT).await;
        assert_eq!(failure, Err(expected), "{shown}");
    }
    let silent = Upstream::start(|_| Reply::silence());
    let timeout = Duration::from_millis(20);
    let failure = link(&silent, LinkAuthentication::None).post(b"{}".to_vec(), timeout).await;
    assert_eq!(failure, Err(LinkFailure::Timeout));
}

#[tokio::test]
async fn nobody_there_a_private_address_and_no_tls_are_told_apart_from_an_answer() {
    let gone = {
        let upstream = Upstream::start(|_| Reply::Close);
        link(&upstream, LinkAuthentication::None)
    };
    assert_eq!(gone.post(Vec::new(), TIMEOUT).await, Err(LinkFailure::Connect));

    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let url = Url::parse(&upstream.url()).unwrap();
    let blocked = GuardianLink::new(client(&[]), url, LinkAuthentication::None, LIMIT, None).unwrap();
    assert_eq!(blocked.post(Vec::new(), TIMEOUT).await, Err(LinkFailure::Connect));

    let url = Url::parse(&upstream.url().replace("http:", "https:")).unwrap();
    let ca_certificate = Some("no certificate".to_owned());
    let allowed = client(&["127.0.0.1/32"]);
    let untrusted = GuardianLink::new(allowed, url, LinkAuthentication::None, LIMIT, ca_certificate).unwrap();
    assert_eq!(untrusted.post(Vec::new(), TIMEOUT).await, Err(LinkFailure::Tls));
    assert_eq!(upstream.count(), 0);
}
