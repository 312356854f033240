//! Notices, received by a verifying endpoint.

use serde_json::json;
use toolgate_model::secret::Secret;
use toolgate_testkit::upstream::{Reply, Upstream};

use super::*;
use crate::address::AddressPolicy;
use crate::resolver::SystemResolver;

/// The example that the Standard Webhooks publish.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn client(allowed: &[&str]) -> GuardedClient {
    let allowed = allowed.iter().map(|network| network.parse().unwrap()).collect();
    GuardedClient::new(AddressPolicy::new(allowed), Arc::new(SystemResolver::default()))
}

fn local_client() -> GuardedClient {
    client(&["127.0.0.1/32"])
}

fn notice(id: &str) -> Notice<'_> {
    Notice { id, now: Timestamp::EPOCH, body: "{}" }
}

fn notifier(client: GuardedClient, upstream: &Upstream) -> Notifier {
    let key = SignatureKey::of(&Secret::new(SECRET.to_owned())).ok().unwrap();
    Notifier::new(client, Url::parse(&format!("{}/hook?key=1", upstream.url())).unwrap(), Arc::new(key))
}

#[tokio::test]
async fn a_notice_arrives_signed_as_the_standard_says() {
    let upstream = Upstream::start(|_| Reply::json(202, json!({})));
    let published = Timestamp::from_millis(1_614_265_330_000).unwrap();
    let notice = Notice { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", now: published, body: "{\"test\": 2432232314}" };
    assert_eq!(notifier(local_client(), &upstream).send(notice).await, Ok(()));
    let received = upstream.received().remove(0);
    assert_eq!((received.method.as_str(), received.target.as_str()), ("POST", "/hook?key=1"));
    assert_eq!(received.header("webhook-id"), Some("msg_p5jXN8AQM9LWM0D4loKWxJek"));
    assert_eq!(received.header("webhook-timestamp"), Some("1614265330"));
    assert_eq!(received.header("webhook-signature"), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    assert_eq!(received.text(), notice.body);
}

#[tokio::test]
async fn only_a_status_of_success_means_that_it_arrived_and_no_redirect_is_followed() {
    let elsewhere = Upstream::start(|_| Reply::json(200, json!({})));
    let place = elsewhere.url();
    let upstream = Upstream::start(move |request| {
        let status = request.header("webhook-id").unwrap().parse().unwrap();
        Reply::json(status, json!({})).header("location", &place)
    });
    let notifier = notifier(local_client(), &upstream);
    for status in [301_u16, 302, 307, 308, 400, 404, 410, 429, 500, 503] {
        assert_eq!(notifier.send(notice(&status.to_string())).await, Err(NoticeError::Status(status)));
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn an_answer_may_be_as_long_as_it_likes() {
    let upstream = Upstream::start(|_| Reply::text(200, &"x".repeat(10 * BODY_LIMIT)));
    assert_eq!(notifier(local_client(), &upstream).send(notice("1")).await, Ok(()));
}

#[tokio::test]
async fn a_private_address_is_not_reached_unless_the_operator_allows_it() {
    let upstream = Upstream::start(|_| Reply::json(200, json!({})));
    let sent = notifier(client(&[]), &upstream).send(notice("1")).await;
    assert!(matches!(sent, Err(NoticeError::Unanswered(SendError::ForbiddenAddress(_)))), "{sent:?}");
    assert_eq!(upstream.connections(), 0);
}
