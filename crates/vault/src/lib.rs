//! The vault: sealing and unsealing of material, and the key providers.
//!
//! The only crate that handles master keys and data keys; none leaves it, not even in an error. The ledger stores the
//! sealed material, and the gate decides who may unseal it.

mod envelope;
pub mod key_provider;
pub mod sealer;
pub mod symmetric_key;

pub use key_provider::command::CommandProvider;
pub use key_provider::environment::EnvironmentProvider;
pub use key_provider::file::FileProvider;
pub use key_provider::{KeyError, KeyProvider, WrappedKey};
pub use sealer::VaultSealer;
pub use symmetric_key::SymmetricKey;
