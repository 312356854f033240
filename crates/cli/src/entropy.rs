//! Unpredictable bytes, from the cryptographic generator.

use crate::Failure;

pub fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0_u8; N];
    match aws_lc_rs::rand::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Failure::Said("the system's random generator failed".to_owned())),
    }
}
