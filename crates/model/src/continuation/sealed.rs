//! Continuations that carry something which only the gate may read: sealed under a key of their own, and bound to the same
//! as every continuation. Each has a number that nobody can guess, by which the gate knows it when it is used a second time.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Bound;
use crate::time::Timestamp;

/// What a sealed continuation begins with.
const PREFIX: &str = "input.";
const NUMBER: usize = 16;
const TIME: usize = 8;

/// Names a sealed continuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContinuationNumber(pub [u8; NUMBER]);

impl ContinuationNumber {
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether a text is written like a sealed continuation.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// Seals and opens.
pub(super) struct Sealing(hmac::Key);

impl Sealing {
    pub(super) fn new(root: &hmac::Key) -> Self {
        let derived = hmac::sign(root, b"toolgate: input of interrupted calls");
        Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }

    pub(super) fn seal(
        &self,
        bound: Bound<'_>,
        number: ContinuationNumber,
        until: Timestamp,
        content: &[u8],
    ) -> Option<String> {
        let time = until.as_millis().to_be_bytes();
        let mut sealed = content.to_vec();
        let aad = Aad::from(text(bound, number, until.as_millis()));
        self.key(number)?.seal_in_place_append_tag(nonce(), aad, &mut sealed).ok()?;
        let written = URL_SAFE_NO_PAD.encode([&number.0, &time[..], &sealed].concat());
        Some(format!("{PREFIX}{written}"))
    }

    pub(super) fn open(
        &self,
        bound: Bound<'_>,
        now: Timestamp,
        written: &str,
    ) -> Option<(ContinuationNumber, Vec<u8>)> {
        let bytes = URL_SAFE_NO_PAD.decode(written.strip_prefix(PREFIX)?).ok()?;
        let (number, rest) = bytes.split_first_chunk::<NUMBER>()?;
        let (time, sealed) = rest.split_first_chunk::<TIME>()?;
        let (number, until) = (ContinuationNumber(*number), i64::from_be_bytes(*time));
        let mut sealed = sealed.to_vec();
        let aad = Aad::from(text(bound, number, until));
        let content = self.key(number)?.open_in_place(nonce(), aad, &mut sealed).ok()?;
        (now.as_millis() < until).then(|| (number, content.to_vec()))
    }

    /// A key for one continuation.
    fn key(&self, number: ContinuationNumber) -> Option<LessSafeKey> {
        let key = hmac::sign(&self.0, &number.0);
        UnboundKey::new(&AES_256_GCM, key.as_ref()).ok().map(LessSafeKey::new)
    }
}

/// INVARIANT: a key seals once, because no two continuations have the same number.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// No part has a line break.
fn text(bound: Bound<'_>, number: ContinuationNumber, until: i64) -> String {
    let Bound { tenant, principal, method, digest } = bound;
    format!("{tenant}\n{principal}\n{method}\n{digest}\n{}\n{until}", number.to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::SigningKey;
    use crate::continuation::Continuations;
    use crate::principal::{PrincipalId, TenantId};

    const NUMBERED: ContinuationNumber = ContinuationNumber([9; NUMBER]);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[test]
    fn a_sealed_continuation_is_opened_only_by_whoever_and_for_what_it_was_sealed() {
        let continuations = Continuations::new(&SigningKey::from_seed(&[7; 32]).unwrap());
        let (tenant, principal) = (TenantId::default_tenant(), PrincipalId::parse("agent").unwrap());
        let bound = Bound { tenant: &tenant, principal: &principal, method: "tools/call", digest: "abc" };
        let sealed = continuations.seal(bound, NUMBERED, at(1000), b"sk_live_in_the_state").unwrap();
        assert!(is_sealed(&sealed));
        let opened = continuations.open(bound, at(999), &sealed);
        assert_eq!(opened, Some((NUMBERED, b"sk_live_in_the_state".to_vec())));
        assert_eq!(continuations.open(bound, at(1000), &sealed), None, "its time is over");

        let (other_tenant, other) = (TenantId::parse("acme").unwrap(), PrincipalId::parse("other").unwrap());
        for wrong in [
            Bound { tenant: &other_tenant, ..bound },
            Bound { principal: &other, ..bound },
            Bound { method: "prompts/get", ..bound },
            Bound { digest: "abd", ..bound },
        ] {
            assert_eq!(continuations.open(wrong, at(1), &sealed), None);
        }
        let another = Continuations::new(&SigningKey::from_seed(&[8; 32]).unwrap());
        assert_eq!(another.open(bound, at(1), &sealed), None);
    }

    #[test]
    fn no_byte_of_a_sealed_continuation_can_be_changed_and_none_of_its_content_be_read() {
        let continuations = Continuations::new(&SigningKey::from_seed(&[7; 32]).unwrap());
        let (tenant, principal) = (TenantId::default_tenant(), PrincipalId::parse("agent").unwrap());
        let bound = Bound { tenant: &tenant, principal: &principal, method: "tools/call", digest: "abc" };
        let sealed = continuations.seal(bound, NUMBERED, at(1000), b"sk_live_in_the_state").unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(PREFIX).unwrap()).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"sk_live"));
        for at_byte in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at_byte] ^= 1;
            let written = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(changed));
            assert_eq!(continuations.open(bound, at(1), &written), None, "byte {at_byte}");
        }
        let cut = sealed.get(..sealed.len() - 4).unwrap();
        for forged in ["", PREFIX, "input.AAAA", cut, &format!("{sealed}-TAMPERED"), &format!("{sealed}AAAA")] {
            assert_eq!(continuations.open(bound, at(1), forged), None, "{forged}");
        }
        let approval = continuations.write(bound, crate::id::InvocationId::new(at(1), [9; 10]), at(1000));
        assert!(!is_sealed(&approval));
        assert_eq!(continuations.open(bound, at(1), &approval), None);
    }
}
