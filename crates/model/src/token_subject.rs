//! Subjects of access tokens as identities. A subject is unique only together with the issuer that gave it; both are
//! compared byte for byte, because issuers disagree about what else would be the same.

use std::fmt;

use crate::key::KeyDigest;
use crate::merkle::sha256;

/// The maximum length of an issuer and of a subject, in bytes.
const MAX_LENGTH: usize = 512;

/// The bearer of a token, as its issuer names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSubject {
    pub issuer: IssuerUrl,
    pub subject: SubjectName,
}

/// The URL that an issuer writes into its tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct IssuerUrl(String);

/// The value of the claim that names the bearer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct SubjectName(String);

impl TokenSubject {
    /// The digest under which the subject is looked up among keys.
    ///
    /// INVARIANT: it begins with a byte that no text contains, so nobody can present the subject as a bearer key; and
    /// neither part contains a null byte, so no two subjects have the same bytes.
    pub fn digest(&self) -> KeyDigest {
        let parts: [&[u8]; 4] = [b"\xfftoken\0", self.issuer.0.as_bytes(), b"\0", self.subject.0.as_bytes()];
        *sha256(&parts.concat()).as_bytes()
    }
}

impl fmt::Display for TokenSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.issuer.0, self.subject.0)
    }
}

impl IssuerUrl {
    /// Parses a URL; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if host.is_empty() || host.contains('@') {
            return Err("an issuer must be an http or https URL without a user name");
        }
        if text.len() > MAX_LENGTH {
            return Err("an issuer must not exceed 512 bytes");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains(['?', '#', '"', '\\']) {
            return Err("an issuer must be written without query, fragment, quotation marks and spaces");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IssuerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl SubjectName {
    /// Parses a name; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > MAX_LENGTH {
            return Err("a subject must have 1 to 512 bytes");
        }
        if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) || text.trim() != text {
            return Err("a subject must consist of printable ASCII characters, without spaces at its ends");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> serde::Deserialize<'de> for IssuerUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl<'de> serde::Deserialize<'de> for SubjectName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::digest_of;

    fn subject(issuer: &str, subject: &str) -> TokenSubject {
        TokenSubject { issuer: IssuerUrl::parse(issuer).unwrap(), subject: SubjectName::parse(subject).unwrap() }
    }

    #[test]
    fn issuers_and_subjects_that_could_be_read_in_two_ways_are_refused() {
        for issuer in ["https://login.example.com", "https://login.example.com/t/1/", "http://127.0.0.1:4000"] {
            assert_eq!(IssuerUrl::parse(issuer).unwrap().as_str(), issuer);
        }
        for wrong in ["", "login.example.com", "https://", "https:///a", "https://a@b", "https://a?b", "https://a#b"] {
            assert!(IssuerUrl::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["https://a b", "https://a\n", "https://ä", "https://a\"b", &format!("https://{}", "a".repeat(512))]
        {
            assert!(IssuerUrl::parse(wrong).is_err(), "{wrong}");
        }
        for name in ["system:serviceaccount:prod:billing", "auth0|5f7c8ec7", "ann@example.com", "two words"] {
            assert_eq!(SubjectName::parse(name).unwrap().as_str(), name);
        }
        for wrong in ["", " ann", "ann ", "a\0b", "a\nb", "аnn", &"a".repeat(513)] {
            assert!(SubjectName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_two_subjects_and_no_bearer_key_have_the_same_digest() {
        let one = subject("https://a.example", "b");
        assert_ne!(one.digest(), subject("https://a.example/b", "b").digest());
        assert_ne!(one.digest(), subject("https://a.example", "B").digest());
        assert_ne!(one.digest(), subject("https://a.exampleb", "b").digest());
        for text in [one.to_string(), format!("\u{ff}token\0{one}"), "token\0https://a.example\0b".to_owned()] {
            assert_ne!(digest_of(&text), one.digest());
        }
    }
}
