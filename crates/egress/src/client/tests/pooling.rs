//! Connections are used again, by their own credential.

use tokio::sync::{Notify, oneshot};

use super::*;

#[tokio::test]
async fn one_connection_serves_many_calls_of_a_credential() {
    let upstream = Upstream::answering(HELLO).await;
    let client = local_client();
    for number in 0..50 {
        let url = upstream.url(&format!("/{number}"));
        assert_eq!(client.send(get(&url)).await.unwrap().body, b"hello");
    }
    assert_eq!((upstream.requests().len(), upstream.connections()), (50, 1));
}

#[tokio::test]
async fn no_connection_is_lent_to_another_credential() {
    let upstream = Upstream::answering(HELLO).await;
    let client = local_client();
    let url = upstream.url("/");
    for round in 0..3 {
        for number in 0..4 {
            client.send(OutboundRequest { pool: credential(number), ..get(&url) }).await.unwrap();
        }
        assert_eq!(upstream.connections(), 4, "round {round}");
    }
}

#[tokio::test]
async fn concurrent_calls_do_not_wait_for_each_other() {
    let together = Arc::new(tokio::sync::Barrier::new(8));
    let upstream = Upstream::serving("127.0.0.1", move |mut stream| {
        let together = Arc::clone(&together);
        async move {
            while read_request(&mut stream).await.is_some() {
                together.wait().await;
                let _ = stream.write_all(HELLO.as_bytes()).await;
            }
        }
    })
    .await;
    let client = local_client();
    let url = upstream.url("/");
    for _ in 0..3 {
        let calls = futures_util::future::join_all((0..8).map(|_| client.send(get(&url)))).await;
        assert!(calls.iter().all(Result::is_ok));
    }
    assert_eq!(upstream.connections(), 8);
}

#[tokio::test]
async fn a_connection_that_the_service_gave_up_is_replaced_without_a_failed_call() {
    let closed = Arc::new(Notify::new());
    let notify = Arc::clone(&closed);
    let upstream = Upstream::serving("127.0.0.1", move |mut stream| {
        let notify = Arc::clone(&notify);
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(HELLO.as_bytes()).await;
            drop(stream);
            notify.notify_one();
        }
    })
    .await;
    let client = local_client();
    for number in 1..20 {
        assert_eq!(client.send(get(&upstream.url("/"))).await.unwrap().body, b"hello");
        closed.notified().await;
        assert_eq!(upstream.connections(), number);
    }
}

#[tokio::test]
async fn a_request_that_was_sent_is_never_sent_again() {
    let upstream = Upstream::serving("127.0.0.1", |mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(HELLO.as_bytes()).await;
        // The second request is read, and then there is no response.
        read_request(&mut stream).await;
    })
    .await;
    let client = local_client();
    client.send(get(&upstream.url("/"))).await.unwrap();
    let error = client.send(get(&upstream.url("/"))).await.unwrap_err();
    assert!(matches!(error, SendError::BrokenResponse { .. }) && error.reached_service());
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_truncated_answer_ends_its_connection() {
    let upstream = Upstream::answering(HELLO).await;
    let client = local_client();
    let url = upstream.url("/");
    for number in 1..4 {
        let response = client.send(OutboundRequest { body_limit: 2, ..get(&url) }).await.unwrap();
        assert_eq!((response.body.as_slice(), response.truncated), (b"he".as_slice(), true));
        assert_eq!(upstream.connections(), number);
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_no_connection_behind() {
    let (arrived, arrival) = oneshot::channel();
    let (hung_up, hang_up) = oneshot::channel();
    let signals = Mutex::new(Some((arrived, hung_up)));
    let upstream = Upstream::serving("127.0.0.1", move |mut stream| {
        let signals = signals.lock().unwrap().take();
        async move {
            let (arrived, hung_up) = signals.unwrap();
            read_request(&mut stream).await;
            arrived.send(()).unwrap();
            let rest = stream.read(&mut [0; 16]).await;
            hung_up.send(rest.unwrap_or(0)).unwrap();
        }
    })
    .await;
    let client = Arc::new(local_client());
    let (caller, url) = (Arc::clone(&client), upstream.url("/"));
    let call = tokio::spawn(async move { caller.send(get(&url)).await });
    arrival.await.unwrap();
    call.abort();
    assert_eq!(hang_up.await.unwrap(), 0);
}
