//! Secrets in memory. A [`Secret`] is wiped when it is dropped and cannot be printed, serialized, cloned or compared by
//! accident; code that needs the bytes calls [`Secret::expose`].

use std::collections::BTreeMap;

use zeroize::{Zeroize, Zeroizing};

/// One piece of authentication material.
///
/// INVARIANT: implements none of `Debug`, `Display`, `Serialize`, `Clone`, `PartialEq`.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of the text; the caller must wipe any copy.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself. Review every caller.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The secret fields of one credential version, by name (`api_key`, `password`, ...).
///
/// INVARIANT: implements none of `Debug`, `Display`, `Serialize`, `Clone`, `PartialEq`.
#[derive(Default)]
pub struct Material(BTreeMap<String, Secret>);

impl Material {
    /// Empty: for a credential without a secret so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field; returns false, and changes nothing, if the name exists.
    pub fn insert(&mut self, name: String, secret: Secret) -> bool {
        match self.0.entry(name) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(secret);
                true
            }
            std::collections::btree_map::Entry::Occupied(_) => false,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.0.get(name)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields, which are not secret.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Names and secrets, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, secret)| (name.as_str(), secret))
    }

    /// The plaintext to seal: a JSON object of the fields, in a buffer that is wiped when dropped.
    pub fn to_plaintext(&self) -> Zeroizing<Vec<u8>> {
        // Allocated once: a reallocation would leave an unwiped copy behind. Escaping grows a byte at most sixfold.
        let bound = self.0.iter().map(|(name, secret)| 6 * (name.len() + secret.0.len()) + 8).sum::<usize>() + 2;
        let mut plaintext = Zeroizing::new(Vec::with_capacity(bound));
        plaintext.push(b'{');
        for (position, (name, secret)) in self.0.iter().enumerate() {
            if position > 0 {
                plaintext.push(b',');
            }
            crate::canonical::write_string(name, &mut plaintext);
            plaintext.push(b':');
            crate::canonical::write_string(secret.expose(), &mut plaintext);
        }
        plaintext.push(b'}');
        plaintext
    }

    /// Parses [`Material::to_plaintext`]; `None` for any other bytes.
    pub fn from_plaintext(plaintext: &[u8]) -> Option<Self> {
        let mut fields: BTreeMap<String, String> = serde_json::from_slice(plaintext).ok()?;
        let material =
            fields.iter_mut().map(|(name, text)| (name.clone(), Secret::new(std::mem::take(text)))).collect();
        fields.values_mut().for_each(Zeroize::zeroize);
        Some(Self(material))
    }
}
