//! Access tokens of external issuers. The identity crate verifies them, egress fetches the keys of the issuers, and the
//! gate decides which principal a subject is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::TenantId;
use toolgate_model::time::Timestamp;
use toolgate_model::token_subject::{IssuerUrl, TokenSubject};

use crate::refusal::Refusal;

#[async_trait]
pub trait TokenVerifier: Send + Sync {
    /// Whether a bearer credential has the form of a token. Such a credential is never looked up as a key.
    fn recognizes(&self, presented: &str) -> bool;
    /// The tenant whose principals the subjects of this issuer can be; `None` if the issuer is not trusted.
    fn tenant_of(&self, issuer: &IssuerUrl) -> Option<&TenantId>;
    /// Verifies a token with this digest: issuer, signature, audience, times and scopes. A refusal never contains a part
    /// of a token that is not verified.
    async fn verify(&self, token: &str, digest: &KeyDigest, now: Timestamp) -> Result<Arc<VerifiedToken>, Refusal>;
    /// A token that was verified before and would be accepted again; answered from memory.
    fn verified(&self, digest: &KeyDigest, now: Timestamp) -> Option<Arc<VerifiedToken>>;
}

/// What a valid token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedToken {
    pub subject: TokenSubject,
    /// The digest of the subject.
    pub identity: KeyDigest,
    /// The tenant of the principals that the subject can be.
    pub tenant: TenantId,
    /// From when on it is refused.
    pub ends_at: Timestamp,
}

/// A way to the documents of one issuer.
#[async_trait]
pub trait IssuerLink: Send + Sync {
    /// Fetches a document; the timeout covers the whole exchange. A redirect is a document like any other and not
    /// followed.
    async fn get(&self, url: &str, timeout: Duration) -> Result<IssuerDocument, IssuerFailure>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerDocument {
    pub status: u16,
    /// Complete.
    pub body: Vec<u8>,
}

/// Why there is no document, for the operator's log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IssuerFailure(pub String);
