//! Services that try to hold, flood, confuse or poison the gate.

use std::io::Read;

use flate2::Compression;
use flate2::read::GzEncoder;
use tokio::sync::oneshot;

use super::*;

/// Runs this once with the first connection, after its request was read.
async fn upstream_once<F, Fut>(serve: F) -> Upstream
where
    F: FnOnce(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let serve = Mutex::new(Some(serve));
    Upstream::serving("127.0.0.1", move |mut stream| {
        let serve = serve.lock().unwrap().take();
        async move {
            read_request(&mut stream).await;
            if let Some(serve) = serve {
                serve(stream).await;
            }
        }
    })
    .await
}

/// Lets the deadline pass as soon as the service signals it.
async fn outlasting(upstream: &Upstream, ready: oneshot::Receiver<()>) -> SendError {
    let url = upstream.url("/");
    let call = tokio::spawn(async move { local_client().send(get(&url)).await });
    ready.await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    call.await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_service_that_never_answers_is_cut_off_by_the_deadline() {
    let (ready, waiting) = oneshot::channel();
    let upstream = upstream_once(|stream| async move {
        ready.send(()).unwrap();
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let error = outlasting(&upstream, waiting).await;
    assert_eq!(error, SendError::TimedOut { stage: Stage::Response });
    assert!(error.reached_service());
}

/// One byte of something endless every half second, which would satisfy a limit on the time between two bytes.
async fn drip(beginning: &'static str, piece: &'static str) -> SendError {
    let (ready, waiting) = oneshot::channel();
    let (hung_up, hang_up) = oneshot::channel();
    let upstream = upstream_once(move |mut stream| async move {
        stream.write_all(beginning.as_bytes()).await.unwrap();
        ready.send(()).unwrap();
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        while stream.write_all(piece.as_bytes()).await.is_ok() {
            ticks.tick().await;
        }
        hung_up.send(()).unwrap();
    })
    .await;
    let url = upstream.url("/");
    let call = tokio::spawn(async move { local_client().send(get(&url)).await });
    waiting.await.unwrap();
    // From here on time passes whenever all tasks wait.
    tokio::time::pause();
    let error = call.await.unwrap().unwrap_err();
    hang_up.await.unwrap();
    error
}

#[tokio::test]
async fn a_dripping_body_is_cut_off_by_the_deadline() {
    for head in ["HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
        let error = drip(head, "x").await;
        assert!(matches!(error, SendError::TimedOut { stage: Stage::Body }) && error.reached_service(), "{error}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn dripping_chunks_headers_and_interim_answers_are_cut_off_by_the_deadline() {
    let drips = [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        ("HTTP/1.1 200 OK\r\nX-Slow: ", "x"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    ];
    for (beginning, piece) in drips {
        let error = drip(beginning, piece).await;
        assert!(matches!(error, SendError::TimedOut { .. }) && error.reached_service(), "{piece}: {error}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit_and_its_connection_dropped() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551000\r\n\r\n"] {
        let (hung_up, hang_up) = oneshot::channel();
        let upstream = upstream_once(move |mut stream| async move {
            stream.write_all(head.as_bytes()).await.unwrap();
            while stream.write_all(&[b'x'; 64 * 1024]).await.is_ok() {}
            hung_up.send(()).unwrap();
        })
        .await;
        let response = local_client().send(get(&upstream.url("/"))).await.unwrap();
        assert!(response.truncated && response.body.len() == DEFAULT_BODY_LIMIT);
        hang_up.await.unwrap();
    }
}

#[tokio::test]
async fn a_compressed_bomb_is_cut_at_the_limit() {
    let mut bomb = Vec::new();
    GzEncoder::new(std::io::repeat(b'0').take(32 * 1024 * 1024), Compression::best()).read_to_end(&mut bomb).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let upstream = Upstream::answering([head.as_bytes(), &bomb].concat()).await;
    let response = local_client().send(get(&upstream.url("/"))).await.unwrap();
    assert!(response.truncated && response.body.len() == DEFAULT_BODY_LIMIT && bomb.len() < DEFAULT_BODY_LIMIT);
    assert!(response.body.capacity() <= 2 * DEFAULT_BODY_LIMIT);
}

#[tokio::test]
async fn encodings_that_cannot_be_counted_are_refused_and_empty_answers_are_not() {
    for coding in ["br", "zstd", "gzip, br"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n");
        let upstream = Upstream::answering(format!("{head}Content-Length: 4\r\n\r\nbody")).await;
        let error = local_client().send(get(&upstream.url("/"))).await.unwrap_err();
        assert!(error == SendError::UnsupportedEncoding && error.reached_service());
        let upstream = Upstream::answering(format!("{head}Content-Length: 0\r\n\r\n")).await;
        assert_eq!(local_client().send(get(&upstream.url("/"))).await.unwrap().body, b"");
    }
}

/// Responses that are ambiguous or invalid.
#[tokio::test]
async fn smuggled_garbled_and_cut_answers_are_broken_answers() {
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Many: 1\r\n".repeat(1000));
    let long_header = format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n", "x".repeat(1024 * 1024));
    let broken: [&[u8]; 38] = [
        // Two lengths.
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        // Transfer encodings that hide something.
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nabc",
        // Lengths that are no numbers.
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3abc\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nabc",
        // Wrong lengths.
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n",
        // Headers that some readers see and others do not.
        b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\n Content-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX-Return: a\rb\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 3\r\n\r\nabc",
        many_headers.as_bytes(),
        long_header.as_bytes(),
        // First lines that are none.
        b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"220 mail.example.com ESMTP ready\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n\0\0\x01",
        b"\x15\x03\x03\x00\x02\x02\x28",
    ];
    for response in broken {
        let upstream = Upstream::answering_once(response).await;
        let outcome = local_client().send(get(&upstream.url("/"))).await;
        let shown = String::from_utf8_lossy(&response[..response.len().min(120)]);
        let error = outcome.expect_err(&shown);
        assert!(matches!(error, SendError::BrokenResponse { .. }) && error.reached_service(), "{error}: {shown}");
    }
}

#[tokio::test]
async fn a_switch_of_protocols_that_nobody_asked_for_is_a_broken_answer() {
    let response = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let upstream = Upstream::answering(response).await;
    let outcome = local_client().send(get(&upstream.url("/"))).await;
    assert!(matches!(outcome, Err(SendError::BrokenResponse { .. })));
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_not_given_to_the_next_call() {
    let smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled";
    let upstream = Upstream::answering(format!("{HELLO}{smuggled}")).await;
    let client = local_client();
    for number in 1..10 {
        assert_eq!(client.send(get(&upstream.url("/"))).await.unwrap().body, b"hello");
        assert_eq!(upstream.connections(), number);
    }
}

#[tokio::test]
async fn an_error_repeats_nothing_that_the_service_or_the_caller_said() {
    let upstream = Upstream::answering_once("HTTP/1.1 SECRETSTATUS\r\nX-SECRET: SECRETVALUE\r\n\r\nSECRETBODY").await;
    let url = upstream.url("/SECRETPATH?key=SECRETQUERY");
    let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("SECRETKEY"))]);
    let error = local_client().send(OutboundRequest { headers, ..get(&url) }).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
}
