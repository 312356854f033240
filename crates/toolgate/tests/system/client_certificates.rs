//! Client certificates as identities: registered like keys, ended like keys, and never mixed with the key of somebody else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use toolgate_testkit::gate_process::{ADMIN_TOKEN, GateSetup};
use toolgate_testkit::http;
use toolgate_testkit::postgres::TestDatabase;

use crate::world::{block_on, setup};

const BILLING: &str = "spiffe://example.org/ns/prod/billing";

#[test]
fn a_certificate_identifies_its_agent_until_its_key_ends_on_sqlite() {
    a_certificate_identifies_its_agent_until_its_key_ends(setup());
}

#[test]
fn a_certificate_identifies_its_agent_until_its_key_ends_on_postgres() {
    let database = block_on(TestDatabase::create());
    a_certificate_identifies_its_agent_until_its_key_ends(setup().database(database.url()));
}

fn a_certificate_identifies_its_agent_until_its_key_ends(setup: GateSetup) {
    let pki = Pki::new(&setup);
    let gate = pki.configured(setup).start();
    let client =
        |presented: Option<&Presented>| Client { address: gate.address(), pki: &pki, presented: presented.cloned() };
    let admin = client(None).with_key(ADMIN_TOKEN);
    for id in ["billing", "other"] {
        assert_eq!(admin("POST", "/api/v1/agents", json!({"id": id})).0, 201);
    }
    let workload = pki.issue(&[BILLING]);
    let whoami = |presented: &Presented| client(Some(presented)).without_key()("GET", "/api/v1/whoami", Value::Null);

    // A certificate that nobody has registered opens nothing, and the refusal says what to do.
    let (status, refused) = whoami(&workload);
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("UNAUTHENTICATED")), "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains(BILLING) && message.contains("toolgate key create"), "{message}");

    // Registered, it identifies its agent; so does the renewed one. Nothing secret is handed out.
    let register = |agent: &str, certificate: Value| {
        admin("POST", &format!("/api/v1/agents/{agent}/keys"), json!({"certificate": certificate}))
    };
    let (status, key) = register("billing", json!({"spiffe_id": BILLING}));
    assert_eq!((status, &key["hint"], key.get("key")), (201, &json!(BILLING), None), "{key}");
    assert_eq!(whoami(&workload).1["id"], "billing");
    assert_eq!(whoami(&pki.issue(&[BILLING])).1["id"], "billing");
    assert_eq!(register("other", json!({"spiffe_id": BILLING})).1["error"]["code"], "ALREADY_EXISTS");
    let (_, events) = admin("GET", "/api/v1/audit/events?type=key.created", Value::Null);
    assert!(
        events["events"].as_array().unwrap().iter().any(|event| event["data"]["certificate"] == BILLING),
        "{events}"
    );

    // One without a SPIFFE id is known by its fingerprint.
    let pinned = pki.issue(&[]);
    let fingerprint =
        whoami(&pinned).1["message"].as_str().unwrap().split("sha256:").nth(1).unwrap().get(..64).unwrap().to_owned();
    assert_eq!(register("other", json!({"sha256": fingerprint})).0, 201);
    assert_eq!(whoami(&pinned).1["id"], "other");

    // The name is no key. A key of the same agent is fine, the key of another one is not, nor is one that is no key.
    let as_key = client(None).with_key(BILLING)("GET", "/api/v1/whoami", Value::Null);
    assert_eq!(as_key.1["error"]["code"], "UNAUTHENTICATED");
    let own = admin("POST", "/api/v1/agents/billing/keys", json!({})).1["key"].as_str().unwrap().to_owned();
    let both = |key: &str| client(Some(&workload)).with_key(key)("GET", "/api/v1/whoami", Value::Null);
    assert_eq!(both(&own).1["id"], "billing");
    let (status, mixed) = both(ADMIN_TOKEN);
    assert_eq!((status, &mixed["error"]["code"]), (401, &json!("UNAUTHENTICATED")), "{mixed}");
    assert!(mixed["message"].as_str().unwrap().contains("does not"), "{mixed}");
    assert_eq!(both("not-a-key-of-anybody").0, 401);
    let stranger = client(Some(&pki.issue(&["spiffe://example.org/unregistered"]))).with_key(&own);
    assert_eq!(stranger("GET", "/api/v1/whoami", Value::Null).1["id"], "billing");

    // It ends with its key, on open connections too, and can be registered again, also for somebody else.
    let id = key["id"].as_str().unwrap();
    assert_eq!(admin("DELETE", &format!("/api/v1/keys/{id}"), Value::Null).0, 200);
    assert_eq!(whoami(&workload).1["error"]["code"], "KEY_REVOKED");
    assert_eq!(register("other", json!({"spiffe_id": BILLING})).0, 201);
    assert_eq!(whoami(&workload).1["id"], "other");

    // What is no name of a certificate is refused, and so are certificates in other tenants, whose CA this is not.
    for wrong in [json!({}), json!({"subject": "CN=billing"}), json!({"spiffe_id": "billing"}), json!({"sha256": "ab"})]
    {
        assert_eq!(register("billing", wrong.clone()).0, 400, "{wrong}");
    }
    let (_, tenant) = admin("POST", "/api/v1/tenants", json!({"id": "acme"}));
    let foreign = client(None).with_key(tenant["administrator"]["key"].as_str().unwrap());
    assert_eq!(foreign("POST", "/api/v1/agents", json!({"id": "spy"})).0, 201);
    let taken = json!({"certificate": {"spiffe_id": "spiffe://example.org/ns/prod/mail"}});
    let (status, refused) = foreign("POST", "/api/v1/agents/spy/keys", taken);
    assert_eq!((status, &refused["error"]["path"]), (400, &json!("certificate")), "{refused}");
}

#[test]
fn the_command_line_registers_a_certificate_and_shows_nothing_secret() {
    let gate = setup().start();
    assert_eq!(gate.request("POST", "/api/v1/agents", Some(&json!({"id": "billing"}))).0, 201);
    let run = |arguments: &[&str]| {
        let output = gate.cli().args(["key"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let made = run(&["create", "billing", "--spiffe-id", BILLING]);
    assert!(
        made.contains(&format!("the client certificate {BILLING} identifies billing")) && !made.contains("tgk_"),
        "{made}"
    );
    run(&["create", "billing", "--certificate-sha256", "ab:".repeat(32).trim_end_matches(':')]);
    assert!(run(&["list", "billing", "--json"]).contains(&format!("sha256:{}", "ab".repeat(32))));
}

/// A certificate with its key.
#[derive(Debug)]
struct Presented(CertificateDer<'static>, PrivateKeyDer<'static>);

impl Clone for Presented {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1.clone_key())
    }
}

/// The CA of the clients, and the certificate of the gate.
struct Pki {
    issuer: Issuer<'static, KeyPair>,
    server: CertificateDer<'static>,
    files: [(&'static str, String); 3],
}

impl Pki {
    /// Writes what the gate reads into its home.
    fn new(setup: &GateSetup) -> Self {
        let server = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&key).unwrap();
        let file = |name: &str, pem: String| {
            let path = setup.home().join(name);
            std::fs::write(&path, pem).unwrap();
            path.display().to_string()
        };
        let files = [
            ("TOOLGATE_TLS_CERTIFICATE", file("cert.pem", server.cert.pem())),
            ("TOOLGATE_TLS_KEY", file("key.pem", server.signing_key.serialize_pem())),
            ("TOOLGATE_TLS_CLIENT_CA", file("ca.pem", ca.pem())),
        ];
        Self { issuer: Issuer::new(params, key), server: server.cert.der().clone(), files }
    }

    fn configured(&self, setup: GateSetup) -> GateSetup {
        self.files.iter().fold(setup, |setup, (name, file)| setup.environment(name, file))
    }

    fn issue(&self, uris: &[&str]) -> Presented {
        let mut params = CertificateParams::default();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        Presented(certificate.der().clone(), key)
    }
}

/// A client that speaks TLS.
struct Client<'a> {
    address: SocketAddr,
    pki: &'a Pki,
    presented: Option<Presented>,
}

impl Client<'_> {
    fn without_key(&self) -> impl Fn(&str, &str, Value) -> (u16, Value) + use<> {
        self.sending(String::new())
    }

    fn with_key(&self, key: &str) -> impl Fn(&str, &str, Value) -> (u16, Value) + use<> {
        self.sending(format!("Authorization: Bearer {key}\r\n"))
    }

    fn sending(&self, headers: String) -> impl Fn(&str, &str, Value) -> (u16, Value) + use<> {
        let mut roots = RootCertStore::empty();
        roots.add(self.pki.server.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let config = Arc::new(match self.presented.clone() {
            Some(Presented(certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
            None => config.with_no_client_auth(),
        });
        let address = self.address;
        move |method, path, body| {
            let client =
                ClientConnection::new(Arc::clone(&config), ServerName::try_from("localhost").unwrap()).unwrap();
            let mut stream = StreamOwned::new(client, TcpStream::connect(address).unwrap());
            let body = if body.is_null() { String::new() } else { body.to_string() };
            write!(
                stream,
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            let answer = http::parse(&bytes).unwrap();
            (answer.status, answer.json())
        }
    }
}
