//! Randomness for ids and keys, from the cryptographic generator.

use std::cell::RefCell;

use toolgate_model::id::IdEntropy;

/// The length of an [`IdEntropy`].
const ID_BYTES: usize = size_of::<IdEntropy>();

/// The generator gave nothing; no id or key can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system's random generator failed")]
pub struct EntropyError;

/// `N` unpredictable bytes.
pub fn random<const N: usize>() -> Result<[u8; N], EntropyError> {
    let mut bytes = [0_u8; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| EntropyError)?;
    Ok(bytes)
}

/// How many ids are made of what the generator gives at once.
const IDS: usize = 32;

thread_local! {
    static FOR_IDS: RefCell<Vec<IdEntropy>> = const { RefCell::new(Vec::new()) };
}

/// What an id needs. Asking the generator costs more than making the id, so it is asked for many at once; ids are no
/// secrets, keys are made by [`random`].
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
