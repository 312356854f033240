//! Tests of the sealer: what is sealed opens for its own binding and for nothing else.

use tempfile::TempDir;
use toolgate_gate::ports::sealer::{CallPart, SealSubject};
use toolgate_model::id::{CredentialId, InvocationId};
use toolgate_model::principal::TenantId;
use toolgate_model::secret::Secret;
use toolgate_model::time::Timestamp;

use super::*;
use crate::key_provider::WrappedKey;
use crate::key_provider::file::FileProvider;

/// A sealer over a key file of its own.
struct Bench {
    sealer: VaultSealer,
    _directory: TempDir,
}

fn bench() -> Bench {
    let directory = TempDir::new().unwrap();
    let provider = FileProvider::open(&directory.path().join("master.key"), None).unwrap();
    Bench { sealer: VaultSealer::new(Arc::new(provider)), _directory: directory }
}

fn binding() -> SealBinding {
    let credential = CredentialId::new(Timestamp::from_millis(1_770_544_800_000).unwrap(), [3; 10]);
    SealBinding::of_credential(&TenantId::parse("acme").unwrap(), credential, 1)
}

fn material() -> Material {
    let mut material = Material::new();
    material.insert("api_key".to_owned(), Secret::new("sk-\"\\\u{1}\u{e9}-1234567890".to_owned()));
    material.insert("webhook".to_owned(), Secret::new(String::new()));
    material
}

fn is_ours(opened: &Material) -> bool {
    let fields = |material: &Material| -> Vec<(String, String)> {
        material.iter().map(|(name, secret)| (name.to_owned(), secret.expose().to_owned())).collect()
    };
    fields(opened) == fields(&material())
}

fn damage() -> Option<SealError> {
    Some(damaged(&binding()))
}

#[tokio::test]
async fn what_is_sealed_opens_again() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    assert!(is_ours(&sealer.unseal(&binding(), &sealed).await.unwrap()));
    assert_eq!(sealer.current_key().await, Ok(sealed.key.clone()));
    assert_eq!(sealer.check().await, Ok(()));

    let empty = sealer.seal(&binding(), &Material::new()).await.unwrap();
    assert!(sealer.unseal(&binding(), &empty).await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_stored_shows_the_secret_and_no_two_sealings_are_alike() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    for stored in [&sealed.ciphertext, &sealed.wrapped_key] {
        assert!(!stored.windows(10).any(|window| window == b"1234567890"));
    }
    let again = sealer.seal(&binding(), &material()).await.unwrap();
    assert!(sealed.ciphertext != again.ciphertext && sealed.wrapped_key != again.wrapped_key);
}

#[tokio::test]
async fn a_changed_byte_anywhere_opens_for_nobody() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    for position in 0..sealed.ciphertext.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed.ciphertext[position] ^= 1 << bit;
            assert_eq!(sealer.unseal(&binding(), &changed).await.err(), damage(), "ciphertext {position}");
        }
    }
    for position in 0..sealed.wrapped_key.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed.wrapped_key[position] ^= 1 << bit;
            assert_eq!(sealer.unseal(&binding(), &changed).await.err(), damage(), "wrapped key {position}");
            assert_eq!(sealer.rewrap(&binding(), &changed).await.err(), damage(), "wrapped key {position}");
        }
    }
    assert!(is_ours(&sealer.unseal(&binding(), &sealed).await.unwrap()), "the others are not touched");
}

#[tokio::test]
async fn cut_lengthened_and_arbitrary_bytes_are_damage_and_no_panic() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    let mut cases = vec![
        SealedMaterial { ciphertext: longer(&sealed.ciphertext), ..sealed.clone() },
        SealedMaterial { wrapped_key: longer(&sealed.wrapped_key), ..sealed.clone() },
        SealedMaterial { ciphertext: sealed.wrapped_key.clone(), ..sealed.clone() },
        SealedMaterial { wrapped_key: sealed.ciphertext.clone(), ..sealed.clone() },
    ];
    for length in 0..sealed.ciphertext.len() {
        cases.push(SealedMaterial { ciphertext: sealed.ciphertext[..length].to_vec(), ..sealed.clone() });
        cases.push(SealedMaterial { ciphertext: vec![1; length], ..sealed.clone() });
        cases.push(SealedMaterial { wrapped_key: vec![1; length], ..sealed.clone() });
    }
    for length in 0..sealed.wrapped_key.len() {
        cases.push(SealedMaterial { wrapped_key: sealed.wrapped_key[..length].to_vec(), ..sealed.clone() });
    }
    for case in cases {
        assert_eq!(sealer.unseal(&binding(), &case).await.err(), damage());
        assert_eq!(sealer.rewrap(&binding(), &case).await.err(), damage());
    }
}

#[tokio::test]
async fn a_row_moved_to_another_tenant_credential_or_version_does_not_open() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    let SealSubject::Credential { id: same, .. } = binding().subject else { panic!("no credential") };
    let other = CredentialId::new(Timestamp::EPOCH, [4; 10]);
    let call = InvocationId::new(Timestamp::EPOCH, [4; 10]);
    let elsewhere = [
        SealBinding { tenant: TenantId::parse("other").unwrap(), ..binding() },
        SealBinding { subject: SealSubject::Credential { id: other, version: 1 }, ..binding() },
        SealBinding { subject: SealSubject::Credential { id: same, version: 2 }, ..binding() },
        SealBinding { subject: SealSubject::Call { id: call, part: CallPart::Request }, ..binding() },
    ];
    for binding in elsewhere {
        let other = sealer.seal(&binding, &material()).await.unwrap();
        let swapped = [
            sealed.clone(),
            SealedMaterial { ciphertext: sealed.ciphertext.clone(), ..other.clone() },
            SealedMaterial { wrapped_key: sealed.wrapped_key.clone(), ..other.clone() },
        ];
        for row in swapped {
            assert_eq!(sealer.unseal(&binding, &row).await.err(), Some(damaged(&binding)));
            assert_eq!(sealer.rewrap(&binding, &row).await.err(), Some(damaged(&binding)));
        }
    }
}

#[tokio::test]
async fn another_key_id_opens_nothing() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    let unknown = MasterKeyId("mk_0000000000000000".to_owned());
    let changed = SealedMaterial { key: unknown.clone(), ..sealed.clone() };
    assert_eq!(sealer.unseal(&binding(), &changed).await.err(), Some(SealError::KeyMissing { key: unknown }));

    let renewed = sealer.renew_key().await.unwrap();
    let changed = SealedMaterial { key: renewed, ..sealed };
    assert_eq!(sealer.unseal(&binding(), &changed).await.err(), damage());
}

#[tokio::test]
async fn rewrapping_moves_the_data_key_to_the_new_master_key_and_keeps_the_ciphertext() {
    let Bench { sealer, _directory } = bench();
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    let renewed = sealer.renew_key().await.unwrap();
    assert_eq!(sealer.current_key().await.as_ref(), Ok(&renewed));
    assert!(is_ours(&sealer.unseal(&binding(), &sealed).await.unwrap()), "the old key still unwraps");

    let rewrapped = sealer.rewrap(&binding(), &sealed).await.unwrap();
    assert!(rewrapped.ciphertext == sealed.ciphertext && rewrapped.key == renewed);
    assert_ne!(rewrapped.wrapped_key, sealed.wrapped_key);

    sealer.forget_key(&sealed.key).await.unwrap();
    assert!(is_ours(&sealer.unseal(&binding(), &rewrapped).await.unwrap()));
    let missing = sealer.unseal(&binding(), &sealed).await.err();
    assert_eq!(missing, Some(SealError::KeyMissing { key: sealed.key }));

    assert!(matches!(sealer.forget_key(&renewed).await, Err(SealError::Provider { .. })));
    sealer.renew_key().await.unwrap();
    sealer.forget_key(&renewed).await.unwrap();
    let missing = sealer.unseal(&binding(), &rewrapped).await.err();
    assert_eq!(missing, Some(SealError::KeyMissing { key: renewed }));
}

/// A key service that answers every unwrapping with some key.
struct Forgetful;

#[async_trait]
impl KeyProvider for Forgetful {
    async fn current_key(&self) -> Result<MasterKeyId, KeyError> {
        Ok(MasterKeyId("any".to_owned()))
    }

    async fn wrap(&self, _data_key: &SymmetricKey, _context: &str) -> Result<WrappedKey, KeyError> {
        Ok(WrappedKey { key: self.current_key().await?, bytes: b"any".to_vec() })
    }

    async fn unwrap(&self, _key: &MasterKeyId, _wrapped: &[u8], _context: &str) -> Result<SymmetricKey, KeyError> {
        SymmetricKey::random()
    }

    async fn renew(&self) -> Result<MasterKeyId, KeyError> {
        self.current_key().await
    }

    async fn forget(&self, _key: &MasterKeyId) -> Result<(), KeyError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_provider_that_gives_back_wrong_keys_is_found_out() {
    let sealer = VaultSealer::new(Arc::new(Forgetful));
    assert!(matches!(sealer.check().await, Err(SealError::Provider { .. })));
    let sealed = sealer.seal(&binding(), &material()).await.unwrap();
    assert_eq!(sealer.unseal(&binding(), &sealed).await.err(), damage());
    assert_eq!(sealer.rewrap(&binding(), &sealed).await.err(), damage());
}
