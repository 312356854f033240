//! Master keys in a file that only its owner can read: the provider for a gate without a key service.
//!
//! Several processes may share the file. Writers replace it atomically under an advisory lock; before wrapping, a
//! process checks whether the file was replaced. Loaded keys keep unwrapping whatever happens to the file: changing its
//! mode or removing it must not disable every credential.

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

pub struct FileProvider {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last version that could be read.
    loaded: Option<Loaded>,
    /// The error of the last attempt to read the file, so that it is logged once.
    problem: Option<KeyError>,
}

/// The file as it was last read.
struct Loaded {
    file_version: storage::FileVersion,
    keyring: Keyring,
}

impl FileProvider {
    /// Opens the key file, and creates it with a new key if it does not exist.
    ///
    /// A file inside the data directory is refused: a copy of that directory would contain both the sealed material and
    /// its key.
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

    /// Changes wait for other processes and for the disk, so they run on a blocking thread. They complete even if the
    /// caller is cancelled.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Keyring) -> Result<T, KeyError> + Send + 'static,
    ) -> Result<T, KeyError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || shared.change(change))
            .await
            .map_err(|_| KeyError::failed("the key file change was interrupted; check the file and try again"))?
    }
}

/// Reads run inline: one `stat` of a local file, and a read of a few hundred bytes after a change, cost less than
/// handing the work to another thread.
#[async_trait]
impl KeyProvider for FileProvider {
    async fn current_key(&self) -> Result<MasterKeyId, KeyError> {
        Ok(self.shared.refresh(&mut self.shared.state())?.current().clone())
    }

    async fn wrap(&self, data_key: &SymmetricKey, context: &str) -> Result<WrappedKey, KeyError> {
        // INVARIANT: nothing is wrapped under a key whose file is missing or accessible to others: it would be lost at
        // the next start, or be sealed under a compromised key.
        self.shared.refresh(&mut self.shared.state())?.wrap(data_key, context)
    }

    async fn unwrap(&self, key: &MasterKeyId, wrapped: &[u8], context: &str) -> Result<SymmetricKey, KeyError> {
        let mut state = self.shared.state();
        // The id of a key never changes, so a loaded key needs no check of the file.
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
        // Whatever thread panicked, the state has a complete keyring or none.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keyring of the current file. A problem with the file is returned as an error and logged; the keyring
    /// that was loaded before is kept for unwrapping.
    fn refresh<'a>(&self, state: &'a mut State) -> Result<&'a Keyring, KeyError> {
        let read = match (storage::file_version(&self.path), state.loaded.take()) {
            (Ok(file_version), Some(loaded)) if loaded.file_version == file_version => Ok(loaded),
            (Ok(_), previous) => read(&self.path).map_err(|error| (error, previous)),
            (Err(error), previous) => Err((error, previous)),
        };
        match read {
            Ok(loaded) => {
                if state.problem.take().is_some() {
                    tracing::info!(path = %self.path.display(), "the key file is valid again");
                }
                Ok(&state.loaded.insert(loaded).keyring)
            }
            Err((error, previous)) => {
                if previous.is_some() && state.problem.as_ref() != Some(&error) {
                    tracing::error!(
                        %error,
                        "the loaded keys still unseal credentials, but nothing new is sealed, and the next \
                         start will fail"
                    );
                }
                state.loaded = previous;
                state.problem = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Applies a change to the current file, under the lock.
    fn change<T>(&self, change: impl FnOnce(&mut Keyring) -> Result<T, KeyError>) -> Result<T, KeyError> {
        let path = storage::real(&self.path)?;
        let _lock = storage::lock(&path)?;
        let mut keyring = read(&path)?.keyring;
        let outcome = change(&mut keyring)?;
        storage::replace(&path, &contents::write(&keyring))?;
        let file_version = storage::file_version(&path)?;
        tracing::info!(path = %path.display(), current = %keyring.current().0, "key file changed");
        self.state().loaded = Some(Loaded { file_version, keyring });
        Ok(outcome)
    }
}

fn create(path: &Path) -> Result<(), KeyError> {
    storage::create_parents(path)?;
    let _lock = storage::lock(path)?;
    // Another process may have created the file while this one waited for the lock.
    if storage::exists(path)? {
        return Ok(());
    }
    let keyring = Keyring::new(SymmetricKey::random()?);
    storage::replace(path, &contents::write(&keyring))?;
    tracing::info!(
        path = %path.display(),
        current = %keyring.current().0,
        "created a new master key; back up this file: without it no credential can be unsealed"
    );
    Ok(())
}

fn read(path: &Path) -> Result<Loaded, KeyError> {
    let (file_version, text) = storage::read(path)?;
    let keyring = contents::parse(&text).map_err(|error| {
        KeyError::failed(format!("the key file {} is damaged: {error}; restore it from a backup", path.display()))
    })?;
    Ok(Loaded { file_version, keyring })
}
