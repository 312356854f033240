//! The keys of one issuer, fetched when they are needed. At most one fetch is in flight; only those wait for it whose key
//! is unknown. The last good set is used while fetches fail, for a day at most.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use toolgate_gate::ports::tokens::{IssuerDocument, IssuerFailure, IssuerLink};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::merkle::{Hash, sha256};
use toolgate_model::time::Timestamp;

use crate::algorithm::SignatureAlgorithm;
use crate::discovery;
use crate::issuer::IssuerSettings;
use crate::key_set::{KeySet, PublicKey};
use crate::token::invalid;

#[cfg(test)]
mod tests;

/// From when on a set is fetched again, while it is still used: a key that the issuer withdraws is no longer accepted
/// soon after.
const REFRESH_AFTER: Duration = Duration::from_secs(300);
/// From when on a set that could not be fetched again is no longer used.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The time between two fetches: unknown keys can be invented without end.
const INTERVAL: Duration = Duration::from_secs(30);
/// The same while there are no keys at all.
const FIRST_INTERVAL: Duration = Duration::from_secs(5);
/// The timeout of one document.
const TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) struct IssuerKeys {
    settings: Arc<IssuerSettings>,
    link: Arc<dyn IssuerLink>,
    state: Mutex<State>,
}

/// Which set of keys verified a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeySetVersion(Hash);

impl KeySetVersion {
    /// The version of the set with this text.
    pub(crate) fn of(body: &[u8]) -> Self {
        Self(sha256(body))
    }
}

#[derive(Default)]
struct State {
    loaded: Option<Loaded>,
    attempted_at: Option<Timestamp>,
    /// Its sender is dropped when the fetch has ended, in whatever way.
    fetch: Option<watch::Receiver<()>>,
}

struct Loaded {
    keys: KeySet,
    version: KeySetVersion,
    fetched_at: Timestamp,
}

enum Lookup {
    Found(Arc<PublicKey>, KeySetVersion),
    Fetching(watch::Receiver<()>),
    Refused(Refusal),
}

impl IssuerKeys {
    pub(crate) fn new(settings: Arc<IssuerSettings>, link: Arc<dyn IssuerLink>) -> Self {
        Self { settings, link, state: Mutex::default() }
    }

    /// The key with this id for this algorithm.
    pub(crate) async fn key(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: SignatureAlgorithm,
        now: Timestamp,
    ) -> Result<(Arc<PublicKey>, KeySetVersion), Refusal> {
        let mut fetch = match self.look_up(id, algorithm, now) {
            Lookup::Found(key, version) => return Ok((key, version)),
            Lookup::Refused(refusal) => return Err(refusal),
            Lookup::Fetching(fetch) => fetch,
        };
        // Fails when the sender is dropped, which is what is waited for.
        let _ = fetch.changed().await;
        match self.look_up(id, algorithm, now) {
            Lookup::Found(key, version) => Ok((key, version)),
            Lookup::Refused(refusal) => Err(refusal),
            Lookup::Fetching(_) => Err(self.unavailable()),
        }
    }

    /// The set in use; `None` if there is none that may be used. Fetches it again if that is due.
    pub(crate) fn refreshed(self: &Arc<Self>, now: Timestamp) -> Option<KeySetVersion> {
        let mut state = self.state();
        let version = state.usable(now)?.version;
        if !state.is_fresh(now) {
            self.fetch_if_due(&mut state, now);
        }
        Some(version)
    }

    /// The set in use; `None` if there is none that may be used.
    pub(crate) fn version(&self, now: Timestamp) -> Option<KeySetVersion> {
        self.state().usable(now).map(|loaded| loaded.version)
    }

    fn look_up(self: &Arc<Self>, id: Option<&str>, algorithm: SignatureAlgorithm, now: Timestamp) -> Lookup {
        let mut state = self.state();
        let found = state.usable(now).and_then(|loaded| Some((loaded.keys.find(id, algorithm)?, loaded.version)));
        let is_known = found.is_some();
        let fetch = if is_known && state.is_fresh(now) { None } else { self.fetch_if_due(&mut state, now) };
        match (found, fetch) {
            (Some((key, version)), _) => Lookup::Found(key, version),
            (None, Some(fetch)) => Lookup::Fetching(fetch),
            (None, None) if state.usable(now).is_some() => {
                Lookup::Refused(invalid("its issuer has no such key for its algorithm"))
            }
            (None, None) => Lookup::Refused(self.unavailable()),
        }
    }

    /// The fetch that is in flight, or a new one if enough time has passed since the last.
    fn fetch_if_due(self: &Arc<Self>, state: &mut State, now: Timestamp) -> Option<watch::Receiver<()>> {
        if let Some(fetch) = state.fetch.as_ref().filter(|fetch| fetch.has_changed().is_ok()) {
            return Some(fetch.clone());
        }
        let interval = if state.usable(now).is_some() { INTERVAL } else { FIRST_INTERVAL };
        // A clock that was set back must not keep fetches from happening.
        if state.attempted_at.is_some_and(|last| last <= now && now < last.plus(interval)) {
            return None;
        }
        let (ended, fetch) = watch::channel(());
        state.attempted_at = Some(now);
        state.fetch = Some(fetch.clone());
        let keys = Arc::clone(self);
        // A client that disconnects must not abandon what others wait for.
        tokio::spawn(async move {
            keys.fetch(now).await;
            drop(ended);
        });
        Some(fetch)
    }

    async fn fetch(&self, now: Timestamp) {
        let issuer = &self.settings.issuer;
        let (body, keys) = match self.fetched().await {
            Ok(fetched) => fetched,
            Err(failure) => {
                return tracing::warn!(%issuer, %failure, "could not fetch the keys of an issuer of access tokens");
            }
        };
        let version = KeySetVersion::of(&body);
        let mut state = self.state();
        if state.loaded.as_ref().is_none_or(|loaded| loaded.version != version) {
            tracing::info!(%issuer, keys = keys.len(), "fetched the keys of an issuer of access tokens");
        }
        state.loaded = Some(Loaded { keys, version, fetched_at: now });
    }

    async fn fetched(&self) -> Result<(Vec<u8>, KeySet), IssuerFailure> {
        let address = match &self.settings.jwks_uri {
            Some(address) => address.clone(),
            None => self.discovered().await?,
        };
        let body = self.document(&address).await?;
        let keys = KeySet::parse(&body).map_err(|reason| IssuerFailure(format!("its set of keys: {reason}")))?;
        Ok((body, keys))
    }

    async fn discovered(&self) -> Result<String, IssuerFailure> {
        let mut failure = IssuerFailure("it has no metadata".to_owned());
        for address in discovery::addresses(&self.settings.issuer) {
            match self.document(&address).await {
                Ok(body) => {
                    return discovery::jwks_uri(&body, &self.settings.issuer)
                        .map_err(|reason| IssuerFailure(reason.to_owned()));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn document(&self, address: &str) -> Result<Vec<u8>, IssuerFailure> {
        match self.link.get(address, TIMEOUT).await? {
            IssuerDocument { status: 200, body } => Ok(body),
            IssuerDocument { status, .. } => Err(IssuerFailure(format!("the response has status {status}"))),
        }
    }

    /// Why the keys cannot be fetched is in the log: a caller would learn about the network of the gate.
    fn unavailable(&self) -> Refusal {
        let reason = "the keys of the issuer of the access token cannot be fetched; try again later";
        Refusal::new(Code::IssuerUnavailable, reason).with("retry_after_seconds", FIRST_INTERVAL.as_secs())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn usable(&self, now: Timestamp) -> Option<&Loaded> {
        self.loaded.as_ref().filter(|loaded| now < loaded.fetched_at.plus(MAX_AGE))
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        self.loaded.as_ref().is_some_and(|loaded| now < loaded.fetched_at.plus(REFRESH_AFTER))
    }
}
