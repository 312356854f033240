//! Client certificates as identities. A certificate with a SPIFFE id is identified by it, every other one by its
//! SHA-256; the subject is never read, because CAs disagree about its meaning.

use std::fmt;

use aws_lc_rs::digest;

use crate::id::KeyId;
use crate::key::KeyDigest;

/// The maximum length of a SPIFFE id and of a trust domain by the standard.
const MAX_ID: usize = 2048;
const MAX_TRUST_DOMAIN: usize = 255;

/// The identity of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateName {
    /// The workload that it was issued to. Renewed certificates keep it.
    SpiffeId(SpiffeId),
    /// Exactly this certificate.
    Sha256(Fingerprint),
}

/// `spiffe://TRUST-DOMAIN/PATH`, in the only spelling that the standard allows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct SpiffeId(String);

/// The SHA-256 of a certificate in DER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl CertificateName {
    /// The name of a certificate in DER with these URIs among its subject alternative names. The standard requires
    /// exactly one URI; if there are several, none is used.
    pub fn of<'a>(der: &[u8], uris: impl IntoIterator<Item = &'a str>) -> Self {
        let mut uris = uris.into_iter();
        if let (Some(uri), None) = (uris.next(), uris.next())
            && let Ok(id) = SpiffeId::parse(uri)
        {
            return Self::SpiffeId(id);
        }
        Self::Sha256(Fingerprint(sha256(&[der])))
    }

    /// The digest under which the certificate is looked up among keys.
    ///
    /// INVARIANT: it begins with a byte that no text contains, so nobody can present the name as a bearer key.
    pub fn digest(&self) -> KeyDigest {
        match self {
            Self::SpiffeId(id) => sha256(&[b"\xffspiffe\0", id.0.as_bytes()]),
            Self::Sha256(fingerprint) => sha256(&[b"\xffsha256\0", &fingerprint.0]),
        }
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpiffeId(SpiffeId(id)) => formatter.write_str(id),
            Self::Sha256(Fingerprint(bytes)) => {
                formatter.write_str("sha256:")?;
                bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
        }
    }
}

impl SpiffeId {
    /// Parses an id; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_ID {
            return Err("a SPIFFE id must not exceed 2048 bytes");
        }
        let rest = text.strip_prefix("spiffe://").ok_or("a SPIFFE id must begin with `spiffe://`")?;
        let (trust_domain, path) = rest.split_once('/').unwrap_or((rest, ""));
        let domain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        if trust_domain.is_empty() || trust_domain.len() > MAX_TRUST_DOMAIN || !trust_domain.bytes().all(domain) {
            return Err(
                "the trust domain of a SPIFFE id must consist of lower-case letters, digits, dots, dashes and underscores",
            );
        }
        if path.is_empty() {
            return Err("a SPIFFE id must have a path, for example `spiffe://example.org/billing`");
        }
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(letter);
        if !path.split('/').all(segment) {
            return Err(
                "each path segment of a SPIFFE id must consist of letters, digits, dots, dashes and underscores",
            );
        }
        Ok(Self(text.to_owned()))
    }
}

impl Fingerprint {
    /// Parses 64 hexadecimal digits, with or without colons between the bytes.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "the SHA-256 of a certificate must be 64 hexadecimal digits, as printed by `openssl x509 -fingerprint -sha256`";
        let mut bytes = [0; 32];
        let digits: String = text.split(':').collect();
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(WRONG);
        }
        for (byte, two) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let two = str::from_utf8(two).map_err(|_| WRONG)?;
            *byte = u8::from_str_radix(two, 16).map_err(|_| WRONG)?;
        }
        Ok(Self(bytes))
    }
}

impl<'de> serde::Deserialize<'de> for SpiffeId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de> serde::Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// The digest of a revoked key whose certificate was registered again: nothing that can be presented has it.
pub fn released_digest(key: KeyId) -> KeyDigest {
    sha256(&[b"\xffreleased\0", key.to_string().as_bytes()])
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::digest_of;

    #[test]
    fn spiffe_ids_have_one_spelling() {
        for id in ["spiffe://example.org/billing", "spiffe://a_b-c.1/ns/x/sa/Y.Z", "spiffe://x/..."] {
            assert_eq!(CertificateName::SpiffeId(SpiffeId::parse(id).unwrap()).to_string(), id);
        }
        let wrong = [
            "",
            "https://example.org/billing",
            "SPIFFE://example.org/billing",
            "spiffe://",
            "spiffe://example.org",
            "spiffe://example.org/",
            "spiffe://Example.org/billing",
            "spiffe://example.org:8443/billing",
            "spiffe://user@example.org/billing",
            "spiffe://example.org/billing/",
            "spiffe://example.org//billing",
            "spiffe://example.org/../billing",
            "spiffe://example.org/bill%69ng",
            "spiffe://example.org/billing?x",
            "spiffe://example.org/billing#x",
        ];
        for id in wrong {
            assert!(SpiffeId::parse(id).is_err(), "{id}");
        }
    }

    #[test]
    fn a_certificate_is_known_by_its_one_spiffe_id_and_otherwise_by_itself() {
        let id = "spiffe://example.org/billing";
        assert_eq!(CertificateName::of(b"der", [id]).to_string(), id);
        let fingerprint = CertificateName::of(b"der", []);
        assert!(fingerprint.to_string().starts_with("sha256:"));
        assert_eq!(CertificateName::of(b"der", [id, "spiffe://example.org/admin"]), fingerprint);
        assert_eq!(CertificateName::of(b"der", ["https://example.org/billing"]), fingerprint);
        assert_ne!(CertificateName::of(b"other", []), fingerprint);
    }

    #[test]
    fn fingerprints_are_read_as_tools_print_them() {
        let printed = CertificateName::of(b"der", []).to_string();
        let plain = printed.strip_prefix("sha256:").unwrap();
        let digits: Vec<char> = plain.to_uppercase().chars().collect();
        let bytes: Vec<String> = digits.chunks(2).map(String::from_iter).collect();
        for text in [plain.to_owned(), bytes.join(":")] {
            assert_eq!(CertificateName::Sha256(Fingerprint::parse(&text).unwrap()).to_string(), printed);
        }
        for wrong in [String::new(), "ab".repeat(31), "ab".repeat(33), "gg".repeat(32)] {
            assert!(Fingerprint::parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_bearer_key_has_the_digest_of_a_certificate() {
        let name = CertificateName::of(b"der", ["spiffe://example.org/billing"]);
        for text in [name.to_string(), format!("\u{ff}spiffe\0{name}"), format!("spiffe\0{name}")] {
            assert_ne!(digest_of(&text), name.digest());
        }
    }
}
