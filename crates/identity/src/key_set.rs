//! The published keys of an issuer (RFC 7517). A key that cannot verify a signature by one of our algorithms is left out:
//! it may be for something else.

use std::sync::Arc;

use aws_lc_rs::signature::{RsaPublicKeyComponents, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use toolgate_model::strict_json;

use crate::algorithm::{SignatureAlgorithm, Verification};

/// More keys than any issuer rotates through.
const MAX_KEYS: usize = 100;
/// The length of the modulus of an RSA key, in bytes.
const RSA_LENGTHS: std::ops::RangeInclusive<usize> = 256..=512;

/// The keys of an issuer.
#[derive(Default)]
pub(crate) struct KeySet(Vec<Arc<PublicKey>>);

pub(crate) struct PublicKey {
    id: Option<String>,
    algorithms: Vec<SignatureAlgorithm>,
    material: Material,
}

enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// As the cryptography takes it: uncompressed, or that of Ed25519.
    Point(Vec<u8>),
}

impl KeySet {
    /// Reads a set; the error says why it is none.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, &'static str> {
        let set = strict_json::parse(body).map_err(|_| "it is not valid JSON")?;
        let keys = set.get("keys").and_then(Value::as_array).ok_or("it has no list `keys`")?;
        if keys.len() > MAX_KEYS {
            return Err("it has more than 100 keys");
        }
        Ok(Self(keys.iter().filter_map(Value::as_object).filter_map(PublicKey::read).map(Arc::new).collect()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The key with this id for this algorithm. A token that names no key can be verified only if there is no choice.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: SignatureAlgorithm) -> Option<Arc<PublicKey>> {
        let mut fitting = self.0.iter().filter(|key| key.algorithms.contains(&algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)).cloned(),
            None => fitting.next().filter(|_| fitting.next().is_none()).cloned(),
        }
    }
}

impl PublicKey {
    /// Whether the owner of the key has signed this.
    pub(crate) fn verifies(&self, signed: &str, signature: &str, algorithm: SignatureAlgorithm) -> bool {
        let Some(signature) = decoded(signature).filter(|_| self.algorithms.contains(&algorithm)) else { return false };
        match (&self.material, algorithm.verification()) {
            (Material::Rsa(key), Verification::Rsa(scheme)) => {
                key.verify(scheme, signed.as_bytes(), &signature).is_ok()
            }
            (Material::Point(key), Verification::Point(scheme)) => {
                UnparsedPublicKey::new(scheme, key).verify(signed.as_bytes(), &signature).is_ok()
            }
            _ => false,
        }
    }

    fn read(jwk: &Map<String, Value>) -> Option<Self> {
        use SignatureAlgorithm as Of;
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if jwk.contains_key("use") && text("use") != Some("sig") {
            return None;
        }
        if let Some(operations) = jwk.get("key_ops") {
            operations.as_array()?.iter().find(|operation| *operation == "verify")?;
        }
        let (material, of_key): (_, &[Of]) = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let n = number(text("n")?).filter(|modulus| RSA_LENGTHS.contains(&modulus.len()))?;
                let key = RsaPublicKeyComponents { n, e: number(text("e")?)? };
                (Material::Rsa(key), &[Of::Rs256, Of::Rs384, Of::Rs512, Of::Ps256, Of::Ps384, Of::Ps512])
            }
            ("EC", Some("P-256")) => (point(text("x")?, text("y")?, 32)?, &[Of::Es256]),
            ("EC", Some("P-384")) => (point(text("x")?, text("y")?, 48)?, &[Of::Es384]),
            ("OKP", Some("Ed25519")) => {
                let key = decoded(text("x")?).filter(|key| key.len() == 32)?;
                (Material::Point(key), &[Of::EdDsa])
            }
            _ => return None,
        };
        // The name of RFC 9864 for the same.
        let wanted = text("alg").map(|name| if name == "Ed25519" { "EdDSA" } else { name });
        let algorithms: Vec<_> =
            of_key.iter().copied().filter(|of_key| wanted.is_none_or(|name| name == of_key.as_str())).collect();
        (!algorithms.is_empty()).then(|| Self { id: text("kid").map(str::to_owned), algorithms, material })
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// A number, of which some issuers write leading zeros.
fn number(text: &str) -> Option<Vec<u8>> {
    let number: Vec<u8> = decoded(text)?.into_iter().skip_while(|byte| *byte == 0).collect();
    (!number.is_empty()).then_some(number)
}

/// An uncompressed point, whose coordinates have this length.
fn point(x: &str, y: &str, length: usize) -> Option<Material> {
    let (x, y) = (decoded(x)?, decoded(y)?);
    (x.len() == length && y.len() == length).then(|| Material::Point([&[4], x.as_slice(), &y].concat()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_testkit::token_signer::TokenSigner;

    use super::*;

    fn set(keys: Value) -> KeySet {
        KeySet::parse(json!({"keys": keys}).to_string().as_bytes()).unwrap()
    }

    fn with(mut jwk: Value, name: &str, value: Value) -> Value {
        jwk[name] = value;
        jwk
    }

    #[test]
    fn a_key_verifies_only_by_the_algorithms_of_its_kind() {
        for (signer, algorithm) in [
            (TokenSigner::rs256("k"), SignatureAlgorithm::Rs256),
            (TokenSigner::es256("k"), SignatureAlgorithm::Es256),
            (TokenSigner::ed25519("k"), SignatureAlgorithm::EdDsa),
        ] {
            let found = set(json!([signer.jwk()]));
            let key = found.find(Some("k"), algorithm).unwrap();
            let signature = signer.signature(b"a.b");
            assert!(key.verifies("a.b", &signature, algorithm));
            assert!(!key.verifies("a.c", &signature, algorithm));
            for other in SignatureAlgorithm::ALL.into_iter().filter(|other| *other != algorithm) {
                assert!(!key.verifies("a.b", &signature, other), "{other:?}");
            }
            // A key that says which algorithm it is for is for no other.
            let bound = set(json!([with(signer.jwk(), "alg", json!(algorithm.as_str()))]));
            let for_it = SignatureAlgorithm::ALL.into_iter().filter(|other| bound.find(Some("k"), *other).is_some());
            assert_eq!(for_it.collect::<Vec<_>>(), [algorithm]);
        }
    }

    #[test]
    fn symmetric_weak_and_other_keys_are_left_out() {
        let jwk = TokenSigner::es256("k").jwk();
        for unusable in [
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256"}),
            json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([255; 128]), "e": "AQAB", "kid": "k"}),
            json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([255; 4096]), "e": "AQAB", "kid": "k"}),
            with(jwk.clone(), "use", json!("enc")),
            with(jwk.clone(), "key_ops", json!(["sign"])),
            with(jwk.clone(), "alg", json!("HS256")),
            with(jwk.clone(), "crv", json!("P-521")),
            with(jwk.clone(), "x", json!("AQAB")),
            json!("k"),
        ] {
            assert_eq!(set(json!([unusable])).len(), 0, "{unusable}");
        }
        assert_eq!(set(json!([with(jwk, "key_ops", json!(["verify"]))])).len(), 1);
    }

    #[test]
    fn a_token_that_names_no_key_is_verified_only_where_there_is_one() {
        let (one, other) = (TokenSigner::es256("1").jwk(), TokenSigner::es256("2").jwk());
        assert!(set(json!([one])).find(None, SignatureAlgorithm::Es256).is_some());
        let both = set(json!([one, other]));
        assert!(both.find(None, SignatureAlgorithm::Es256).is_none());
        assert!(both.find(Some("2"), SignatureAlgorithm::Es256).is_some());
        assert!(both.find(Some("3"), SignatureAlgorithm::Es256).is_none());
    }

    #[test]
    fn what_is_no_set_of_keys_is_refused() {
        let many = json!({"keys": vec![TokenSigner::es256("1").jwk(); 101]}).to_string();
        for body in ["", "[]", "{}", "{\"keys\": {}}", "{\"keys\": [], \"keys\": []}", "<html>", &many] {
            assert!(KeySet::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
