//! Which tokens are accepted, and what the others cost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_gate::ports::tokens::{IssuerDocument, IssuerFailure};
use toolgate_gate::refusal::Code;
use toolgate_model::key::digest_of;
use toolgate_testkit::token_signer::{TokenSigner, unsigned};

use super::*;

const ISSUER: &str = "https://login.example.com";
const AUDIENCE: &str = "https://gate.example.com/mcp";
const NOW: i64 = 1_770_000_000;

/// An issuer whose keys can be replaced.
#[derive(Default)]
struct Published {
    keys: Mutex<Vec<Value>>,
    fetches: AtomicUsize,
}

#[async_trait]
impl IssuerLink for Published {
    async fn get(&self, _: &str, _: Duration) -> Result<IssuerDocument, IssuerFailure> {
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let body = json!({"keys": *self.keys.lock().unwrap()}).to_string().into_bytes();
        Ok(IssuerDocument { status: 200, body })
    }
}

impl Published {
    fn publish(&self, signers: &[&TokenSigner]) {
        *self.keys.lock().unwrap() = signers.iter().map(|signer| signer.jwk()).collect();
    }
}

fn verifier(signers: &[&TokenSigner], required_scopes: &[&str]) -> (JwtVerifier, Arc<Published>) {
    let published = Arc::new(Published::default());
    published.publish(signers);
    let settings = IssuerSettings {
        issuer: IssuerUrl::parse(ISSUER).unwrap(),
        audiences: vec![AUDIENCE.to_owned()],
        algorithms: SignatureAlgorithm::USUAL.to_vec(),
        jwks_uri: Some("https://login.example.com/keys".to_owned()),
        subject_claim: "sub".to_owned(),
        required_scopes: required_scopes.iter().map(|&scope| scope.to_owned()).collect(),
        tenant: TenantId::default_tenant(),
    };
    (JwtVerifier::new(vec![(settings, published.clone())]), published)
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 600, "iat": NOW})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((NOW + seconds) * 1000).unwrap()
}

async fn verify(verifier: &JwtVerifier, token: &str, seconds: i64) -> Result<String, Code> {
    let verified = verifier.verify(token, &digest_of(token), at(seconds)).await;
    let part = token.split('.').next_back().filter(|part| !part.is_empty());
    if let (Err(refusal), Some(part)) = (&verified, part) {
        assert!(!refusal.to_string().contains(part), "a refusal quotes the token");
    }
    verified.map(|token| token.subject.subject.as_str().to_owned()).map_err(|refusal| refusal.code())
}

#[tokio::test]
async fn tokens_of_every_kind_of_key_are_accepted() {
    let signers = [TokenSigner::rs256("r"), TokenSigner::es256("e"), TokenSigner::ed25519("d")];
    let (verifier, published) = verifier(&signers.each_ref(), &[]);
    for signer in &signers {
        assert_eq!(
            verify(&verifier, &signer.token(&claims()), 0).await,
            Ok("ann".to_owned()),
            "{}",
            signer.algorithm()
        );
    }
    assert_eq!(published.fetches.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_forged_token_is_accepted() {
    let (signer, other) = (TokenSigner::rs256("r"), TokenSigner::rs256("r"));
    let curve = TokenSigner::es256("e");
    let (verifier, _) = verifier(&[&signer, &curve], &[]);
    let valid = signer.token(&claims());
    assert!(verify(&verifier, &valid, 0).await.is_ok());
    let (signed, signature) = valid.rsplit_once('.').unwrap();
    let (header, body) = signed.split_once('.').unwrap();
    let more = unsigned(&json!({}), &with("sub", json!("root")));
    let (_, more) = more.split_once('.').unwrap();
    let none = |alg: &str| format!("{}.", unsigned(&json!({"alg": alg, "kid": "r"}), &claims()));
    let mut forged = vec![
        other.token(&claims()),
        format!("{header}.{more}.{signature}"),
        format!("{header}.{body}."),
        format!("{header}.{body}.{}", signature.chars().rev().collect::<String>()),
        none("none"),
        none("None"),
        none("nOnE"),
        none(""),
        // An algorithm that is not of this key, or not allowed.
        signer.sign(&json!({"alg": "ES256", "kid": "r"}), &claims()),
        signer.sign(&json!({"alg": "RS256", "kid": "e"}), &claims()),
        signer.sign(&json!({"alg": "RS512", "kid": "r"}), &claims()),
        curve.sign(&json!({"alg": "EdDSA", "kid": "e"}), &claims()),
        // A key of the forger's own.
        other.sign(&json!({"alg": "RS256", "jwk": other.jwk(), "kid": "r"}), &claims()),
        other.sign(&json!({"alg": "RS256", "jku": "https://evil.example/keys", "kid": "r"}), &claims()),
    ];
    forged.extend(signer.confused(&claims()));
    forged.extend(curve.confused(&claims()));
    for token in forged {
        assert_eq!(verify(&verifier, &token, 1).await, Err(Code::TokenInvalid), "{token}");
    }
}

#[tokio::test]
async fn tokens_of_others_for_others_and_of_other_times_are_refused_without_a_fetch() {
    let signer = TokenSigner::es256("e");
    let (verifier, published) = verifier(&[&signer], &[]);
    for (claims, code) in [
        (with("iss", json!("https://evil.example")), Code::TokenInvalid),
        (with("iss", json!("https://login.example.com/")), Code::TokenInvalid),
        (with("iss", Value::Null), Code::TokenInvalid),
        (with("aud", json!("client-of-somebody")), Code::TokenInvalid),
        (with("exp", json!(NOW - 31)), Code::TokenExpired),
        (with("exp", Value::Null), Code::TokenInvalid),
        (with("nbf", json!(NOW + 600)), Code::TokenInvalid),
    ] {
        assert_eq!(verify(&verifier, &signer.token(&claims), 0).await, Err(code), "{claims}");
    }
    let giant = signer.token(&with("groups", json!(vec!["g"; 5000])));
    assert_eq!(verify(&verifier, &giant, 0).await, Err(Code::TokenInvalid));
    assert_eq!(published.fetches.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_verified_token_is_remembered_until_it_ends_or_its_key_is_withdrawn() {
    let (old, new) = (TokenSigner::es256("old"), TokenSigner::es256("new"));
    let (verifier, published) = verifier(&[&old], &[]);
    let token = old.token(&claims());
    let digest = digest_of(&token);
    assert!(verifier.verified(&digest, at(0)).is_none());
    assert!(verify(&verifier, &token, 0).await.is_ok());
    let identity = verifier.verified(&digest, at(1)).unwrap().identity;
    assert!(verify(&verifier, &old.token(&with("jti", json!("2"))), 1).await.is_ok());
    assert_eq!(verifier.verified(&digest, at(1)).unwrap().identity, identity, "one subject, whatever its token");

    published.publish(&[&new]);
    assert!(verify(&verifier, &new.token(&claims()), 31).await.is_ok(), "a rotated key is found");
    assert!(verifier.verified(&digest, at(31)).is_none());
    assert_eq!(verify(&verifier, &token, 32).await, Err(Code::TokenInvalid));

    let short = new.token(&with("exp", json!(NOW + 40)));
    assert!(verify(&verifier, &short, 35).await.is_ok());
    assert!(verifier.verified(&digest_of(&short), at(69)).is_some());
    assert!(verifier.verified(&digest_of(&short), at(70)).is_none());
    assert_eq!(verify(&verifier, &short, 70).await, Err(Code::TokenExpired));
}

#[tokio::test]
async fn scopes_are_required_of_a_token_that_is_otherwise_valid() {
    let (signer, other) = (TokenSigner::es256("e"), TokenSigner::es256("e"));
    let (verifier, _) = verifier(&[&signer], &["toolgate", "tools"]);
    assert!(verify(&verifier, &signer.token(&with("scope", json!("openid tools toolgate"))), 0).await.is_ok());
    let narrow = with("scope", json!("openid tools"));
    for _ in 0..2 {
        assert_eq!(verify(&verifier, &signer.token(&narrow), 0).await, Err(Code::TokenScopeInsufficient));
    }
    assert_eq!(verify(&verifier, &other.token(&narrow), 0).await, Err(Code::TokenInvalid));
}

#[tokio::test]
async fn an_issuer_is_trusted_in_one_tenant() {
    let (verifier, _) = verifier(&[], &[]);
    let tenant = |issuer: &str| verifier.tenant_of(&IssuerUrl::parse(issuer).unwrap()).cloned();
    assert_eq!(tenant(ISSUER), Some(TenantId::default_tenant()));
    assert_eq!(tenant("https://login.example.com/"), None);
}
