//! What a client sends back to go on with a call that was interrupted for its user. The client can read and change it, so it
//! carries a keyed hash over everything that it is bound to: the principal, the method, the arguments and a time.

use aws_lc_rs::hmac;

use crate::checkpoint::SigningKey;
use crate::id::InvocationId;
use crate::principal::{PrincipalId, TenantId};
use crate::time::Timestamp;

use self::sealed::Sealing;

pub use self::sealed::{ContinuationNumber, is_sealed};

mod sealed;

/// Writes and reads continuations.
///
/// INVARIANT: implements none of `Debug`, `Clone`, `Serialize`; no caller has its keys.
pub struct Continuations {
    tags: hmac::Key,
    sealing: Sealing,
}

/// What a continuation is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound<'a> {
    pub tenant: &'a TenantId,
    pub principal: &'a PrincipalId,
    pub method: &'a str,
    /// The digest of the tool and its arguments.
    pub digest: &'a str,
}

impl Continuations {
    /// With a key that follows from the one that signs the log, so that all replicas read what one has written.
    pub fn new(key: &SigningKey) -> Self {
        let root = hmac::Key::new(hmac::HMAC_SHA256, key.expose_seed());
        let derived = hmac::sign(&root, b"toolgate: continuations of interrupted calls");
        Self { tags: hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()), sealing: Sealing::new(&root) }
    }

    /// A continuation with content that only the gate reads. Nobody may be able to guess its number.
    pub fn seal(
        &self,
        bound: Bound<'_>,
        number: ContinuationNumber,
        until: Timestamp,
        content: &[u8],
    ) -> Option<String> {
        self.sealing.seal(bound, number, until, content)
    }

    /// The number and the content; `None` where the text was not sealed for exactly this, or its time is over.
    pub fn open(&self, bound: Bound<'_>, now: Timestamp, sealed: &str) -> Option<(ContinuationNumber, Vec<u8>)> {
        self.sealing.open(bound, now, sealed)
    }

    /// A continuation of this call, until this time.
    pub fn write(&self, bound: Bound<'_>, call: InvocationId, until: Timestamp) -> String {
        let until = until.as_millis();
        let tag = hmac::sign(&self.tags, text(bound, call, until).as_bytes());
        let tag: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{call}.{until}.{tag}")
    }

    /// The call that is to be continued; `None` where the text was not written for exactly this, or its time is over.
    pub fn read(&self, bound: Bound<'_>, now: Timestamp, continuation: &str) -> Option<InvocationId> {
        let mut parts = continuation.split('.');
        let (call, until, tag) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let (call, until): (InvocationId, i64) = (InvocationId::parse(call).ok()?, until.parse().ok()?);
        hmac::verify(&self.tags, text(bound, call, until).as_bytes(), &bytes(tag)?).ok()?;
        (now.as_millis() < until).then_some(call)
    }
}

/// No part has a line break.
fn text(bound: Bound<'_>, call: InvocationId, until: i64) -> String {
    let Bound { tenant, principal, method, digest } = bound;
    format!("{tenant}\n{principal}\n{method}\n{digest}\n{call}\n{until}")
}

fn bytes(hexadecimal: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = hexadecimal.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[test]
    fn a_continuation_is_read_only_by_whoever_and_for_what_it_was_written() {
        let continuations = Continuations::new(&SigningKey::from_seed(&[7; 32]).unwrap());
        let (tenant, principal) = (TenantId::default_tenant(), PrincipalId::parse("agent").unwrap());
        let bound = Bound { tenant: &tenant, principal: &principal, method: "tools/call", digest: "abc" };
        let call = InvocationId::new(at(1), [9; 10]);
        let written = continuations.write(bound, call, at(1000));
        assert_eq!(continuations.read(bound, at(999), &written), Some(call));
        assert_eq!(continuations.read(bound, at(1000), &written), None, "its time is over");

        let (other_tenant, other) = (TenantId::parse("acme").unwrap(), PrincipalId::parse("other").unwrap());
        for wrong in [
            Bound { tenant: &other_tenant, ..bound },
            Bound { principal: &other, ..bound },
            Bound { method: "prompts/get", ..bound },
            Bound { digest: "abd", ..bound },
        ] {
            assert_eq!(continuations.read(wrong, at(1), &written), None);
        }
        let later = written.replace(".1000.", ".2000.");
        let other_call = written.replace(&call.to_string(), &InvocationId::new(at(2), [9; 10]).to_string());
        let cut = written.get(..written.len() - 2).unwrap();
        for forged in [later.as_str(), other_call.as_str(), cut, "", "a.b.c", &format!("{written}.x")] {
            assert_eq!(continuations.read(bound, at(1), forged), None, "{forged}");
        }
        let another = Continuations::new(&SigningKey::from_seed(&[8; 32]).unwrap());
        assert_eq!(another.read(bound, at(1), &written), None);
    }
}
