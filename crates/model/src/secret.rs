//! Secrets in memory. A [`Secret`] is wiped when it is dropped and cannot be printed, serialised, cloned or compared by
//! accident; whoever needs the bytes says so with [`Secret::expose`].

use std::collections::BTreeMap;

use zeroize::{Zeroize, Zeroizing};

/// One piece of authentication material.
///
/// INVARIANT: implements none of `Debug`, `Display`, `Serialize`, `Clone`, `PartialEq`.
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over; the caller's copy, if it kept one, is the caller's to wipe.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself. Every call of this is a place to look at in a review.
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
    /// No fields: a credential whose secret is still to come.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field; answers false, and changes nothing, where the name is taken.
    pub fn insert(&mut self, name: String, secret: Secret) -> bool {
        match self.0.entry(name) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(secret);
                true
            }
            std::collections::btree_map::Entry::Occupied(_) => false,
        }
    }

    /// The field of this name.
    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.0.get(name)
    }

    /// Whether there is no field at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the fields, which are no secret.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Names and secrets, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, secret)| (name.as_str(), secret))
    }

    /// The plaintext that is sealed: a JSON object of the fields, in a buffer that is wiped when dropped.
    pub fn to_plaintext(&self) -> Zeroizing<Vec<u8>> {
        // Grown once: a reallocation would leave an unwiped copy behind. Escaping at most sextuples a byte.
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

    /// Reads [`Material::to_plaintext`] back; `None` when these bytes never came from it.
    pub fn from_plaintext(plaintext: &[u8]) -> Option<Self> {
        let mut fields: BTreeMap<String, String> = serde_json::from_slice(plaintext).ok()?;
        let material =
            fields.iter_mut().map(|(name, text)| (name.clone(), Secret::new(std::mem::take(text)))).collect();
        fields.values_mut().for_each(Zeroize::zeroize);
        Some(Self(material))
    }
}
