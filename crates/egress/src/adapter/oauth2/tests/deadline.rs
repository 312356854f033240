//! One deadline for everything that a call does. These tests pause the clock when the call has reached the point in
//! question, and then advance it.

use std::sync::Arc;

use super::*;

const LONG: Duration = Duration::from_secs(61);

/// Waits for so many requests without keeping the runtime from its work.
async fn arrived(upstream: &Arc<Upstream>, count: usize) {
    let upstream = Arc::clone(upstream);
    tokio::task::spawn_blocking(move || upstream.wait_for(count)).await.unwrap();
}

async fn put_clock_forward() {
    tokio::time::pause();
    tokio::time::advance(LONG).await;
}

#[tokio::test]
async fn the_deadline_is_over_all_exchanges_together() {
    let upstream = Arc::new(refusing_service(|_| Reply::silence()));
    let fixture = fixture_at(&upstream, &[]);
    let shelf = Shelf::new(material(&[("access_token", "stale-token"), ("refresh_token", "refresh-token")]));
    let (outcome, ()) = tokio::join!(call(&fixture, &shelf), async {
        arrived(&upstream, 2).await;
        put_clock_forward().await;
    });
    let failure = outcome.failure();
    assert_eq!((failure.kind, failure.timed_out, failure.sent), (FailureKind::Proxy, true, true));
    assert!(
        failure.reason.starts_with("the token endpoint returned no access token: the call timed out"),
        "{}",
        failure.reason
    );
    assert_eq!(paths(&upstream), ["/files.list", "/oauth/token"]);
}

#[tokio::test]
async fn a_call_does_not_wait_for_the_renewal_of_another_beyond_its_own_time() {
    let upstream = Arc::new(refusing_service(|_| Reply::silence()));
    let mut patient = fixture_at(&upstream, &[]);
    patient.timeout = LONG * 2;
    let fixture = fixture_at(&upstream, &[]);
    let shelf = Shelf::new(material(&[("refresh_token", "refresh-token")]));
    let outbound = fixture.outbound(shelf.current().await, &shelf);
    let mut redactor = Redactor::new(&outbound.material);
    let client = local_client();
    let short = async {
        arrived(&upstream, 1).await;
        let (response, ()) = tokio::join!(OAuth2.carry_out(&client, outbound, &mut redactor), put_clock_forward());
        response.unwrap_err()
    };
    let long = call(&patient, &shelf);
    let failure = tokio::select! {
        failure = short => failure,
        _ = long => panic!("the longer call ended first"),
    };
    assert_eq!((failure.kind, failure.timed_out, failure.sent), (FailureKind::Proxy, true, false));
    assert!(failure.reason.contains("while another call renewed"), "{}", failure.reason);
    assert_eq!(upstream.count(), 1);
}

#[tokio::test]
async fn a_renewal_that_has_begun_is_kept_though_the_time_is_over() {
    let server = TokenServer::start();
    let fixture = fixture_of(&server);
    let mut shelf = Shelf::new(material(&[("refresh_token", &server.refresh_token())]));
    shelf.keeping = tokio::sync::Semaphore::new(0);
    let (outcome, ()) = tokio::join!(call(&fixture, &shelf), async {
        shelf.exchanged.notified().await;
        put_clock_forward().await;
        shelf.keeping.add_permits(1);
    });
    let failure = outcome.failure();
    assert_eq!((failure.timed_out, failure.sent), (true, false));
    assert_eq!(shelf.kept("access_token").await, Some(server.access_token()));
    assert_eq!(shelf.kept("refresh_token").await, Some(server.refresh_token()));
}
