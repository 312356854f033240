//! Identifiers: a prefix for the kind of object, then a UUIDv7 in Crockford's base 32, so that ids sort by creation
//! time and look like the ids of the protocol documents (`grant_01K9...`).
//!
//! Readers must treat ids as opaque: only equality and order have a meaning.

use std::fmt;

use thiserror::Error;
use uuid::{Builder, Uuid};

use crate::time::Timestamp;

/// Random bytes of an id besides its time.
pub type IdEntropy = [u8; 10];

/// The same randomness after a 12-bit number, which orders ids of one millisecond.
pub fn numbered(number: u16, mut entropy: IdEntropy) -> IdEntropy {
    let [high, low, ..] = &mut entropy;
    [*high, *low] = number.to_be_bytes();
    entropy
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("must be a {prefix} id: {prefix}_ followed by 26 letters and digits")]
pub struct IdError {
    prefix: &'static str,
}

/// The text of an id, without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdText {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

impl IdText {
    const LONGEST: usize = "standing_".len() + DIGITS;

    fn new(text: &[u8]) -> Self {
        let mut bytes = [0; Self::LONGEST];
        // INVARIANT: no prefix is longer than `standing`; a test creates an id of each kind.
        for (byte, of_text) in bytes.iter_mut().zip(text) {
            *byte = *of_text;
        }
        Self { bytes, length: u8::try_from(text.len().min(Self::LONGEST)).unwrap_or(0) }
    }

    pub fn as_str(&self) -> &str {
        let text = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Debug for IdText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// The id for an object created at `time`.
            pub fn new(time: Timestamp, entropy: IdEntropy) -> Self {
                Self(uuid_v7(time, entropy))
            }

            /// The creation time.
            pub fn time(self) -> Timestamp {
                let millis = self.0.as_u128() >> 80;
                i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millis(millis).ok()).unwrap_or(Timestamp::EPOCH)
            }

            pub fn parse(text: &str) -> Result<Self, IdError> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(decode)
                    .map(Self)
                    .ok_or(IdError { prefix: $prefix })
            }
        }

        impl From<$name> for IdText {
            fn from(id: $name) -> Self {
                Self::new(&id.text())
            }
        }

        impl $name {
            const LENGTH: usize = concat!($prefix, "_").len() + DIGITS;

            // INVARIANT: prefixes and digits are ASCII and need no escaping in JSON.
            fn text(self) -> [u8; Self::LENGTH] {
                encode(concat!($prefix, "_"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(std::str::from_utf8(&self.text()).unwrap_or_default())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    VaultId = "vault";
    CredentialId = "cred";
    GrantId = "grant";
    /// A key of a principal: not the key itself, but the id under which it is listed and revoked.
    KeyId = "key";
    /// An event of the audit log.
    EventId = "evt";
    /// A call, and its record.
    InvocationId = "inv";
    /// A multi-step use of a tool.
    SessionId = "session";
    /// An approval of one call.
    ApprovalId = "appr";
    /// A decision that also covers later calls.
    StandingApprovalId = "standing";
    /// One run of a gate process.
    ProcessId = "process";
    IntentId = "intent";
    PlanId = "plan";
    TaskId = "task";
    LeaseId = "lease";
    /// A store: of memory, or a collection of documents.
    StoreId = "store";
    /// A text in a store: an entry of a memory, or a chunk of a document.
    ItemId = "item";
    /// One ingestion of a document.
    RevisionId = "rev";
    CoordinatorId = "coord";
    /// A cost that an agent has recorded.
    CostId = "cost";
}

impl InvocationId {
    /// The smallest id of this time: no call of the time has a smaller one, and every earlier id is smaller.
    pub fn first_at(time: Timestamp) -> Self {
        let millis = u128::try_from(time.as_millis()).unwrap_or(0);
        Self(Uuid::from_u128(millis << 80))
    }

    pub fn bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    /// The second half, which is random except for two bits and never zero.
    pub fn low_bytes(self) -> [u8; 8] {
        self.0.as_u64_pair().1.to_be_bytes()
    }
}

impl EventId {
    /// The event of a call that is about to be made: later events can name it without having read it.
    pub fn of_call(call: InvocationId) -> Self {
        Self(call.0)
    }
}

/// The number of 5-bit digits of a UUID.
const DIGITS: usize = 26;
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

fn uuid_v7(time: Timestamp, entropy: IdEntropy) -> Uuid {
    let millis = u64::try_from(time.as_millis()).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &entropy).into_uuid()
}

/// Writes the whole text at once: a call writes many ids.
fn encode<const LENGTH: usize>(prefix: &str, uuid: Uuid) -> [u8; LENGTH] {
    let mut text = [b'0'; LENGTH];
    for (place, letter) in text.iter_mut().zip(prefix.bytes()) {
        *place = letter;
    }
    let mut bits = uuid.as_u128();
    // From the last digit to the first.
    for place in text.iter_mut().rev().take(DIGITS) {
        let digit = usize::try_from(bits & 31).unwrap_or(0);
        *place = ALPHABET.get(digit).copied().unwrap_or(b'0');
        bits >>= 5;
    }
    text
}

fn decode(text: &str) -> Option<Uuid> {
    if text.len() != DIGITS {
        return None;
    }
    let mut bits: u128 = 0;
    for (position, byte) in text.bytes().enumerate() {
        let digit = ALPHABET.iter().position(|&letter| letter == byte)?;
        // 26 digits have 130 bits: the first may use only three of them.
        if position == 0 && digit > 7 {
            return None;
        }
        bits = (bits << 5) | u128::try_from(digit).ok()?;
    }
    Some(Uuid::from_u128(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_millisecond_are_in_the_order_of_their_numbers() {
        let time = Timestamp::from_millis(1_770_544_800_000).unwrap();
        let ids: Vec<_> = (0..4096).map(|number| GrantId::new(time, numbered(number, [255; 10]))).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|id| id.time() == time));
    }

    #[test]
    fn an_id_reads_back_from_its_text() {
        let id = GrantId::new(Timestamp::from_millis(1_770_544_800_000).unwrap(), [7; 10]);
        assert_eq!(GrantId::parse(&id.to_string()), Ok(id));
        assert!(id.to_string().starts_with("grant_01"));
    }

    #[test]
    fn later_ids_sort_after_earlier_ones_in_text_too() {
        let early = VaultId::new(Timestamp::from_millis(1_000).unwrap(), [255; 10]);
        let late = VaultId::new(Timestamp::from_millis(1_001).unwrap(), [0; 10]);
        assert!(early < late);
        assert!(early.to_string() < late.to_string());
    }

    #[test]
    fn another_kind_a_wrong_length_and_a_foreign_letter_are_refused() {
        let id = VaultId::new(Timestamp::from_millis(5).unwrap(), [1; 10]).to_string();
        assert!(GrantId::parse(&id).is_err());
        for bad in ["vault_", "vault_01", "", "vault_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "vault_0l000000000000000000000000"] {
            assert!(VaultId::parse(bad).is_err(), "{bad}");
        }
    }
}
