//! The vault: sealing and unsealing of material, and the key providers behind it.
//!
//! This room is the only place that sees a master key or a data key; none of them leaves it, not even in an error. It
//! refuses storage (the ledger keeps what is sealed here), authority (who may unseal is the gate's question) and any
//! knowledge of what a secret is used for.

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
