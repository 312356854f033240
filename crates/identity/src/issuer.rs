//! What the operator says about an issuer.

use toolgate_model::principal::TenantId;
use toolgate_model::token_subject::IssuerUrl;

use crate::algorithm::SignatureAlgorithm;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// The claim `iss` of its tokens.
    pub issuer: IssuerUrl,
    /// The names of this gate, one of which must be in the claim `aud`.
    pub audiences: Vec<String>,
    pub algorithms: Vec<SignatureAlgorithm>,
    /// Where its keys are; else its metadata says so.
    pub jwks_uri: Option<String>,
    /// The claim that names the bearer.
    pub subject_claim: String,
    /// A token must have all of these.
    pub required_scopes: Vec<String>,
    /// The tenant of the principals that its subjects can be.
    pub tenant: TenantId,
}
