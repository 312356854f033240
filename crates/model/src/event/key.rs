//! Keys of principals.

use serde::{Deserialize, Serialize};

use crate::id::KeyId;
use crate::principal::PrincipalId;
use crate::time::Timestamp;
use crate::token_subject::TokenSubject;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyCreated {
    /// The name of the client certificate that it represents. Absent in ledgers from before client certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    pub expires_at: Option<Timestamp>,
    pub key_id: KeyId,
    pub principal_id: PrincipalId,
    /// The subject of access tokens that it represents. Absent in ledgers from before access tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_subject: Option<TokenSubject>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyRevoked {
    pub key_id: KeyId,
    pub principal_id: PrincipalId,
}
