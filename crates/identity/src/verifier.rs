//! The verification of a token, cheapest check first: what anybody can write costs neither a signature nor a fetch unless
//! it names a trusted issuer, this gate and a time to come.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_gate::ports::tokens::{IssuerLink, TokenVerifier, VerifiedToken};
use toolgate_gate::refusal::Refusal;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;
use toolgate_model::token_subject::IssuerUrl;

use crate::algorithm::SignatureAlgorithm;
use crate::claims;
use crate::issuer::IssuerSettings;
use crate::issuer_keys::IssuerKeys;
use crate::token::{UnverifiedToken, has_form, invalid};
use crate::verified::{Entry, VerifiedTokens};

#[cfg(test)]
mod tests;

/// Verifies the tokens of some issuers.
pub struct JwtVerifier {
    issuers: Vec<TrustedIssuer>,
    verified: VerifiedTokens,
}

struct TrustedIssuer {
    settings: Arc<IssuerSettings>,
    keys: Arc<IssuerKeys>,
}

impl JwtVerifier {
    /// Each issuer with the way to its documents. No two may have the same URL.
    pub fn new(issuers: Vec<(IssuerSettings, Arc<dyn IssuerLink>)>) -> Self {
        let issuers = issuers.into_iter().map(|(settings, link)| {
            let settings = Arc::new(settings);
            TrustedIssuer { keys: Arc::new(IssuerKeys::new(Arc::clone(&settings), link)), settings }
        });
        Self { issuers: issuers.collect(), verified: VerifiedTokens::default() }
    }

    /// A token that was verified by keys that are still published, and has not ended.
    fn remembered(&self, digest: &KeyDigest, now: Timestamp) -> Option<(Arc<VerifiedToken>, &TrustedIssuer)> {
        let Entry { token, issuer, version } = self.verified.get(digest)?;
        let issuer = self.issuers.get(issuer)?;
        if token.ends_at <= now || issuer.keys.version(now) != Some(version) {
            self.verified.remove(digest);
            return None;
        }
        Some((token, issuer))
    }
}

#[async_trait]
impl TokenVerifier for JwtVerifier {
    fn recognizes(&self, presented: &str) -> bool {
        has_form(presented)
    }

    fn tenant_of(&self, issuer: &IssuerUrl) -> Option<&TenantId> {
        let found = self.issuers.iter().find(|trusted| trusted.settings.issuer == *issuer)?;
        Some(&found.settings.tenant)
    }

    async fn verify(&self, token: &str, digest: &KeyDigest, now: Timestamp) -> Result<Arc<VerifiedToken>, Refusal> {
        if let Some((verified, issuer)) = self.remembered(digest, now) {
            issuer.keys.refreshed(now);
            return Ok(verified);
        }
        let token = UnverifiedToken::parse(token)?;
        let is_named = |issuer: &TrustedIssuer| token.issuer() == Some(issuer.settings.issuer.as_str());
        let found = self.issuers.iter().enumerate().find(|(_, issuer)| is_named(issuer));
        let (position, issuer) = found.ok_or_else(|| invalid("its issuer is not trusted by this gate"))?;
        let settings = &issuer.settings;
        let algorithm = SignatureAlgorithm::parse(&token.header.algorithm);
        let algorithm = algorithm.filter(|algorithm| settings.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or_else(|| invalid("its algorithm is not allowed for its issuer"))?;
        let said = claims::check(&token.claims, settings, now)?;
        let (key, version) = issuer.keys.key(token.header.key_id.as_deref(), algorithm, now).await?;
        if !key.verifies(token.signed, token.signature, algorithm) {
            return Err(invalid("its signature is wrong"));
        }
        claims::check_scopes(&token.claims, &settings.required_scopes)?;
        let verified = Arc::new(said);
        self.verified.put(*digest, Entry { token: Arc::clone(&verified), issuer: position, version });
        Ok(verified)
    }

    fn verified(&self, digest: &KeyDigest, now: Timestamp) -> Option<Arc<VerifiedToken>> {
        self.remembered(digest, now).map(|(token, _)| token)
    }
}
