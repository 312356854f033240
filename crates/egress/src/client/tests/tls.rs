//! Which certificates are trusted.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

use super::*;

struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// A new CA and its certificate in PEM.
    fn new(name: &str) -> (Self, String) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let pem = parameters.self_signed(&key).unwrap().pem();
        (Self(Issuer::new(parameters, key)), pem)
    }

    fn server(&self, name: &str) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }
}

/// A service behind TLS that returns the server name and the protocols that the client requested.
async fn secure_upstream(config: ServerConfig) -> Upstream {
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Upstream::serving("127.0.0.1", move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let name = stream.get_ref().1.server_name().unwrap_or("-").to_owned();
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                let _ = stream.write_all(response.as_bytes()).await;
            }
        }
    })
    .await
}

const NAME: &str = "api.example.com";

fn url(host: &str, upstream: &Upstream) -> Url {
    Url::parse(&format!("https://{host}:{}/", upstream.port)).unwrap()
}

fn client() -> GuardedClient {
    GuardedClient::new(policy(&["127.0.0.1/32"]), Fickle::new(&[&["127.0.0.1"], &["127.0.0.1"], &["127.0.0.1"]]))
}

fn refused_because(outcome: Result<InboundResponse, SendError>, part: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, SendError::Tls { .. }) && error.to_string().contains(part), "{error}");
    assert!(!error.reached_service());
}

#[tokio::test]
async fn a_service_of_an_unknown_ca_is_refused_and_accepted_with_the_credentials_own_ca() {
    let (authority, pem) = Authority::new("one");
    let upstream = secure_upstream(authority.server(NAME)).await;
    let url = url(NAME, &upstream);
    let client = client();
    refused_because(client.send(get(&url)).await, "unknown CA");
    for _ in 0..2 {
        let response = client.send(OutboundRequest { ca_certificate: Some(&pem), ..get(&url) }).await.unwrap();
        assert_eq!(response.body, NAME.as_bytes());
    }
    // The connection that the own CA vouched for is not used where the system's roots must vouch.
    refused_because(client.send(get(&url)).await, "unknown CA");
    assert_eq!(upstream.connections(), 3);
}

#[tokio::test]
async fn a_credentials_own_ca_is_the_only_one() {
    let (authority, _) = Authority::new("one");
    let (_, other) = Authority::new("another");
    let upstream = secure_upstream(authority.server(NAME)).await;
    let url = url(NAME, &upstream);
    refused_because(client().send(OutboundRequest { ca_certificate: Some(&other), ..get(&url) }).await, "unknown CA");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (authority, pem) = Authority::new("one");
    let upstream = secure_upstream(authority.server("www.example.com")).await;
    for host in [NAME, "127.0.0.1"] {
        let url = url(host, &upstream);
        let outcome = client().send(OutboundRequest { ca_certificate: Some(&pem), ..get(&url) }).await;
        refused_because(outcome, "another name");
    }
}

#[tokio::test]
async fn a_certificate_for_an_address_is_good_for_that_address() {
    let (authority, pem) = Authority::new("one");
    let upstream = secure_upstream(authority.server("127.0.0.1")).await;
    let url = url("127.0.0.1", &upstream);
    let response = client().send(OutboundRequest { ca_certificate: Some(&pem), ..get(&url) }).await.unwrap();
    assert_eq!(response.body, b"-");
}

#[tokio::test]
async fn text_that_is_no_certificate_is_refused_before_anything_is_connected() {
    let (authority, pem) = Authority::new("one");
    let upstream = secure_upstream(authority.server(NAME)).await;
    let url = url(NAME, &upstream);
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for text in ["", "not a certificate", empty, &format!("{pem}{empty}")] {
        let error = client().send(OutboundRequest { ca_certificate: Some(text), ..get(&url) }).await.unwrap_err();
        assert!(error == SendError::BadCertificate && !error.reached_service(), "{text}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_service_that_speaks_no_tls_never_sees_the_request() {
    let upstream = Upstream::serving("127.0.0.1", |mut stream| async move {
        let _ = stream.write_all(HELLO.as_bytes()).await;
        let _ = stream.read(&mut [0; 4096]).await;
    })
    .await;
    refused_because(client().send(get(&url(NAME, &upstream))).await, "TLS 1.2 or 1.3");
}

#[tokio::test]
async fn the_deadline_holds_during_the_handshake() {
    let (arrived, arrival) = tokio::sync::oneshot::channel();
    let arrived = Mutex::new(Some(arrived));
    let upstream = Upstream::serving("127.0.0.1", move |mut stream| {
        let arrived = arrived.lock().unwrap().take();
        async move {
            let _ = stream.read(&mut [0; 4096]).await;
            arrived.unwrap().send(()).unwrap();
            std::future::pending().await
        }
    })
    .await;
    let url = url(NAME, &upstream);
    let call = tokio::spawn(async move { client().send(get(&url)).await });
    arrival.await.unwrap();
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(call.await.unwrap(), Err(SendError::TimedOut { stage: Stage::Tls }));
}
