//! The envelope: the layout of material under its data key, and what it is bound to.
//!
//! One data key seals one credential version, once. The stored bytes begin with a format byte, so that a later format
//! can be distinguished.

use std::fmt::Write;

use toolgate_gate::ports::sealer::{SealBinding, SealSubject};
use toolgate_model::secret::Material;
use zeroize::Zeroizing;

use crate::key_provider::KeyError;
use crate::symmetric_key::SymmetricKey;

/// The purpose in the associated data, so that a wrapped key never passes as material.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The fields of a credential version, under the data key.
    Material,
    /// The data key, under the master key.
    DataKey,
}

/// The canonical JSON that is authenticated with everything sealed for this binding.
///
/// INVARIANT: this text never changes for a stored row; a new form needs a new format byte.
pub(crate) fn associated_data(binding: &SealBinding, purpose: Purpose) -> String {
    let tenant = &binding.tenant;
    let purpose = match purpose {
        Purpose::Material => "material",
        Purpose::DataKey => "data-key",
    };
    // Already canonical: the names are sorted, and neither ids nor tenant names contain characters to escape.
    let mut text = String::with_capacity(256);
    let written = match binding.subject {
        SealSubject::Credential { id, version } => write!(
            text,
            r#"{{"alg":"AES-256-GCM","credential":"{id}","purpose":"{purpose}","tenant":"{tenant}","version":{version}}}"#
        ),
        SealSubject::Call { id, part } => write!(
            text,
            r#"{{"alg":"AES-256-GCM","call":"{id}","part":"{}","purpose":"{purpose}","tenant":"{tenant}"}}"#,
            part.as_str()
        ),
        SealSubject::Store { id } => {
            write!(text, r#"{{"alg":"AES-256-GCM","purpose":"{purpose}","store":"{id}","tenant":"{tenant}"}}"#)
        }
        SealSubject::Item { id } => {
            write!(text, r#"{{"alg":"AES-256-GCM","item":"{id}","purpose":"{purpose}","tenant":"{tenant}"}}"#)
        }
    };
    // INVARIANT: writing to a String cannot fail.
    debug_assert!(written.is_ok());
    text
}

/// Seals material under its data key. The layout is format, nonce, ciphertext, tag.
pub(crate) fn seal_material(
    data_key: &SymmetricKey,
    binding: &SealBinding,
    material: &Material,
) -> Result<Vec<u8>, KeyError> {
    let associated_data = associated_data(binding, Purpose::Material);
    Ok(with_format(&data_key.seal(associated_data.as_bytes(), &material.to_plaintext())?))
}

/// Opens the output of [`seal_material`] for the same binding; `None` for anything else.
pub(crate) fn open_material(
    data_key: &SymmetricKey,
    binding: &SealBinding,
    ciphertext: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let associated_data = associated_data(binding, Purpose::Material);
    data_key.open(associated_data.as_bytes(), without_format(ciphertext)?)
}

/// Prepends the format byte.
pub(crate) fn with_format(bytes: &[u8]) -> Vec<u8> {
    [&[FORMAT], bytes].concat()
}

/// Removes the format byte; `None` if it is a different one.
pub(crate) fn without_format(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(&[FORMAT])
}

const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use toolgate_gate::ports::sealer::CallPart;
    use toolgate_model::id::{CredentialId, InvocationId, ItemId, StoreId};
    use toolgate_model::principal::TenantId;

    use super::*;

    /// Stored rows depend on this text: a change of it makes every one of them unreadable.
    #[test]
    fn the_associated_data_is_this_text_for_ever() {
        let tenant = TenantId::parse("acme").unwrap();
        let credential = CredentialId::parse("cred_01K9ZV3M5T8XQ2W7RJ4C6N0BDF").unwrap();
        let binding = SealBinding::of_credential(&tenant, credential, 7);
        for (purpose, word) in [(Purpose::Material, "material"), (Purpose::DataKey, "data-key")] {
            let expected = [
                r#"{"alg":"AES-256-GCM","credential":"cred_01K9ZV3M5T8XQ2W7RJ4C6N0BDF","#,
                &format!(r#""purpose":"{word}","tenant":"acme","version":7}}"#),
            ];
            assert_eq!(associated_data(&binding, purpose), expected.concat());
        }
        let call = InvocationId::parse("inv_01K9ZV3M5T8XQ2W7RJ4C6N0BDF").unwrap();
        let binding = SealBinding::of_call(&tenant, call, CallPart::Request);
        let expected = [
            r#"{"alg":"AES-256-GCM","call":"inv_01K9ZV3M5T8XQ2W7RJ4C6N0BDF","#,
            r#""part":"request","purpose":"material","tenant":"acme"}"#,
        ];
        assert_eq!(associated_data(&binding, Purpose::Material), expected.concat());
        let item = ItemId::parse("item_01K9ZV3M5T8XQ2W7RJ4C6N0BDF").unwrap();
        let expected = [
            r#"{"alg":"AES-256-GCM","item":"item_01K9ZV3M5T8XQ2W7RJ4C6N0BDF","#,
            r#""purpose":"material","tenant":"acme"}"#,
        ];
        let binding = SealBinding::of_item(&tenant, item);
        assert_eq!(associated_data(&binding, Purpose::Material), expected.concat());
        let store = StoreId::parse("store_01K9ZV3M5T8XQ2W7RJ4C6N0BDF").unwrap();
        let expected = [
            r#"{"alg":"AES-256-GCM","purpose":"material","#,
            r#""store":"store_01K9ZV3M5T8XQ2W7RJ4C6N0BDF","tenant":"acme"}"#,
        ];
        let binding = SealBinding::of_store(&tenant, store);
        assert_eq!(associated_data(&binding, Purpose::Material), expected.concat());
    }

    #[test]
    fn another_format_byte_is_not_ours() {
        assert_eq!(without_format(&with_format(b"rest")), Some(&b"rest"[..]));
        assert_eq!(without_format(b"\x02rest"), None);
        assert_eq!(without_format(b""), None);
    }
}
