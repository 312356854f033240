//! The identity of the action that an approval is for.

use serde::{Deserialize, Serialize};

use crate::id::CredentialId;

/// The action that a decision is for: the definition of the tool, the credential and the service. A decision on one
/// action does not apply to another, whatever the two tools are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundAction {
    /// SHA-256 over the definition, the credential and the connection. Does not include the arguments.
    pub digest: String,
    pub credential: CredentialId,
    /// The label of the credential.
    pub label: String,
    /// The HTTP method.
    pub method: String,
    /// The host of the request, with a non-default port.
    pub host: String,
}

impl BoundAction {
    /// For people, for example `POST api.example.com with credential "live key"`.
    pub fn describe(&self) -> String {
        format!("{} {} with credential \"{}\"", self.method, self.host, self.label)
    }
}
