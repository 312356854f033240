//! Access tokens of external issuers: JWTs in the shape of RFC 9068, verified with the published keys of their issuer.
//!
//! Knows neither sockets (an `IssuerLink` of egress fetches documents) nor principals (the gate decides who a subject
//! is), and stores nothing.

mod algorithm;
mod claims;
mod discovery;
mod issuer;
mod issuer_keys;
mod key_set;
mod token;
mod verified;
mod verifier;

pub use self::algorithm::SignatureAlgorithm;
pub use self::issuer::IssuerSettings;
pub use self::verifier::JwtVerifier;
