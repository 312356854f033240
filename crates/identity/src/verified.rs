//! Tokens that were verified, by their digest, so that a call does not cost a signature. Bounded: when it is full, the
//! entries that were not used since it was last full are dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_gate::ports::tokens::VerifiedToken;
use toolgate_model::key::KeyDigest;

use crate::issuer_keys::KeySetVersion;

/// The maximum number of entries used since the table was last full.
const CAPACITY: usize = 8192;

#[derive(Default)]
pub(crate) struct VerifiedTokens(Mutex<Tables>);

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) token: Arc<VerifiedToken>,
    /// The position of its issuer.
    pub(crate) issuer: usize,
    /// The keys that verified it.
    pub(crate) version: KeySetVersion,
}

#[derive(Default)]
struct Tables {
    recent: HashMap<KeyDigest, Entry>,
    older: HashMap<KeyDigest, Entry>,
}

impl VerifiedTokens {
    pub(crate) fn get(&self, digest: &KeyDigest) -> Option<Entry> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = tables.recent.get(digest) {
            return Some(entry.clone());
        }
        let entry = tables.older.remove(digest)?;
        tables.put(*digest, entry.clone());
        Some(entry)
    }

    pub(crate) fn put(&self, digest: KeyDigest, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(digest, entry);
    }

    pub(crate) fn remove(&self, digest: &KeyDigest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recent.remove(digest);
    }
}

impl Tables {
    fn put(&mut self, digest: KeyDigest, entry: Entry) {
        if self.recent.len() >= CAPACITY && !self.recent.contains_key(&digest) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(digest, entry);
    }
}

#[cfg(test)]
mod tests {
    use toolgate_model::merkle::sha256;
    use toolgate_model::principal::TenantId;
    use toolgate_model::time::Timestamp;
    use toolgate_model::token_subject::{IssuerUrl, SubjectName, TokenSubject};

    use super::*;

    fn digest(number: usize) -> KeyDigest {
        *sha256(&number.to_be_bytes()).as_bytes()
    }

    #[test]
    fn a_flood_of_tokens_takes_no_memory_and_drops_no_token_in_use() {
        let subject = TokenSubject {
            issuer: IssuerUrl::parse("https://login.example.com").unwrap(),
            subject: SubjectName::parse("ann").unwrap(),
        };
        let ends_at = Timestamp::from_millis(0).unwrap();
        let tenant = TenantId::default_tenant();
        let token = Arc::new(VerifiedToken { identity: subject.digest(), subject, tenant, ends_at });
        let entry = Entry { token, issuer: 0, version: KeySetVersion::of(b"") };
        let verified = VerifiedTokens::default();
        verified.put(digest(0), entry.clone());
        for number in 1..3 * CAPACITY {
            verified.put(digest(number), entry.clone());
            if number % 1000 == 0 {
                assert!(verified.get(&digest(0)).is_some(), "{number}");
            }
        }
        let tables = verified.0.lock().unwrap();
        assert!(tables.recent.len() + tables.older.len() <= 2 * CAPACITY);
    }
}
