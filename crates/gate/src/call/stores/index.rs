//! The key of a store's index: words, labels, keys and owners are only stored as keyed hashes. Without the key nobody can
//! tell what they stand for, and with the store the key is destroyed.

use aws_lc_rs::hmac;
use serde_json::Value;
use toolgate_model::secret::{Material, Secret};

use crate::ports::entropy::{EntropyError, random};
use crate::ports::ledger::Partition;

/// The field of sealed material that holds the key, in hexadecimal.
const FIELD: &str = "index_key";
const LENGTH: usize = 32;

/// An unsealed key, for one call.
pub(crate) struct IndexKey(hmac::Key);

impl IndexKey {
    /// The material of a new key.
    pub(crate) fn new_material() -> Result<Material, EntropyError> {
        let bytes: [u8; LENGTH] = random()?;
        let mut material = Material::new();
        material.insert(FIELD.to_owned(), Secret::new(hex(&bytes)));
        Ok(material)
    }

    pub(super) fn of_material(material: &Material) -> Option<Self> {
        let text = material.get(FIELD)?.expose();
        (text.len() == 2 * LENGTH).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// The partition of this owner.
    pub(crate) fn partition(&self, owner: &Value) -> Partition {
        Partition(self.text("partition", "", &owner.to_string()))
    }

    /// The keyed hash of a key that a writer gave an entry.
    pub(super) fn hash(&self, partition: &Partition, key: &str) -> String {
        self.text("key", &partition.0, key)
    }

    /// The number of a word in a partition: in another one, the same word has another number.
    pub(super) fn word(&self, partition: &Partition, word: &str) -> i64 {
        self.number("word", partition, word)
    }

    pub(super) fn label(&self, partition: &Partition, label: &str) -> i64 {
        self.number("label", partition, label)
    }

    fn number(&self, kind: &str, partition: &Partition, text: &str) -> i64 {
        let tag = self.tag(kind, &partition.0, text);
        let first = tag.as_ref().first_chunk::<8>().copied().unwrap_or_default();
        i64::from_be_bytes(first)
    }

    fn text(&self, kind: &str, partition: &str, text: &str) -> String {
        let tag = self.tag(kind, partition, text);
        hex(tag.as_ref().first_chunk::<16>().copied().unwrap_or_default().as_slice())
    }

    fn tag(&self, kind: &str, partition: &str, text: &str) -> hmac::Tag {
        // INVARIANT: neither kinds nor partitions contain a line end.
        hmac::sign(&self.0, format!("{kind}\n{partition}\n{text}").as_bytes())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_follow_from_the_key_the_partition_and_the_text() {
        let key = IndexKey::of_material(&IndexKey::new_material().unwrap()).unwrap();
        let other = IndexKey::of_material(&IndexKey::new_material().unwrap()).unwrap();
        let (one, two) = (key.partition(&json!(["agent", "a"])), key.partition(&json!(["agent", "b"])));
        assert_ne!(one, two);
        assert_eq!(key.word(&one, "zebra"), key.word(&one, "zebra"));
        assert_ne!(key.word(&one, "zebra"), key.word(&two, "zebra"), "another partition");
        assert_ne!(key.word(&one, "zebra"), key.label(&one, "zebra"), "a label is no word");
        assert_ne!(key.word(&one, "zebra"), other.word(&one, "zebra"), "another store");
        assert_ne!(key.hash(&one, "k"), key.hash(&two, "k"));
    }
}
