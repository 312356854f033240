//! Issuers that respond, and documents that must not be fetched or believed.

use std::sync::Arc;

use serde_json::json;
use toolgate_testkit::upstream::{Reply, Upstream};

use super::*;

const TIMEOUT: Duration = Duration::from_secs(30);

fn link(private_hosts: &[&str]) -> IssuerHttpLink {
    let client = GuardedClient::new(AddressPolicy::default(), Arc::new(SystemResolver::default()));
    IssuerHttpLink::new(client, private_hosts.iter().map(|&host| host.to_owned()).collect(), None)
}

async fn failure(link: &IssuerHttpLink, url: &str, timeout: Duration) -> String {
    link.get(url, timeout).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_private_host_is_reached_only_where_the_operator_names_it() {
    let upstream = Upstream::start(|_| Reply::json(200, json!({"keys": []})));
    let url = format!("{}/keys", upstream.url());
    let document = link(&["127.0.0.1"]).get(&url, TIMEOUT).await.unwrap();
    assert_eq!((document.status, document.body.as_slice()), (200, b"{\"keys\":[]}".as_slice()));
    let received = upstream.received().remove(0);
    assert_eq!((received.method.as_str(), received.header("authorization")), ("GET", None));

    assert!(failure(&link(&[]), &url, TIMEOUT).await.contains("https"));
    let secure = url.replace("http:", "https:");
    assert!(failure(&link(&["other"]), &secure, TIMEOUT).await.contains("loopback address"));
    assert!(failure(&link(&[]), "https://kubernetes.default.svc/keys", TIMEOUT).await.contains("private host name"));
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let private = Upstream::start(|_| Reply::json(200, json!({"keys": []})));
    let target = private.url();
    let issuer = Upstream::start(move |_| Reply::redirect(&target));
    let document = link(&["127.0.0.1"]).get(&issuer.url(), TIMEOUT).await.unwrap();
    assert!((300..400).contains(&document.status), "{}", document.status);
    assert_eq!(private.count(), 0);
}

#[tokio::test]
async fn giant_and_endless_documents_are_cut_off() {
    let giant = Upstream::start(|_| Reply::bytes(200, vec![b' '; BODY_LIMIT + 1]));
    assert!(failure(&link(&["127.0.0.1"]), &giant.url(), TIMEOUT).await.contains("exceeds"));
    let endless = Upstream::start(|_| Reply::endless());
    assert!(failure(&link(&["127.0.0.1"]), &endless.url(), TIMEOUT).await.contains("exceeds"));
}

#[tokio::test]
async fn a_slow_issuer_ends_with_the_timeout() {
    let silent = Upstream::start(|_| Reply::silence());
    assert!(failure(&link(&["127.0.0.1"]), &silent.url(), Duration::from_millis(100)).await.contains("timed out"));
    let slow = Upstream::start(|_| Reply::drip(Duration::from_millis(20)));
    assert!(failure(&link(&["127.0.0.1"]), &slow.url(), Duration::from_millis(100)).await.contains("timed out"));
}
