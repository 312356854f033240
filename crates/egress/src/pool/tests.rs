//! Which requests may use an idle connection, and for how long.

use toolgate_model::time::Timestamp;
use url::Url;

use super::*;
use crate::address::AddressPolicy;

fn key(number: u8) -> PoolKey {
    CredentialId::new(Timestamp::from_millis(1).unwrap(), [number; 10]).into()
}

/// A connection whose other end the test holds.
async fn connection(key: PoolKey, url: &str, ca: Option<&str>) -> (Connection, tokio::io::DuplexStream) {
    let (near, far) = tokio::io::duplex(1024);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);
    sender.ready().await.unwrap();
    let url = Url::parse(url).unwrap();
    let destination = Destination::check(&url, &AddressPolicy::default(), &[]).unwrap();
    (Connection::new(sender, key, &destination, ca), far)
}

fn take(pool: &Pool, key: PoolKey, url: &str, ca: Option<&str>) -> Option<Connection> {
    let url = Url::parse(url).unwrap();
    pool.take(key, &Destination::check(&url, &AddressPolicy::default(), &[]).unwrap(), ca, now())
}

const URL: &str = "http://api.example.com/";

#[tokio::test]
async fn a_connection_serves_only_its_credential_its_service_and_its_trust() {
    let pool = Arc::new(Pool::default());
    let (held, _far) = connection(key(1), URL, Some("CA")).await;
    pool.put(held);
    let others = [
        (key(2), URL, Some("CA")),
        (key(1), "https://api.example.com/", Some("CA")),
        (key(1), "http://api.example.com:8080/", Some("CA")),
        (key(1), "http://www.example.com/", Some("CA")),
        (key(1), URL, Some("other CA")),
        (key(1), URL, None),
    ];
    for (key, url, ca) in others {
        assert!(take(&pool, key, url, ca).is_none(), "{url} {ca:?}");
    }
    assert!(take(&pool, key(1), "http://API.example.com:80/other?path", Some("CA")).is_some());
    assert!(take(&pool, key(1), URL, Some("CA")).is_none());
    assert_eq!(pool.idle_connections().count, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_waits_only_so_long_and_lives_only_so_long() {
    let pool = Arc::new(Pool::default());
    let (mut held, _far) = connection(key(1), URL, None).await;
    for _ in 0..AGE_LIMIT.as_secs() / 29 {
        pool.put(held);
        tokio::time::advance(Duration::from_secs(29)).await;
        held = take(&pool, key(1), URL, None).unwrap();
    }
    tokio::time::advance(Duration::from_secs(29)).await;
    pool.put(held);
    assert_eq!(pool.idle_connections().count, 0);

    let (held, _far) = connection(key(1), URL, None).await;
    pool.put(held);
    tokio::time::advance(IDLE_LIMIT).await;
    assert!(take(&pool, key(1), URL, None).is_none());
}

#[tokio::test(start_paused = true)]
async fn connections_that_nobody_asks_for_are_closed() {
    let pool = Arc::new(Pool::default());
    let (held, mut far) = connection(key(1), URL, None).await;
    pool.put(held);
    // Ends when the other side is closed, which only the sweeper can do here.
    let read = tokio::io::AsyncReadExt::read(&mut far, &mut [0; 1]).await.unwrap();
    let idle_connections = pool.idle_connections();
    assert_eq!((read, idle_connections.by_key.len(), idle_connections.swept), (0, 0, false));
}

#[tokio::test]
async fn a_connection_that_the_service_closed_is_not_lent() {
    let pool = Arc::new(Pool::default());
    let (held, far) = connection(key(1), URL, None).await;
    pool.put(held);
    drop(far);
    while !pool.idle_connections().by_key[&(key(1), here())][0].sender.is_closed() {
        tokio::task::yield_now().await;
    }
    assert!(take(&pool, key(1), URL, None).is_none());
    assert_eq!(pool.idle_connections().count, 0);
}

#[tokio::test]
async fn the_number_of_waiting_connections_is_bounded() {
    let pool = Arc::new(Pool::default());
    let mut far_ends = Vec::new();
    for number in 0..=u8::MAX {
        for _ in 0..3 {
            let (held, far) = connection(key(number), URL, None).await;
            pool.put(held);
            far_ends.push(far);
        }
    }
    assert_eq!(pool.idle_connections().count, TOTAL_LIMIT);
    assert!(take(&pool, key(0), URL, None).is_none(), "the longest waiting went first");
    assert!(take(&pool, key(255), URL, None).is_some());

    for _ in 0..CREDENTIAL_LIMIT + 5 {
        let (held, far) = connection(key(7), URL, None).await;
        pool.put(held);
        far_ends.push(far);
    }
    let idle_connections = pool.idle_connections();
    assert_eq!(idle_connections.by_key[&(key(7), here())].len(), CREDENTIAL_LIMIT);
    assert_eq!(idle_connections.count, idle_connections.by_key.values().map(Vec::len).sum::<usize>());
}

#[test]
fn a_connection_is_lent_only_in_the_runtime_that_it_lives_in() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (own, other) = (runtime(), runtime());
    let pool = Arc::new(Pool::default());
    let (held, _far) = own.block_on(connection(key(1), URL, None));
    own.block_on(async { pool.put(held) });

    assert!(other.block_on(async { take(&pool, key(1), URL, None) }).is_none());
    assert!(own.block_on(async { take(&pool, key(1), URL, None) }).is_some());
}
