//! Signs access tokens as an issuer does: RS256, ES256 or EdDSA, and whatever a forger would write.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A key pair with an id.
pub struct TokenSigner {
    id: String,
    pair: Pair,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl TokenSigner {
    pub fn rs256(id: &str) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("an RSA key");
        Self { id: id.to_owned(), pair: Pair::Rsa(Box::new(pair)) }
    }

    pub fn es256(id: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("an ECDSA key");
        Self { id: id.to_owned(), pair: Pair::Ecdsa(pair) }
    }

    pub fn ed25519(id: &str) -> Self {
        Self { id: id.to_owned(), pair: Pair::Ed25519(Ed25519KeyPair::generate().expect("an Ed25519 key")) }
    }

    /// The name of its algorithm.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::Ecdsa(_) => "ES256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// The public key, as an issuer publishes it.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                // PKCS#1: the head, a modulus of 257 bytes of which the first is zero, and an exponent of three.
                let der = pair.public_key().as_ref();
                assert_eq!(der.len(), 270, "a key of 2048 bits");
                json!({"kty": "RSA", "n": text(&der[9..265]), "e": text(&der[267..])})
            }
            Pair::Ecdsa(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..65])})
            }
            Pair::Ed25519(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref())}),
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// A token with these claims, in the form of RFC 9068.
    pub fn token(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": self.algorithm(), "typ": "at+jwt", "kid": self.id}), claims)
    }

    /// A token with any header; the signature is by this key whatever the header says.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = unsigned(header, claims);
        format!("{signed}.{}", self.signature(signed.as_bytes()))
    }

    /// The signature of a message, as it stands in a token.
    pub fn signature(&self, message: &[u8]) -> String {
        let bytes = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).expect("a signature");
                signature
            }
            Pair::Ecdsa(pair) => pair.sign(&SystemRandom::new(), message).expect("a signature").as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        };
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// A token by HS256 whose secret is the public key, which a careless verifier accepts.
    pub fn confused(&self, claims: &Value) -> Vec<String> {
        let public = match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ecdsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
        };
        let signed = unsigned(&json!({"alg": "HS256", "typ": "at+jwt", "kid": self.id}), claims);
        let secrets = [public, self.jwk().to_string().into_bytes(), Vec::new()];
        let token = |secret: &Vec<u8>| {
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
        };
        secrets.iter().map(token).collect()
    }
}

/// Header and claims, as they are signed.
pub fn unsigned(header: &Value, claims: &Value) -> String {
    let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", text(header), text(claims))
}
