//! Client certificates: which clients may connect, and how a request is identified.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::*;
use crate::caller::Credential;

const BILLING: &str = "spiffe://example.org/billing";

/// A CA of clients, and its certificate in PEM.
struct Authority(Issuer<'static, KeyPair>, String);

/// A certificate with its key.
type Presented = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "clients");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self(Issuer::new(params, key), pem)
    }

    fn issue(&self, uris: &[&str]) -> Presented {
        let mut params = CertificateParams::default();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap())
    }
}

/// TLS with the CA in `ca.pem`, and the trust of the clients.
fn open(directory: &Path, ca: &Authority, required: bool) -> (Arc<Tls>, CertificateDer<'static>) {
    let trusted = tls::renew(directory);
    std::fs::write(directory.join("ca.pem"), &ca.1).unwrap();
    let clients = Some(ClientCertificates { ca: directory.join("ca.pem"), required });
    (Arc::new(Tls::open(TlsSettings { clients, ..tls::settings(directory) }).unwrap()), trusted)
}

/// A connection on which requests can be sent one after the other.
fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    presented: Option<Presented>,
) -> StreamOwned<ClientConnection, Client> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match presented {
        Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    StreamOwned::new(client, Client::connect(address).unwrap())
}

/// The response to a request that is the last of its connection; nothing where the gate refused the handshake.
fn get(address: SocketAddr, trusted: &CertificateDer<'static>, presented: Option<Presented>, headers: &str) -> String {
    let mut stream = connect(address, trusted, presented);
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    match stream.write_all(request.as_bytes()) {
        Ok(()) => rest(stream),
        Err(_) => String::new(),
    }
}

/// Responds with the credential of the request.
fn credentials() -> Router {
    Router::new().fallback(|Extension(peer): Extension<Peer>, headers: http::HeaderMap| async move {
        match Credential::of(&headers, &peer) {
            Some(Credential::Certificate(name)) => name.to_string(),
            Some(Credential::Key(key)) => format!("key {key}"),
            Some(Credential::Subject(_)) | None => "nothing".to_owned(),
        }
    })
}

#[test]
fn a_request_without_a_key_has_the_name_of_its_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new();
    let (tls, trusted) = open(directory.path(), &ca, false);
    Tried { tls: Some(tls), ..Tried::default() }.serve(credentials(), move |address, _| {
        let get = |presented, headers| get(address, &trusted, presented, headers);
        assert!(get(Some(ca.issue(&[BILLING])), "").ends_with(&format!("\r\n\r\n{BILLING}")));
        assert!(get(Some(ca.issue(&[])), "").contains("\r\n\r\nsha256:"));
        assert!(get(Some(ca.issue(&[BILLING, "spiffe://example.org/admin"])), "").contains("\r\n\r\nsha256:"));
        assert!(get(Some(ca.issue(&[BILLING])), "X-API-Key: mine\r\n").ends_with("key mine"));
        assert!(get(None, "").ends_with("nothing"));
        // One that another CA has issued, with the same name, is refused in the handshake.
        assert!(!get(Some(Authority::new().issue(&[BILLING])), "").contains("HTTP/1.1"));
    });
}

#[test]
fn a_client_without_a_certificate_is_refused_where_one_is_required() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new();
    let (tls, trusted) = open(directory.path(), &ca, true);
    Tried { tls: Some(tls), ..Tried::default() }.serve(credentials(), move |address, _| {
        assert!(!get(address, &trusted, None, "").contains("HTTP/1.1"));
        assert!(get(address, &trusted, Some(ca.issue(&[BILLING])), "").ends_with(BILLING));
    });
}

#[test]
fn the_certificate_of_a_trusted_proxy_identifies_none_of_its_clients() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new();
    let (tls, trusted) = open(directory.path(), &ca, false);
    let proxies = TrustedProxies { networks: vec!["127.0.0.0/8".parse().unwrap()], ..TrustedProxies::default() };
    Tried { tls: Some(tls), proxies, ..Tried::default() }.serve(credentials(), move |address, _| {
        for headers in ["", "X-Forwarded-For: 203.0.113.5\r\n", "X-Forwarded-Client-Cert: URI=spiffe://x/y\r\n"] {
            assert!(get(address, &trusted, Some(ca.issue(&[BILLING])), headers).ends_with("nothing"), "{headers}");
        }
    });
}

#[test]
fn a_ca_that_is_taken_out_ends_connections_that_were_made_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new();
    let (tls, trusted) = open(directory.path(), &ca, false);
    let reloaded = Arc::clone(&tls);
    Tried { tls: Some(tls), ..Tried::default() }.serve(credentials(), move |address, _| {
        let mut open = connect(address, &trusted, Some(ca.issue(&[BILLING])));
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        open.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(BILLING.as_bytes()) {
            let mut byte = [0];
            open.read_exact(&mut byte).unwrap();
            bytes.extend(byte);
        }
        let next = Authority::new();
        std::fs::write(directory.path().join("ca.pem"), &next.1).unwrap();
        assert!(reloaded.reload().unwrap());
        open.write_all(request.as_bytes()).unwrap();
        let refused = rest(open);
        assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("no longer valid"), "{refused}");
        assert!(get(address, &trusted, Some(next.issue(&[BILLING])), "").ends_with(BILLING));
        assert!(!get(address, &trusted, Some(ca.issue(&[BILLING])), "").contains("HTTP/1.1"));
    });
}

#[test]
fn a_ca_file_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    tls::renew(directory.path());
    std::fs::write(directory.path().join("ca.pem"), "no certificate").unwrap();
    let clients = Some(ClientCertificates { ca: directory.path().join("ca.pem"), required: false });
    let refused = Tls::open(TlsSettings { clients, ..tls::settings(directory.path()) }).err().unwrap().to_string();
    assert!(refused.contains("ca.pem: there is no certificate in it"), "{refused}");
}
