//! What identifies a principal instead of a secret of the gate: a client certificate, or the subject of access tokens. It
//! is registered as a key, and ends as one.

use std::fmt;

use crate::certificate::CertificateName;
use crate::key::KeyDigest;
use crate::token_subject::TokenSubject;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalIdentity {
    Certificate(CertificateName),
    TokenSubject(TokenSubject),
}

impl ExternalIdentity {
    /// The digest under which it is looked up among keys.
    pub fn digest(&self) -> KeyDigest {
        match self {
            Self::Certificate(name) => name.digest(),
            Self::TokenSubject(subject) => subject.digest(),
        }
    }

    pub fn certificate(&self) -> Option<&CertificateName> {
        match self {
            Self::Certificate(name) => Some(name),
            Self::TokenSubject(_) => None,
        }
    }

    pub fn token_subject(&self) -> Option<&TokenSubject> {
        match self {
            Self::TokenSubject(subject) => Some(subject),
            Self::Certificate(_) => None,
        }
    }

    /// What it is, for messages.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Certificate(_) => "certificate",
            Self::TokenSubject(_) => "token subject",
        }
    }
}

impl fmt::Display for ExternalIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(name) => name.fmt(formatter),
            Self::TokenSubject(subject) => subject.fmt(formatter),
        }
    }
}
