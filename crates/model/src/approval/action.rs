//! What is executed after a yes, as far as one action can be told from another.

use serde::{Deserialize, Serialize};

use crate::id::CredentialId;

/// The action that a decision is for: the tool's definition, the credential and the service that is reached with it. A
/// decision on one action says nothing about another, whatever the two tools are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundAction {
    /// SHA-256 over the definition, the credential and how the service is reached. The arguments are not in it.
    pub digest: String,
    /// The credential that is used.
    pub credential: CredentialId,
    /// What people call it.
    pub label: String,
    /// The method of the request.
    pub method: String,
    /// The host that it goes to, with its port where that is not the usual one.
    pub host: String,
}

impl BoundAction {
    /// For people, as in `POST api.example.com with credential "live key"`.
    pub fn describe(&self) -> String {
        format!("{} {} with credential \"{}\"", self.method, self.host, self.label)
    }
}
