//! Master keys in the memory of this process: the current one, and older ones that may still unwrap. The file and the
//! environment provider differ only in the origin of their keyring.

use std::collections::BTreeMap;
use std::fmt::Write;

use toolgate_gate::ports::sealer::MasterKeyId;

use crate::key_provider::{KeyError, WrappedKey};
use crate::symmetric_key::SymmetricKey;

/// INVARIANT: the current key is one of the keys, and every key is stored under its own id.
pub(super) struct Keyring {
    current: MasterKeyId,
    keys: BTreeMap<MasterKeyId, SymmetricKey>,
}

impl Keyring {
    pub(super) fn new(key: SymmetricKey) -> Self {
        let current = id_of(&key);
        Self { keys: BTreeMap::from([(current.clone(), key)]), current }
    }

    /// Adds a key for unwrapping only.
    pub(super) fn add(&mut self, key: SymmetricKey) {
        self.keys.insert(id_of(&key), key);
    }

    /// Adds a key and makes it current.
    pub(super) fn renew(&mut self, key: SymmetricKey) {
        self.current = id_of(&key);
        self.add(key);
    }

    /// Makes a key of the ring current; returns false if it is not in the ring.
    pub(super) fn make_current(&mut self, id: &str) -> bool {
        match self.keys.get_key_value(&MasterKeyId(id.to_owned())) {
            Some((id, _)) => {
                self.current = id.clone();
                true
            }
            None => false,
        }
    }

    /// Removes a key; refuses the current one.
    pub(super) fn remove(&mut self, id: &MasterKeyId) -> Result<(), KeyError> {
        if *id == self.current {
            return Err(KeyError::failed(format!(
                "master key {} is the current one and cannot be removed; create a new master key first",
                id.0
            )));
        }
        self.keys.remove(id);
        Ok(())
    }

    pub(super) fn current(&self) -> &MasterKeyId {
        &self.current
    }

    pub(super) fn holds(&self, id: &MasterKeyId) -> bool {
        self.keys.contains_key(id)
    }

    /// All keys, ordered by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&MasterKeyId, &SymmetricKey)> {
        self.keys.iter()
    }

    /// Wraps under the current key.
    pub(super) fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError> {
        let bytes = self.key(&self.current)?.seal(context.as_bytes(), data_key.expose())?;
        Ok(WrappedKey { key: self.current.clone(), bytes })
    }

    pub(super) fn unwrap(&self, id: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError> {
        let opened = self.key(id)?.open(context.as_bytes(), wrapped).ok_or(KeyError::Unauthentic)?;
        SymmetricKey::from_slice(&opened).ok_or(KeyError::Unauthentic)
    }

    fn key(&self, id: &MasterKeyId) -> Result<&SymmetricKey, KeyError> {
        self.keys.get(id).ok_or_else(|| KeyError::Missing { key: id.clone() })
    }
}

/// The id of a master key: 64 bits of a digest, enough to tell keys apart and useless for recovering one.
pub(super) fn id_of(key: &SymmetricKey) -> MasterKeyId {
    let digest = key.fingerprint(b"toolgate master key id v1\0");
    let mut id = String::from("mk_");
    for byte in digest.as_ref().iter().take(8) {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    MasterKeyId(id)
}
