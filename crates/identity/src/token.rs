//! A token that is taken apart and not verified. Header and claims are read strictly, so that no two readers can see
//! different ones in the bytes that the issuer signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::strict_json;

/// The longest token that is looked at. Those of large directories, with many groups, have some 8 KiB.
pub(crate) const MAX_TOKEN: usize = 16 * 1024;

/// The longest id of a key.
const MAX_KEY_ID: usize = 256;

/// A token in its parts.
pub(crate) struct UnverifiedToken<'a> {
    pub(crate) header: Header,
    pub(crate) claims: Map<String, Value>,
    /// What is signed: header and claims as they were sent.
    pub(crate) signed: &'a str,
    pub(crate) signature: &'a str,
}

/// The members of the header that are used. Keys, and addresses of keys, in a header are not: the author of the
/// token chooses them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) algorithm: String,
    pub(crate) key_id: Option<String>,
}

/// Whether a text has the form of a signed token: three parts in base64url, of which the first begins as a JSON object.
pub(crate) fn has_form(text: &str) -> bool {
    let is_part = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    text.starts_with("ey") && text.split('.').count() == 3 && text.split('.').all(is_part)
}

impl<'a> UnverifiedToken<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Refusal> {
        if text.len() > MAX_TOKEN {
            return Err(invalid(&format!("it exceeds {MAX_TOKEN} bytes")));
        }
        let parts =
            text.rsplit_once('.').and_then(|(signed, signature)| Some((signed, signature, signed.split_once('.')?)));
        let (signed, signature, (header, claims)) = parts.ok_or_else(|| invalid("it does not have three parts"))?;
        let header = Header::read(&object(header)?)?;
        Ok(Self { header, claims: object(claims)?, signed, signature })
    }

    /// The claim `iss`.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }
}

impl Header {
    fn read(header: &Map<String, Value>) -> Result<Self, Refusal> {
        let text = |name: &str| match header.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(invalid(&format!("`{name}` in its header is not a string"))),
        };
        // `crit` requires a refusal by verifiers that do not support what it lists; nothing is supported here.
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(invalid("its header lists critical extensions, none of which is supported"));
        }
        let kind = text("typ")?;
        let accepted = ["JWT", "at+jwt", "application/jwt", "application/at+jwt"];
        if kind.is_some_and(|kind| !accepted.iter().any(|accepted| kind.eq_ignore_ascii_case(accepted))) {
            return Err(invalid("`typ` in its header is neither at+jwt nor JWT; send an access token"));
        }
        let algorithm = text("alg")?.ok_or_else(|| invalid("its header has no `alg`"))?.to_owned();
        let key_id = text("kid")?.map(str::to_owned);
        if key_id.as_ref().is_some_and(|id| id.len() > MAX_KEY_ID) {
            return Err(invalid("`kid` in its header is too long"));
        }
        Ok(Self { algorithm, key_id })
    }
}

/// The refusal of a token, for a reason that does not quote it.
pub(crate) fn invalid(reason: &str) -> Refusal {
    Refusal::new(Code::TokenInvalid, format!("the access token is not valid: {reason}"))
}

fn object(part: &str) -> Result<Map<String, Value>, Refusal> {
    let unreadable = || invalid("its header and claims must be JSON objects without duplicate members, in base64url");
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| unreadable())?;
    match strict_json::parse(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(unreadable()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str) -> String {
        URL_SAFE_NO_PAD.encode(text)
    }

    fn token(header: &str, claims: &str) -> String {
        format!("{}.{}.c2ln", encoded(header), encoded(claims))
    }

    #[test]
    fn keys_of_the_gate_do_not_have_the_form_of_a_token() {
        for text in ["tgk_0123456789", "token-of-the-administrator", "ey.a", "ey.a.b.c", "ey.a!.b", "a.b.c", ""] {
            assert!(!has_form(text), "{text}");
        }
        assert!(has_form(&token("{\"alg\":\"none\"}", "{}")) && has_form(&token("{ \"alg\":\"none\"}", "{}")));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        let fine = "{\"alg\":\"RS256\"}";
        for (header, claims) in [
            ("{\"alg\":\"RS256\",\"alg\":\"none\"}", "{}"),
            (fine, "{\"sub\":\"a\",\"sub\":\"b\"}"),
            (fine, "[]"),
            (fine, "{} {}"),
            (fine, "{\"exp\":1e999}"),
            ("{}", "{}"),
            ("{\"alg\":1}", "{}"),
            ("{\"alg\":\"RS256\",\"kid\":1}", "{}"),
            ("{\"alg\":\"RS256\",\"crit\":[\"exp\"]}", "{}"),
            ("{\"alg\":\"RS256\",\"b64\":false}", "{}"),
            ("{\"alg\":\"RS256\",\"typ\":\"dpop+jwt\"}", "{}"),
            ("{\"alg\":\"RS256\",\"typ\":\"logout+jwt\"}", "{}"),
        ] {
            let text = token(header, claims);
            let refusal = UnverifiedToken::parse(&text).err().unwrap();
            assert_eq!(refusal.code(), Code::TokenInvalid, "{header} {claims}");
        }
        let text = token("{\"alg\":\"RS256\",\"typ\":\"AT+JWT\",\"kid\":\"1\",\"jku\":\"https://evil.example\"}", "{}");
        let header = UnverifiedToken::parse(&text).ok().unwrap().header;
        assert_eq!(header, Header { algorithm: "RS256".to_owned(), key_id: Some("1".to_owned()) });
    }

    #[test]
    fn padding_line_breaks_and_giants_are_refused() {
        let fine = token("{\"alg\":\"RS256\"}", "{}");
        assert!(UnverifiedToken::parse(&fine).is_ok());
        for wrong in
            [fine.replacen('.', "=.", 1), fine.replacen('.', "\n.", 1), format!("{fine}{}", "A".repeat(MAX_TOKEN))]
        {
            assert!(UnverifiedToken::parse(&wrong).is_err());
        }
    }
}
