//! Randomness for ids and keys, from the cryptographic generator.

use std::cell::RefCell;

use toolgate_model::id::IdEntropy;

/// The length of an [`IdEntropy`].
const ID_BYTES: usize = size_of::<IdEntropy>();

/// The generator failed; no id or key can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system's random generator failed")]
pub struct EntropyError;

/// `N` unpredictable bytes.
pub fn random<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0_u8; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| EntropyError)?;
    Ok(bytes)
}

/// The number of ids per read of the generator.
const IDS: usize = 32;

thread_local! {
    static FOR_IDS: RefCell<Vec<IdEntropy>> = const { RefCell::new(Vec::new()) };
}

/// Random bytes for an id. Calling the generator costs more than creating an id, so its output is shared by many ids;
/// ids are not secret, keys use [`random`].
pub fn random_for_id() -> Result<IdEntropy, EntropyError> {
    FOR_IDS.with_borrow_mut(|ready| {
        if let Some(entropy) = ready.pop() {
            return Ok(entropy);
        }
        let bytes: [u8; IDS * ID_BYTES] = random()?;
        let (chunks, _) = bytes.as_chunks::<ID_BYTES>();
        ready.extend_from_slice(chunks);
        ready.pop().ok_or(EntropyError)
    })
}
