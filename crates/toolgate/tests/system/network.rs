//! How clients reach the gate: by TLS, through proxies, by a socket file; and what those who mean no good can hold up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::json;
use toolgate_testkit::gate_process::{GateSetup, signal};

use crate::calls::shop::Shop;
use crate::world::{World, until};

fn setup() -> GateSetup {
    GateSetup::new(env!("CARGO_BIN_EXE_toolgate"))
}

/// All that comes until the gate closes the connection.
fn rest(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset has ended too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn whoami(token: &str, headers: &str) -> String {
    format!(
        "GET /api/v1/whoami HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
    )
}

fn certificate(directory: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn connections_that_send_nothing_are_closed_and_hold_nobody_up() {
    let gate = setup()
        .environment("TOOLGATE_HEADER_TIMEOUT_SECONDS", "1")
        .environment("TOOLGATE_MAX_CONNECTIONS", "40")
        .start();
    let connect = || TcpStream::connect(gate.address()).unwrap();
    let silent: Vec<TcpStream> = (0..60)
        .map(|number| {
            let mut stream = connect();
            stream.write_all(["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"][number % 3].as_bytes()).unwrap();
            stream
        })
        .collect();
    // All places are taken, and a probe is answered.
    let mut probe = connect();
    probe.write_all(b"GET /healthz HTTP/1.1\r\nHost: gate\r\nConnection: close\r\n\r\n").unwrap();
    assert!(rest(probe).starts_with("HTTP/1.1 200"));
    for stream in silent {
        rest(stream);
    }
    assert_eq!(gate.request("GET", "/api/v1/whoami", None).0, 200);
}

#[test]
fn tls_is_spoken_with_the_command_line_and_a_renewed_certificate_is_taken_up() {
    let setup = setup();
    certificate(setup.home());
    let file = |name: &str| setup.home().join(name).display().to_string();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let setup = setup.environment("TOOLGATE_TLS_CERTIFICATE", &cert).environment("TOOLGATE_TLS_KEY", &key);
    let mut child = setup
        .command()
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("TOOLGATE_ADMIN_TOKEN", "the-token-of-the-administrator-0123456789abcdef")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    let url = line.trim().strip_prefix("toolgate listening on ").unwrap().to_owned();
    assert!(url.starts_with("https://"), "{line}");
    let lists_agents = || {
        setup
            .command()
            .args(["agent", "list"])
            .env("TOOLGATE_URL", &url)
            .env("TOOLGATE_TOKEN", "the-token-of-the-administrator-0123456789abcdef")
            .env("SSL_CERT_FILE", &cert)
            .output()
            .unwrap()
    };
    let output = lists_agents();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    certificate(setup.home());
    signal("HUP", child.id());
    let renewed = until("the new certificate is used", || {
        let output = lists_agents();
        output.status.success().then_some(output)
    });
    assert!(renewed.status.success());
    signal("TERM", child.id());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_socket_file_serves_programs_of_the_same_user() {
    let setup = setup();
    let socket = setup.home().join("gate.sock");
    let gate = setup.environment("TOOLGATE_UNIX_SOCKET", &socket).start();
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(whoami(gate.token(), "").as_bytes()).unwrap();
    assert!(rest(stream).starts_with("HTTP/1.1 200"));
    gate.stop();
    assert!(!socket.exists());
}

#[test]
fn an_address_counts_as_the_trusted_proxy_says_and_as_nobody_else_says() {
    for (trusted, passes) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let setup = crate::world::setup().reaching_loopback().environment("TOOLGATE_TRUSTED_PROXIES", trusted);
        let world = World::of(&setup, None);
        let shop = Shop::open(&world);
        shop.grant(json!({"constraints": {"ip_allowlist": ["203.0.113.0/24"]}}));
        let call = json!({"tool": "payments.charges.read", "parameters": {"charge_id": "ch_1"}});
        let from = |header: &str| {
            shop.agent.ask_with("POST", "/api/v1/tools/invoke", &[("X-Forwarded-For", header)], Some(&call)).status()
        };
        // What stands to the left of the last proxy is what the client wrote.
        assert_eq!(from("127.0.0.7, 203.0.113.5"), if passes { 200 } else { 403 });
        assert_eq!(from("203.0.113.5, 198.51.100.7"), 403);
    }
}

#[test]
fn after_sigterm_everything_is_served_until_load_balancers_have_turned_away() {
    let gate = setup().environment("TOOLGATE_LAME_DUCK_SECONDS", "60").start();
    gate.terminate();
    until("the gate is not ready", || (gate.request("GET", "/readyz", None).0 == 503).then_some(()));
    let (_, ready) = gate.request("GET", "/readyz", None);
    assert_eq!((&ready["ledger"]["status"], &ready["shutdown"]["status"]), (&json!("ok"), &json!("failed")), "{ready}");
    let mut stream = TcpStream::connect(gate.address()).unwrap();
    stream.write_all(whoami(gate.token(), "").replace("Connection: close\r\n", "").as_bytes()).unwrap();
    let answer = rest(stream);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    // A second signal means that somebody does not want to wait.
    assert!(gate.stop().status.success());
}

#[test]
fn streams_of_one_key_are_bounded_and_keep_nobody_else_out() {
    let gate = setup().environment("TOOLGATE_MAX_REQUESTS_PER_KEY", "3").start();
    let follow = || {
        let mut stream = TcpStream::connect(gate.address()).unwrap();
        let request = format!(
            "GET /api/v1/approvals/stream HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\r\n",
            gate.token()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8_lossy(&status).into_owned(), stream)
    };
    let mut followed: Vec<_> = (0..3).map(|_| follow()).collect();
    assert!(followed.iter().all(|(status, _)| status == "HTTP/1.1 200"), "{followed:?}");
    let (status, refused) = follow();
    assert_eq!(status, "HTTP/1.1 429");
    drop(refused);
    let (status, body) = gate.request("GET", "/api/v1/whoami", None);
    assert_eq!((status, &body["error"]["code"]), (429, &json!("TOO_MANY_IN_FLIGHT")), "{body}");
    // Another key, no key, and probes have places of their own.
    assert_eq!(gate.request_as("another", "GET", "/api/v1/whoami", None).0, 401);
    assert_eq!(gate.request("GET", "/readyz", None).0, 200);
    followed.pop();
    until("a place was given back", || (gate.request("GET", "/api/v1/whoami", None).0 == 200).then_some(()));
}

#[test]
fn plain_http_beyond_this_machine_must_be_wanted() {
    let refused = |setup: GateSetup| setup.start_refused().stderr;
    let output = setup().command().args(["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("server.tls.certificate") && message.contains("server.allow_plain_http"), "{message}");
    let message = refused(setup().environment("TOOLGATE_TLS_CERTIFICATE", "/nowhere/cert.pem"));
    assert!(message.contains("server.tls needs both certificate and key"), "{message}");
    let message = refused(setup().environment("TOOLGATE_PROXY_PROTOCOL", "true"));
    assert!(message.contains("server.trusted_proxies"), "{message}");
    let files = setup()
        .environment("TOOLGATE_TLS_CERTIFICATE", "/nowhere/cert.pem")
        .environment("TOOLGATE_TLS_KEY", "/nowhere/key.pem");
    let message = refused(files);
    assert!(message.contains("/nowhere/cert.pem: No such file"), "{message}");
}
