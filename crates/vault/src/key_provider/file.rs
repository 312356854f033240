//! Master keys in a file that only its owner can read: the provider for a gate that stands by itself.
//!
//! Several processes may share the file. Whoever changes it replaces it as a whole under an advisory lock; whoever
//! wraps looks first whether it was replaced. Keys that were loaded go on unwrapping whatever becomes of the file:
//! whoever can change its mode or take it away must not be able to stop every credential.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use toolgate_gate::ports::sealer::MasterKeyId;

use crate::key_provider::keyring::Keyring;
use crate::key_provider::{KeyError, KeyProvider, WrappedKey};
use crate::symmetric_key::SymmetricKey;

mod contents;
mod storage;
#[cfg(test)]
mod tests;

/// Keeps master keys in a file.
pub struct FileProvider {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last that could be read.
    loaded: Option<Loaded>,
    /// What was wrong with the file when it was last looked at, so that it is told once.
    problem: Option<KeyError>,
}

/// The file as it was when it was last read.
struct Loaded {
    file_version: storage::FileVersion,
    keyring: Keyring,
}

impl FileProvider {
    /// Opens the key file, and makes it with a fresh key where there is none.
    ///
    /// A file inside the data directory is refused: a copy of that directory would carry the key to its own lock.
    pub fn open(path: &Path, data_dir: Option<&Path>) -> Result<Self, KeyError> {
        let path = storage::absolute(path)?;
        if let Some(data_dir) = data_dir {
            storage::refuse_inside(&path, data_dir)?;
        }
        if !storage::exists(&path)? {
            create(&path)?;
        }
        let shared = Shared { path, state: Mutex::default() };
        shared.refresh(&mut shared.state())?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Changes wait for other processes and for the disk, so they run where blocking does no harm. They run to their
    /// end even if the caller goes away.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Keyring) -> Result<T, KeyError> + Send + 'static,
    ) -> Result<T, KeyError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || shared.change(change))
            .await
            .map_err(|_| KeyError::failed("the change of the key file was interrupted"))?
    }
}

/// Reading is done in place: one `stat` of a local file, and a read of a few hundred bytes after a change, cost less
/// than handing the work to another thread.
#[async_trait]
impl KeyProvider for FileProvider {
    async fn current_key(&self) -> Result<MasterKeyId, KeyError> {
        Ok(self.shared.refresh(&mut self.shared.state())?.current().clone())
    }

    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError> {
        // INVARIANT: nothing is wrapped under a key whose file is gone or open to others: it would be lost at the next start,
        // or be sealed by a key that is known.
        self.shared.refresh(&mut self.shared.state())?.wrap(data_key, context)
    }

    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError> {
        let mut state = self.shared.state();
        // A key keeps its id for ever, so one that is at hand needs no look at the file.
        if let Some(Loaded { keyring, .. }) = state.loaded.as_ref()
            && keyring.holds(key)
        {
            return keyring.unwrap(key, wrapped, context);
        }
        self.shared.refresh(&mut state)?.unwrap(key, wrapped, context)
    }

    async fn renew(&self) -> Result<MasterKeyId, KeyError> {
        let key = SymmetricKey::random()?;
        self.change(move |keyring| {
            keyring.renew(key);
            Ok(keyring.current().clone())
        })
        .await
    }

    async fn forget(&self, key: &MasterKeyId) -> Result<(), KeyError> {
        let key = key.clone();
        self.change(move |keyring| keyring.remove(&key)).await
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever thread died, the state holds a whole keyring or none.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keyring of the file as it is now. What is wrong with the file is an error, and told in the log; the keyring that
    /// was loaded before stays for unwrapping.
    fn refresh<'a>(&self, state: &'a mut State) -> Result<&'a Keyring, KeyError> {
        let read = match (storage::file_version(&self.path), state.loaded.take()) {
            (Ok(file_version), Some(loaded)) if loaded.file_version == file_version => Ok(loaded),
            (Ok(_), previous) => read(&self.path).map_err(|error| (error, previous)),
            (Err(error), previous) => Err((error, previous)),
        };
        match read {
            Ok(loaded) => {
                if state.problem.take().is_some() {
                    tracing::info!(path = %self.path.display(), "the key file is as it must be again");
                }
                Ok(&state.loaded.insert(loaded).keyring)
            }
            Err((error, previous)) => {
                if previous.is_some() && state.problem.as_ref() != Some(&error) {
                    tracing::error!(
                        %error,
                        "the keys that were loaded go on opening credentials, but nothing new is sealed, and the next \
                         start will fail"
                    );
                }
                state.loaded = previous;
                state.problem = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Applies a change to the file as it is now, not as it was last seen, with every other writer shut out.
    fn change<T>(&self, change: impl FnOnce(&mut Keyring) -> Result<T, KeyError>) -> Result<T, KeyError> {
        let path = storage::real(&self.path)?;
        let _lock = storage::lock(&path)?;
        let mut keyring = read(&path)?.keyring;
        let outcome = change(&mut keyring)?;
        storage::replace(&path, &contents::write(&keyring))?;
        let file_version = storage::file_version(&path)?;
        tracing::info!(path = %path.display(), current = %keyring.current().0, "the key file was changed");
        self.state().loaded = Some(Loaded { file_version, keyring });
        Ok(outcome)
    }
}

fn create(path: &Path) -> Result<(), KeyError> {
    storage::create_parents(path)?;
    let _lock = storage::lock(path)?;
    // Another process may have been first while this one waited for the lock.
    if storage::exists(path)? {
        return Ok(());
    }
    let keyring = Keyring::new(SymmetricKey::random()?);
    storage::replace(path, &contents::write(&keyring))?;
    tracing::info!(
        path = %path.display(),
        current = %keyring.current().0,
        "a new master key was made; keep a copy of this file, without it no credential can be opened"
    );
    Ok(())
}

fn read(path: &Path) -> Result<Loaded, KeyError> {
    let (file_version, text) = storage::read(path)?;
    let keyring = contents::parse(&text).map_err(|error| {
        KeyError::failed(format!("the key file {} is damaged ({error}); restore it from a copy", path.display()))
    })?;
    Ok(Loaded { file_version, keyring })
}
