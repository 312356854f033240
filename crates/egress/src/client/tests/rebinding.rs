//! Names that change their addresses under the guard's eyes.

use super::*;

fn url(port: u16) -> Url {
    Url::parse(&format!("http://rebind.example.com:{port}/")).unwrap()
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_a_connection_and_the_checked_address_is_used() {
    let upstream = Upstream::answering(HELLO).await;
    // A guard that resolves twice would connect to the second address.
    let resolver = Fickle::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let trap = TcpListener::bind(("127.0.0.2", upstream.port)).await.unwrap();
    let client = GuardedClient::new(policy(&["127.0.0.1/32"]), resolver.clone());
    assert_eq!(client.send(get(&url(upstream.port))).await.unwrap().body, b"hello");
    assert_eq!(resolver.asked(), 1);
    let pending = futures_util::future::poll_immediate(trap.accept()).await;
    assert!(pending.is_none(), "the second answer was connected to");
}

#[tokio::test]
async fn a_name_that_turns_forbidden_is_refused_at_the_next_connection() {
    let upstream = Upstream::answering(HELLO).await;
    let resolver = Fickle::new(&[&["127.0.0.1"], &["127.0.0.2"], &["169.254.169.254"]]);
    let client = GuardedClient::new(policy(&["127.0.0.1/32"]), resolver.clone());
    let url = url(upstream.port);
    client.send(get(&url)).await.unwrap();
    for number in [2, 3] {
        let error = client.send(OutboundRequest { pool: credential(number), ..get(&url) }).await.unwrap_err();
        assert!(matches!(error, SendError::ForbiddenAddress(_)) && !error.reached_service());
    }
    // The checked connection is reused.
    client.send(get(&url)).await.unwrap();
    assert_eq!((resolver.asked(), upstream.connections()), (3, 1));
}

#[tokio::test]
async fn good_and_bad_addresses_together_are_refused_in_any_order() {
    let upstream = Upstream::answering(HELLO).await;
    let mixtures: [&[&str]; 4] =
        [&["127.0.0.1", "10.0.0.1"], &["10.0.0.1", "127.0.0.1"], &["127.0.0.1", "::1"], &["127.0.0.1", "fe80::1"]];
    let client = GuardedClient::new(policy(&["127.0.0.1/32"]), Fickle::new(&mixtures));
    for _ in mixtures {
        let error = client.send(get(&url(upstream.port))).await.unwrap_err();
        assert!(matches!(error, SendError::ForbiddenAddress(_)));
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn an_exempt_loopback_address_makes_localhost_usable_and_nothing_else() {
    let upstream = Upstream::answering(HELLO).await;
    let resolver = Fickle::new(&[&["127.0.0.1"], &["::ffff:127.0.0.1"], &["8.8.8.8"], &["127.0.0.1", "::1"]]);
    let client = GuardedClient::new(policy(&["127.0.0.1/32"]), resolver);
    let urls = ["localhost", "api.localhost.", "metadata.google.internal", "localhost"]
        .map(|host| Url::parse(&format!("http://{host}:{}/", upstream.port)).unwrap());
    let mut outcomes = Vec::new();
    for (number, url) in (10..).zip(&urls) {
        outcomes.push(client.send(OutboundRequest { pool: credential(number), ..get(url) }).await.is_ok());
    }
    assert_eq!(outcomes, [true, true, false, false]);
}

/// Public names that resolve to private addresses: the name looks harmless, the address is not.
#[tokio::test]
async fn harmless_names_with_forbidden_addresses_are_refused() {
    let addresses = ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::1", "::ffff:10.0.0.7", "64:ff9b::a00:7", "0.0.0.0"];
    for name in ["localtest.me", "127.0.0.1.nip.io", "spoofed.burpcollaborator.net", "xn--fsqu00a.example"] {
        let url = Url::parse(&format!("https://{name}/")).unwrap();
        for address in addresses {
            let client = GuardedClient::new(policy(&[]), Fickle::new(&[&[address]]));
            assert!(matches!(client.send(get(&url)).await, Err(SendError::ForbiddenAddress(_))), "{name} {address}");
        }
    }
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_said_to_be_unknown() {
    let client = GuardedClient::new(policy(&[]), Fickle::new(&[]));
    let error = client.send(get(&url(80))).await.unwrap_err();
    assert_eq!(error, SendError::Unresolvable { host: "rebind.example.com".to_owned() });
    assert!(!error.reached_service());
}

/// Never responds.
struct Silent;

#[async_trait]
impl Resolve for Silent {
    async fn resolve(&self, _: &str, _: PoolKey) -> Result<Vec<IpAddr>, LookupError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_while_a_name_is_looked_up() {
    let client = GuardedClient::new(policy(&[]), Arc::new(Silent));
    let error = client.send(get(&url(80))).await.unwrap_err();
    assert_eq!(error, SendError::TimedOut { stage: Stage::Resolve });
    assert!(!error.reached_service());
}
