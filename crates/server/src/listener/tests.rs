//! Connections of clients: large, silent, slow, too many, over TLS and through proxies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::sync::mpsc;

use axum::Extension;
use axum::routing::{get, post};

use super::*;

mod client_certificates;

/// A listener that serves while it is tried.
#[derive(Default)]
struct Tried {
    limits: Limits,
    proxies: TrustedProxies,
    tls: Option<Arc<Tls>>,
    proxy_protocol: bool,
}

impl Tried {
    fn with(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Serves this on one worker while `client` runs, which is given the address and the way to the shutdown.
    fn serve(self, router: Router, client: impl FnOnce(SocketAddr, Arc<Shutdown>) + Send + 'static) {
        let workers = WorkerRuntimes::start_many(1, Duration::from_secs(1)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let shutdown = Arc::new(Shutdown::default());
            let client = tokio::task::spawn_blocking({
                let shutdown = Arc::clone(&shutdown);
                move || client(address, shutdown)
            });
            let Self { limits, proxies, tls, proxy_protocol } = self;
            let endpoints = vec![Endpoint::Tcp { listener, tls, proxy_protocol }];
            let serving = Serving {
                router,
                limits,
                proxies,
                shutdown: Arc::clone(&shutdown),
                connections: OpenConnections::default(),
            };
            let ((), ended) = tokio::join!(serve(endpoints, serving, &workers), async {
                let ended = client.await;
                shutdown.enter(Phase::Draining);
                ended
            });
            ended.unwrap();
        });
        workers.end();
    }
}

/// Responds with the address of the client.
fn addresses() -> Router {
    Router::new().fallback(|Extension(peer): Extension<Peer>| async move { peer.address.to_string() })
}

fn send(address: SocketAddr, headers: &str, body: &[u8]) -> Client {
    let mut stream = Client::connect(address).unwrap();
    write!(stream, "POST / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n{headers}\r\n\r\n").unwrap();
    stream.write_all(body).unwrap();
    stream
}

/// Everything that arrives until the gate closes the connection.
fn rest(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has ended too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn response(address: SocketAddr, request: &str) -> String {
    let mut stream = Client::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    rest(stream)
}

/// Reads one response without a body, or with one of which nothing matters.
fn head(stream: &mut Client) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(600);

#[test]
fn large_requests_are_offloaded_and_those_that_turn_out_small_are_not() {
    let thread = post(|body: String| async move {
        let thread = std::thread::current();
        format!("{} bytes on {}", body.len(), thread.name().unwrap_or_default())
    });
    Tried::default().serve(Router::new().route("/", thread), |address, _| {
        let answer = |headers: &str, body: &[u8]| rest(send(address, headers, body));
        let of_size = |size: usize| answer(&format!("Content-Length: {size}"), &vec![b'x'; size]);

        assert!(of_size(0).ends_with("0 bytes on worker-0"));
        assert!(of_size(8191).ends_with("8191 bytes on worker-0"));
        assert!(of_size(8192).ends_with("8192 bytes on offload"));
        let chunked = answer("Transfer-Encoding: chunked", b"1\r\nx\r\n0\r\n\r\n");
        assert!(chunked.contains("1 bytes on worker-0"), "{chunked}");
        let large = [b"2000\r\n".as_slice(), &[b'x'; 8192], b"\r\n1\r\nx\r\n0\r\n\r\n"].concat();
        let chunked = answer("Transfer-Encoding: chunked", &large);
        assert!(chunked.contains("8193 bytes on offload"), "{chunked}");
    });
}

#[test]
fn what_is_offloaded_is_given_up_when_the_client_is_gone() {
    struct Tells(mpsc::Sender<()>);
    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (tell, told) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let waits = post(move |_: String| async move {
        let _tells = Tells(tell);
        begin.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    Tried::default().serve(Router::new().route("/", waits), move |address, _| {
        let stream = send(address, "Content-Length: 10000", &[b'x'; 10000]);
        begun.recv().unwrap();
        assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty), "it waits");

        drop(stream);

        assert_eq!(told.recv(), Ok(()));
    });
}

#[test]
fn a_request_is_begun_although_its_client_is_gone_at_once() {
    let (begin, begun) = mpsc::channel();
    let handler = post(move || async move { begin.send(()).unwrap() });
    Tried::default().serve(Router::new().route("/", handler), move |address, _| {
        for size in [10, 10_000] {
            for _ in 0..10 {
                drop(send(address, &format!("Content-Length: {size}"), &vec![b'x'; size]));
                assert_eq!(begun.recv(), Ok(()));
            }
        }
    });
}

/// Each returns only because the gate closes the connection.
#[test]
fn a_connection_without_a_complete_request_is_closed_in_every_protocol() {
    let limits = Limits { head_timeout: SHORT, idle_timeout: LONG, ..Limits::default() };
    Tried::with(limits).serve(addresses(), |address, _| {
        let settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        for sent in ["", "P", "GET / HTTP/1.1\r\nHost: ga", "PRI * HTTP/2.0\r\n\r\nSM", settings] {
            let answer = response(address, sent);
            assert!(!answer.contains("HTTP/1.1 200"), "{sent:?} was answered with {answer:?}");
        }
    });
}

#[test]
fn a_later_request_must_be_complete_in_time_too() {
    let limits = Limits { head_timeout: SHORT, idle_timeout: LONG, ..Limits::default() };
    Tried::with(limits).serve(Router::new().fallback(async || ()), |address, _| {
        let mut stream = Client::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: gate\r\n\r\n").unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
        stream.write_all(b"GET / HT").unwrap();
        assert_eq!(rest(stream), "");
    });
}

#[test]
fn an_idle_connection_is_closed_after_its_own_time() {
    let limits = Limits { head_timeout: LONG, idle_timeout: SHORT, ..Limits::default() };
    Tried::with(limits).serve(Router::new().fallback(async || ()), |address, _| {
        let mut stream = Client::connect(address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: gate\r\n\r\n").unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
        assert_eq!(rest(stream), "");
    });
}

#[test]
fn a_response_that_takes_long_is_not_idle() {
    let limits = Limits { head_timeout: SHORT, idle_timeout: SHORT, ..Limits::default() };
    let slow = get(async || {
        let chunks = futures_util::stream::unfold(0, |count| async move {
            toolgate_gate::ports::clock::pause(SHORT).await;
            (count < 4).then(|| (Ok::<_, std::io::Error>(format!("chunk {count} ")), count + 1))
        });
        axum::body::Body::from_stream(chunks)
    });
    Tried::with(limits).serve(Router::new().route("/", slow), |address, _| {
        let answer = response(address, "GET / HTTP/1.1\r\nHost: gate\r\n\r\n");
        assert!(answer.contains("chunk 3"), "{answer}");
    });
}

/// Starts requests whose responses never end, and returns once all of them are in flight.
fn in_flight(address: SocketAddr, count: usize) -> Vec<Client> {
    let begin = |_| {
        let mut stream = Client::connect(address).unwrap();
        stream.write_all(b"GET /endless HTTP/1.1\r\nHost: gate\r\n\r\n").unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
        stream
    };
    (0..count).map(begin).collect()
}

fn endless() -> axum::routing::MethodRouter {
    get(async || axum::body::Body::from_stream(futures_util::stream::pending::<Result<String, std::io::Error>>()))
}

#[test]
fn one_address_cannot_take_all_connections() {
    let limits = Limits { connections_of_address: 3, ..Limits::default() };
    Tried::with(limits).serve(addresses().route("/endless", endless()), |address, _| {
        let held = in_flight(address, 3);
        let request = "GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n";
        assert_eq!(response(address, request), "", "it is closed");
        drop(held);
        while !response(address, request).ends_with("127.0.0.1") {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_silent_connection_gives_its_place_to_one_that_asks_for_something() {
    let limits = Limits { connections: 4, connections_of_address: 3, head_timeout: LONG, ..Limits::default() };
    Tried::with(limits).serve(addresses(), |address, _| {
        let silent: Vec<Client> = (0..20).map(|_| Client::connect(address).unwrap()).collect();
        let last = "GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n";
        assert!(response(address, last).ends_with("127.0.0.1"));
        drop(silent);
    });
}

#[test]
fn a_full_gate_still_answers_probes() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let router = Router::new().route("/healthz", get(async || "alive")).route("/endless", endless());
    Tried::with(limits).serve(router.fallback(async || "served"), |address, _| {
        let _held = in_flight(address, 2);
        let health = response(address, "GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n");
        assert!(health.starts_with("HTTP/1.1 200") && health.ends_with("alive"), "{health}");
        let other = response(address, "GET / HTTP/1.1\r\nHost: gate\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 503") && other.contains("\"OVERLOADED\""), "{other}");
    });
}

#[test]
fn idle_connections_give_their_places_up_too() {
    let limits = Limits { connections: 2, idle_timeout: LONG, ..Limits::default() };
    Tried::with(limits).serve(addresses(), |address, _| {
        let mut idle: Vec<Client> = (0..2).map(|_| Client::connect(address).unwrap()).collect();
        for stream in &mut idle {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: gate\r\n\r\n").unwrap();
            head(stream);
        }
        let request = "GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n";
        assert!(response(address, request).ends_with("127.0.0.1"));
    });
}

#[test]
fn in_the_lame_duck_phase_everything_is_served_and_connections_are_given_up_after_it() {
    Tried::default().serve(Router::new().fallback(async || ()), |address, shutdown| {
        let request = b"GET / HTTP/1.1\r\nHost: gate\r\n\r\n";
        let mut kept = Client::connect(address).unwrap();
        kept.write_all(request).unwrap();
        assert!(!head(&mut kept).contains("connection: close"));
        shutdown.enter(Phase::LameDuck);
        // The request that its client was about to send is served, and is the last one.
        kept.write_all(request).unwrap();
        let last = head(&mut kept);
        assert!(last.starts_with("HTTP/1.1 200") && last.contains("connection: close"), "{last}");
        assert_eq!(rest(kept), "");
        let new = response(address, "GET / HTTP/1.1\r\nHost: gate\r\n\r\n");
        assert!(new.starts_with("HTTP/1.1 200") && new.contains("connection: close"), "{new}");
    });
}

#[test]
fn a_request_that_was_on_its_way_when_the_gate_drains_is_served() {
    Tried::default().serve(addresses(), |address, shutdown| {
        let request = "GET / HTTP/1.1\r\nHost: gate\r\n\r\n";
        let mut fresh = Client::connect(address).unwrap();
        let mut begun = Client::connect(address).unwrap();
        let (first, second) = request.split_at(8);
        begun.write_all(first.as_bytes()).unwrap();
        shutdown.enter(Phase::Draining);
        fresh.write_all(request.as_bytes()).unwrap();
        begun.write_all(second.as_bytes()).unwrap();
        for stream in [fresh, begun] {
            let last = rest(stream);
            assert!(last.starts_with("HTTP/1.1 200") && last.contains("connection: close"), "{last}");
        }
    });
}

#[test]
fn only_trusted_proxies_say_who_the_client_is() {
    let request = "GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nX-Forwarded-For: 203.0.113.5\r\n\r\n";
    let trusting = |network: &str| Tried {
        proxies: TrustedProxies { networks: vec![network.parse().unwrap()], header: ForwardedHeader::XForwardedFor },
        ..Tried::default()
    };
    trusting("127.0.0.0/8").serve(addresses(), move |address, _| {
        assert!(response(address, request).ends_with("203.0.113.5"));
    });
    trusting("10.0.0.0/8").serve(addresses(), move |address, _| {
        assert!(response(address, request).ends_with("127.0.0.1"));
    });
}

#[test]
fn the_proxy_protocol_is_required_where_it_is_on_and_believed_from_trusted_proxies_only() {
    let of = |network: &str| Tried {
        proxies: TrustedProxies { networks: vec![network.parse().unwrap()], ..TrustedProxies::default() },
        proxy_protocol: true,
        ..Tried::default()
    };
    let request = "GET / HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n";
    let proxied = format!("PROXY TCP4 203.0.113.5 192.0.2.1 4711 443\r\n{request}");
    of("127.0.0.0/8").serve(addresses(), {
        let proxied = proxied.clone();
        move |address, _| {
            assert!(response(address, &proxied).ends_with("203.0.113.5"));
            assert_eq!(response(address, request), "");
        }
    });
    of("10.0.0.0/8").serve(addresses(), move |address, _| assert_eq!(response(address, &proxied), ""));
}

mod tls {
    use std::path::Path;

    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    use super::*;

    /// Writes a new certificate for `localhost` and its key; returns the certificate.
    pub(super) fn renew(directory: &Path) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(directory.join("cert.pem"), cert.pem()).unwrap();
        std::fs::write(directory.join("key.pem"), signing_key.serialize_pem()).unwrap();
        CertificateDer::from_pem_slice(cert.pem().as_bytes()).unwrap()
    }

    pub(super) fn settings(directory: &Path) -> TlsSettings {
        TlsSettings {
            certificate: directory.join("cert.pem"),
            key: directory.join("key.pem"),
            tls12: false,
            clients: None,
        }
    }

    fn get(
        address: SocketAddr,
        trusted: &CertificateDer<'static>,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> Result<String, String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut stream = StreamOwned::new(client, Client::connect(address).unwrap());
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .map_err(|error| error.to_string())?;
        Ok(rest(stream))
    }

    #[test]
    fn a_changed_certificate_is_used_without_a_restart_and_a_bad_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let first = renew(directory.path());
        let tls = Arc::new(Tls::open(settings(directory.path())).unwrap());
        let tried = Tried { tls: Some(Arc::clone(&tls)), ..Tried::default() };
        tried.serve(addresses(), move |address, _| {
            let latest = &rustls::version::TLS13;
            assert!(get(address, &first, latest).unwrap().ends_with("127.0.0.1"));
            assert!(!tls.reload().unwrap(), "nothing has changed");

            let second = renew(directory.path());
            assert!(tls.reload().unwrap());
            assert!(get(address, &second, latest).unwrap().ends_with("127.0.0.1"));
            assert!(get(address, &first, latest).is_err());

            std::fs::copy(directory.path().join("key.pem"), directory.path().join("old.pem")).unwrap();
            let third = renew(directory.path());
            std::fs::rename(directory.path().join("old.pem"), directory.path().join("key.pem")).unwrap();
            let error = tls.reload().unwrap_err().to_string();
            assert!(error.contains("cert.pem and") && error.contains("key.pem cannot be used"), "{error}");
            assert!(get(address, &third, latest).is_err());
            assert!(get(address, &second, latest).is_ok());
        });
    }

    #[test]
    fn tls_1_2_is_spoken_only_where_it_is_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = renew(directory.path());
        for tls12 in [false, true] {
            let tls = Tls::open(TlsSettings { tls12, ..settings(directory.path()) }).unwrap();
            let certificate = certificate.clone();
            let tried = Tried { tls: Some(Arc::new(tls)), ..Tried::default() };
            tried.serve(addresses(), move |address, _| {
                let got = get(address, &certificate, &rustls::version::TLS12);
                assert_eq!(got.is_ok_and(|answer| answer.ends_with("127.0.0.1")), tls12);
            });
        }
    }

    #[test]
    fn plain_http_and_silence_on_a_tls_listener_are_closed() {
        let directory = tempfile::tempdir().unwrap();
        renew(directory.path());
        let tls = Arc::new(Tls::open(settings(directory.path())).unwrap());
        let limits = Limits { head_timeout: SHORT, ..Limits::default() };
        let tried = Tried { tls: Some(tls), limits, ..Tried::default() };
        tried.serve(addresses(), move |address, _| {
            assert!(!response(address, "GET / HTTP/1.1\r\nHost: gate\r\n\r\n").contains("200 OK"));
            assert_eq!(response(address, ""), "");
        });
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let refused = || Tls::open(settings(directory.path())).err().unwrap().to_string();
        assert!(refused().contains("cert.pem"), "{}", refused());
        renew(directory.path());
        std::fs::write(directory.path().join("key.pem"), "no key").unwrap();
        assert!(refused().contains("key.pem"), "{}", refused());
    }
}
