//! What is sent, and what is returned.

use super::*;

#[tokio::test]
async fn a_request_carries_what_it_was_given_and_the_headers_of_the_gate() {
    let upstream = Upstream::answering("HTTP/1.1 201 Created\r\nX-Id: 7\r\nContent-Length: 2\r\n\r\nok").await;
    let url = upstream.url("/v1/charges/%2e%2E?limit=3&q=a%20b#fragment");
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer key"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br"));
    let request = OutboundRequest { method: Method::POST, headers, body: Bytes::from_static(b"{}"), ..get(&url) };
    let response = local_client().send(request).await.unwrap();
    assert_eq!((response.status, response.body.as_slice(), response.truncated), (201, b"ok".as_slice(), false));
    assert_eq!(response.headers["x-id"], "7");
    let sent = upstream.requests().remove(0);
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /v1/?limit=3&q=a%20b HTTP/1.1");
    lines.sort_unstable();
    let agent = format!("user-agent: toolgate/{}", env!("CARGO_PKG_VERSION"));
    let host = format!("host: 127.0.0.1:{}", upstream.port);
    assert_eq!(lines, ["accept-encoding: identity", "authorization: Bearer key", "content-length: 2", &host, &agent]);
    assert_eq!(body, "{}");
}

#[tokio::test]
async fn an_empty_post_says_that_it_is_empty() {
    let upstream = Upstream::answering(HELLO).await;
    let url = upstream.url("/");
    local_client().send(OutboundRequest { method: Method::POST, ..get(&url) }).await.unwrap();
    assert!(upstream.requests()[0].contains("content-length: 0\r\n"));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let target = Upstream::answering(HELLO).await;
    for (status, location) in [
        (301, target.url("/").to_string()),
        (302, "http://169.254.169.254/latest/meta-data/".to_owned()),
        (303, "file:///etc/passwd".to_owned()),
        (307, "//127.0.0.1/".to_owned()),
        (308, "/again".to_owned()),
    ] {
        let upstream = Upstream::answering(format!(
            "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nRefresh: 0; url={location}\r\nContent-Length: 0\r\n\r\n"
        ))
        .await;
        let response = local_client().send(get(&upstream.url("/"))).await.unwrap();
        assert_eq!(
            (response.status, response.headers[header::LOCATION].to_str().unwrap()),
            (status, location.as_str())
        );
        assert_eq!(upstream.requests().len(), 1);
    }
    assert_eq!(target.connections(), 0);
}

#[tokio::test]
async fn headers_that_frame_or_route_a_message_are_refused() {
    let upstream = Upstream::answering(HELLO).await;
    let url = upstream.url("/");
    for name in OWN_HEADERS {
        let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("1"))]);
        let error = local_client().send(OutboundRequest { headers, ..get(&url) }).await.unwrap_err();
        assert_eq!(error, SendError::ForbiddenHeader { name });
        assert!(!error.reached_service());
    }
    assert_eq!(upstream.connections(), 0);
}

#[test]
fn no_header_can_hold_a_line_break() {
    for text in ["a\r\nHost: evil", "a\nb", "a\rb", "a\0b", "\u{7f}"] {
        assert!(HeaderValue::from_str(text).is_err(), "{text:?}");
    }
}

#[tokio::test]
async fn a_line_break_in_a_url_stays_percent_encoded() {
    let upstream = Upstream::answering(HELLO).await;
    let url = upstream.url("/a%0d%0aX-Evil:%201\r\nX-Evil: 2?b=%0D%0A\r\nX-Evil: 3");
    local_client().send(get(&url)).await.unwrap();
    let sent = upstream.requests().remove(0);
    assert!(
        sent.lines().next().unwrap().starts_with("GET /a%0d%0aX-Evil:%201X-Evil:%202?b=%0D%0AX-Evil:%203 "),
        "{sent}"
    );
    assert!(!sent.lines().any(|line| line.to_ascii_lowercase().starts_with("x-evil")));
}

#[tokio::test]
async fn tunnels_and_echoes_are_refused() {
    let upstream = Upstream::answering(HELLO).await;
    let url = upstream.url("/");
    for method in [Method::CONNECT, Method::TRACE] {
        let sent = local_client().send(OutboundRequest { method, ..get(&url) }).await;
        assert_eq!(sent, Err(SendError::ForbiddenMethod));
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_host_outside_the_allowed_hosts_is_not_even_looked_up() {
    let resolver = Fickle::new(&[&["127.0.0.1"]]);
    let client = GuardedClient::new(policy(&["127.0.0.1/32"]), resolver.clone());
    let hosts = HostSet::parse(["example.com"]).unwrap();
    let url = Url::parse("http://example.org/").unwrap();
    let sent = client.send(OutboundRequest { hosts: &[&hosts], ..get(&url) }).await;
    assert_eq!(sent, Err(SendError::ForbiddenHost { host: "example.org".to_owned() }));
    assert_eq!(resolver.asked(), 0);
}

#[tokio::test]
async fn nobody_listening_is_told_apart_from_an_answer_that_broke() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = Url::parse(&format!("http://127.0.0.1:{port}/?key=hidden")).unwrap();
    let error = local_client().send(get(&url)).await.unwrap_err();
    let refused = io::ErrorKind::ConnectionRefused;
    assert_eq!(error, SendError::ConnectFailed { host: "127.0.0.1".to_owned(), kind: refused });
    assert!(!error.reached_service() && !error.to_string().contains("hidden"));

    let upstream = Upstream::answering_once("").await;
    let error = local_client().send(get(&upstream.url("/"))).await.unwrap_err();
    assert!(matches!(error, SendError::BrokenResponse { .. }) && error.reached_service());
}

#[tokio::test]
async fn a_name_is_tried_on_its_next_address_when_the_first_is_dead() {
    let upstream = Upstream::answering(HELLO).await;
    let resolver = Fickle::new(&[&["127.0.0.9", "127.0.0.1"]]);
    let client = GuardedClient::new(policy(&["127.0.0.0/8"]), resolver);
    let url = Url::parse(&format!("http://api.example.com:{}/", upstream.port)).unwrap();
    assert_eq!(client.send(get(&url)).await.unwrap().body, b"hello");
    assert!(upstream.requests()[0].contains(&format!("host: api.example.com:{}\r\n", upstream.port)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_sends_nothing() {
    let upstream = Upstream::answering(HELLO).await;
    let url = upstream.url("/");
    let request = get(&url);
    tokio::time::advance(Duration::from_secs(60)).await;
    let error = local_client().send(request).await.unwrap_err();
    assert_eq!(error, SendError::TimedOut { stage: Stage::Start });
    assert_eq!(upstream.connections(), 0);
}

/// Runs a test of this program again with proxies in its environment: its service must be reached all the same.
#[tokio::test]
async fn proxies_from_the_environment_are_ignored() {
    let proxy = Upstream::answering("HTTP/1.1 502 Proxied\r\nContent-Length: 0\r\n\r\n").await;
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let mut again = tokio::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "client::tests::exchange::an_empty_post_says_that_it_is_empty"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(name, &address);
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    assert_eq!(proxy.connections(), 0);
}
