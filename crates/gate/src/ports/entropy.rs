//! Randomness for ids and keys, from the cryptographic generator.

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
