//! The first stage: identifies the caller. Only this module creates a [`Caller`], from a key that the ledger knows: a
//! secret of the gate, or what represents a client certificate or the subject of access tokens.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_model::certificate::CertificateName;
use toolgate_model::id::KeyId;
use toolgate_model::key::{self, ApiKey, KeyDigest};
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, TenantId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::time::Timestamp;

use crate::ports::clock::Clock;
use crate::ports::ledger::{AuditContext, Freshness, Generation, Keys, Mandate, Principals};
use crate::ports::tokens::{TokenVerifier, VerifiedToken};
use crate::refusal::{Code, Kind, Refusal};

use self::attempts::Attempts;

mod attempts;
#[cfg(test)]
mod tests;

/// A principal that has presented a valid key.
///
/// INVARIANT: created only by [`Authenticator::identify`]; by [`Authenticator::identify_again`] from an earlier one;
/// and by `Authenticator::identify_stored` for a call that it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    principal: Arc<Principal>,
    key: KeyId,
    generation: Generation,
    /// When the access token that it presented ends.
    token_ends_at: Option<Timestamp>,
}

impl Caller {
    pub fn tenant(&self) -> &TenantId {
        &self.principal.tenant
    }

    pub fn id(&self) -> &PrincipalId {
        &self.principal.id
    }

    /// The key that it presented.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// The state that its identity was read from.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.principal.permissions.has(permission)
    }

    /// Refuses a caller without the permission.
    pub fn require(&self, permission: Permission) -> Result<(), Refusal> {
        if self.may(permission) {
            return Ok(());
        }
        let reason = format!("this needs the permission {permission}, which `{}` does not have", self.id());
        Err(Refusal::new(Code::PermissionDenied, reason).with("required_permission", permission))
    }

    /// Refuses to act for another principal without the permission.
    pub fn require_acting_for(&self, other: &PrincipalId) -> Result<(), Refusal> {
        if other == self.id() || self.may(Permission::ActAs) {
            return Ok(());
        }
        let reason =
            format!("`{}` may not act for `{other}`: this needs the permission {}", self.id(), Permission::ActAs);
        Err(Refusal::new(Code::PermissionDenied, reason).with("required_permission", Permission::ActAs))
    }

    /// Refuses to give, or take over, permissions beyond its own.
    pub(crate) fn require_within_own(&self, permissions: &PermissionSet) -> Result<(), Refusal> {
        match permissions.first_beyond(&self.principal.permissions) {
            None => Ok(()),
            Some(beyond) => {
                let reason = format!("this exceeds your own permissions: you do not have {beyond}");
                Err(Refusal::new(Code::PermissionDenied, reason).with("required_permission", beyond))
            }
        }
    }
}

impl Caller {
    /// The authority of the caller for an administrative change, checked again by the transaction that makes it.
    pub(crate) fn mandate(&self, now: Timestamp) -> Mandate {
        Mandate::of_key(self.key, Arc::clone(&self.principal), now)
    }

    pub(crate) fn audit(&self, now: Timestamp) -> AuditContext {
        AuditContext { tenant: self.tenant().clone(), actor: self.id().clone(), time: now }
    }

    /// Refuses to give, or create a key for, scopes beyond its own. An administrator of the tenant may act for every
    /// agent and manages every tool, so no scope is beyond its own.
    pub(crate) fn require_scopes_within_own(&self, scopes: &HeldScopes) -> Result<(), Refusal> {
        match scopes.first_beyond(&self.principal.scopes) {
            Some(beyond) if !self.manages_all() => {
                let reason = format!(
                    "this exceeds your own scopes: you do not hold `{beyond}`; an administrator with {} and {} may",
                    Permission::ManageTools,
                    Permission::ActAs
                );
                Err(Refusal::new(Code::PermissionDenied, reason).with("required_scope", beyond))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
impl Caller {
    /// A caller for tests of later stages.
    pub(crate) fn of(principal: Arc<Principal>, key: KeyId) -> Self {
        Self { principal, key, generation: 0, token_ends_at: None }
    }
}

/// Identifies callers.
pub struct Authenticator {
    keys: Arc<dyn Keys>,
    principals: Arc<dyn Principals>,
    clock: Arc<dyn Clock>,
    tokens: Option<Arc<dyn TokenVerifier>>,
    attempts: Attempts,
    key_uses: Mutex<BTreeMap<KeyId, Timestamp>>,
}

impl Authenticator {
    pub(crate) fn new(keys: Arc<dyn Keys>, principals: Arc<dyn Principals>, clock: Arc<dyn Clock>) -> Self {
        Self { keys, principals, clock, tokens: None, attempts: Attempts::default(), key_uses: Mutex::default() }
    }

    /// The same, which accepts access tokens that this verifies.
    pub(crate) fn with_tokens(self, tokens: Option<Arc<dyn TokenVerifier>>) -> Self {
        Self { tokens, ..self }
    }

    /// Whether a presented credential is an access token, in whatever state.
    pub fn is_token(&self, presented: &str) -> bool {
        self.tokens.as_ref().is_some_and(|tokens| tokens.recognizes(presented))
    }

    /// The digest of the subject of an access token that was verified before. Tokens are renewed all the time: what is
    /// limited for a key is limited for the subject, not for each of its tokens.
    pub fn subject_of(&self, presented: &str) -> Option<KeyDigest> {
        let tokens = self.tokens.as_ref().filter(|tokens| tokens.recognizes(presented))?;
        Some(tokens.verified(&key::digest_of(presented), self.clock.now())?.identity)
    }

    /// Identifies the caller that presents this key, or this access token, from this address.
    pub async fn identify(
        &self,
        presented: Option<&str>,
        source: IpAddr,
        freshness: Freshness,
    ) -> Result<Caller, Refusal> {
        let Some(presented) = presented else {
            let reason = "send a key as `Authorization: Bearer KEY` or `X-API-Key: KEY`";
            return Err(Refusal::new(Code::Unauthenticated, reason));
        };
        if let Some(tokens) = self.tokens.as_ref().filter(|tokens| tokens.recognizes(presented)) {
            return self.identify_token(&**tokens, presented, source, freshness).await;
        }
        let now = self.clock.now();
        let generation = self.keys.generation();
        let digest = key::digest_of(presented);
        self.attempts.check(source, &digest, now)?;
        // A key with our prefix and a wrong checksum was mistyped or invented: it need not be looked up.
        let mistyped = presented.starts_with(key::PREFIX) && !ApiKey::is_well_formed(presented);
        let found = if mistyped { None } else { self.keys.identify(&digest, now, freshness).await? };
        let Some(found) = found else {
            self.attempts.failed(source, now);
            let reason = "the key is unknown; check that it was copied completely, or create a new one";
            return Err(Refusal::new(Code::Unauthenticated, reason));
        };
        require_live(&found, now).inspect_err(|_| self.attempts.failed(source, now))?;
        self.attempts.succeeded(digest, now);
        Ok(self.caller(&found, now, generation))
    }

    /// Identifies the caller by an access token: by the key that an administrator has registered for its subject, so
    /// that removal of the principal and revocation are seen as for every key.
    async fn identify_token(
        &self,
        tokens: &dyn TokenVerifier,
        presented: &str,
        source: IpAddr,
        freshness: Freshness,
    ) -> Result<Caller, Refusal> {
        let now = self.clock.now();
        let digest = key::digest_of(presented);
        self.attempts.check(source, &digest, now)?;
        let failed = |refusal: &Refusal| {
            if refusal.code().kind() == Kind::Unauthenticated {
                self.attempts.failed(source, now);
            }
        };
        let token = tokens.verify(presented, &digest, now).await.inspect_err(failed)?;
        // Keys of an issuer may have been fetched meanwhile.
        let now = self.clock.now();
        let generation = self.keys.generation();
        let found = self.keys.identify(&token.identity, now, freshness).await?;
        let Some(found) = found.filter(|found| found.0.tenant == token.tenant) else {
            let refusal = unregistered(&token);
            failed(&refusal);
            return Err(refusal);
        };
        require_live(&found, now).inspect_err(failed)?;
        self.attempts.succeeded(digest, now);
        Ok(Caller { token_ends_at: Some(token.ends_at), ..self.caller(&found, now, generation) })
    }

    /// Identifies the caller by this key, by this client certificate, which the listener has verified, or by both.
    ///
    /// A certificate identifies a request without a key. If there is a key, the key identifies the request; a
    /// registered certificate must then belong to the same principal, so that a key is useless to another workload. An
    /// unregistered certificate is ignored.
    pub async fn identify_client(
        &self,
        presented: Option<&str>,
        certificate: Option<&CertificateName>,
        source: IpAddr,
        freshness: Freshness,
    ) -> Result<Caller, Refusal> {
        let Some(certificate) = certificate else { return self.identify(presented, source, freshness).await };
        let now = self.clock.now();
        let generation = self.keys.generation();
        let found = self.keys.identify(&certificate.digest(), now, freshness).await?;
        match (presented, found) {
            (None, Some(found)) => {
                require_live(&found, now)?;
                Ok(self.caller(&found, now, generation))
            }
            (None, None) => {
                let reason = format!(
                    "the client certificate {certificate} is not registered; an administrator registers it with \
                     `toolgate key create AGENT`, or send a key as `Authorization: Bearer KEY`"
                );
                Err(Refusal::new(Code::Unauthenticated, reason))
            }
            (Some(_), found) => {
                let caller = self.identify(presented, source, freshness).await?;
                let certified = found.filter(|found| require_live(found, now).is_ok());
                if certified.is_some_and(|found| found.0.id != *caller.id() || found.0.tenant != *caller.tenant()) {
                    let reason = format!(
                        "the key belongs to `{}` and the client certificate {certificate} does not; send only one of \
                        them, or a key of the certificate's agent",
                        caller.id()
                    );
                    return Err(Refusal::new(Code::Unauthenticated, reason));
                }
                Ok(caller)
            }
        }
    }

    fn caller(&self, (principal, key): &(Arc<Principal>, KeyRecord), now: Timestamp, generation: Generation) -> Caller {
        self.note_key_use(key.id, now);
        Caller { principal: Arc::clone(principal), key: key.id, generation, token_ends_at: None }
    }

    /// The caller in its current state, for a long response. Refused once its key or its access token has ended.
    pub async fn identify_again(&self, caller: &Caller) -> Result<Caller, Refusal> {
        let generation = self.keys.generation();
        if caller.token_ends_at.is_some_and(|end| end <= self.clock.now()) {
            return Err(Refusal::new(Code::TokenExpired, "the access token has expired; send a new one"));
        }
        self.require_key(caller).await?;
        let principal = self.principals.principal(caller.tenant(), caller.id()).await?;
        let principal = principal.filter(|principal| principal.removed_at.is_none());
        let gone = || Refusal::new(Code::KeyRevoked, format!("`{}` was removed", caller.id()));
        let principal = Arc::new(principal.ok_or_else(gone)?);
        Ok(Caller { principal, key: caller.key(), generation, token_ends_at: caller.token_ends_at })
    }

    /// The caller of a stored call, and whether its key still allows calls: the record of a refusal needs the caller in
    /// either case.
    pub(crate) async fn identify_stored(
        &self,
        tenant: &TenantId,
        id: &PrincipalId,
        key: KeyId,
    ) -> Result<(Caller, Result<(), Refusal>), Refusal> {
        let generation = self.keys.generation();
        let unknown = || Refusal::new(Code::Internal, format!("`{id}`, which made this call, is unknown"));
        let principal = self.principals.principal(tenant, id).await?.ok_or_else(unknown)?;
        let removed = principal.removed_at.is_some();
        let caller = Caller { principal: Arc::new(principal), key, generation, token_ends_at: None };
        let stands = match self.require_key(&caller).await {
            Err(refusal) if !matches!(refusal.code(), Code::KeyExpired | Code::KeyRevoked) => return Err(refusal),
            Ok(()) if removed => Err(Refusal::new(Code::KeyRevoked, format!("`{id}` was removed"))),
            stands => stands,
        };
        Ok((caller, stands))
    }

    /// Refuses a caller whose key has ended since it was presented.
    async fn require_key(&self, caller: &Caller) -> Result<(), Refusal> {
        let key = self.keys.key(caller.tenant(), caller.key()).await?;
        let now = self.clock.now();
        match key {
            Some(KeyRecord { revoked_at: None, expires_at: Some(end), .. }) if end <= now => {
                Err(Refusal::new(Code::KeyExpired, format!("key {} has expired; create a new one", caller.key())))
            }
            Some(KeyRecord { revoked_at: None, .. }) => Ok(()),
            _ => Err(Refusal::new(Code::KeyRevoked, format!("key {} was revoked; create a new one", caller.key()))),
        }
    }

    /// Records which keys were used since the last time.
    pub async fn flush_key_uses(&self) -> Result<(), Refusal> {
        let uses = std::mem::take(&mut *self.key_uses.lock().unwrap_or_else(PoisonError::into_inner));
        if uses.is_empty() { Ok(()) } else { self.keys.note_key_use(uses).await }
    }

    fn note_key_use(&self, key: KeyId, now: Timestamp) {
        self.key_uses.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now);
    }
}

fn unregistered(token: &VerifiedToken) -> Refusal {
    let reason = format!(
        "the subject {} of the access token is not registered; an administrator registers it with `toolgate key create \
         AGENT --token-issuer ISSUER --token-subject SUBJECT`",
        token.subject
    );
    Refusal::new(Code::Unauthenticated, reason)
}

/// Refuses a key that has ended.
fn require_live((principal, key): &(Arc<Principal>, KeyRecord), now: Timestamp) -> Result<(), Refusal> {
    if key.revoked_at.is_some() || principal.removed_at.is_some() {
        return Err(Refusal::new(Code::KeyRevoked, format!("key {} was revoked; create a new one", key.id)));
    }
    match key.expires_at.filter(|end| *end <= now) {
        Some(end) => Err(Refusal::new(Code::KeyExpired, format!("key {} expired at {end}; create a new one", key.id))),
        None => Ok(()),
    }
}
