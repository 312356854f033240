//! The issuers whose access tokens are accepted, each with its own way to its keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolgate_egress::issuer_link::IssuerHttpLink;
use toolgate_gate::ports::tokens::{IssuerLink, TokenVerifier};
use toolgate_identity::JwtVerifier;
use toolgate_server::protected_resource::ProtectedResource;

use super::guarded_client;
use crate::configuration::Configuration;

/// Verifies tokens of the configured issuers; `None` if there are none.
pub(super) fn open(configuration: &Configuration) -> Option<Arc<dyn TokenVerifier>> {
    let issuers = configuration.issuers.iter().map(|entry| {
        let client = guarded_client(configuration).keeping(1);
        let link = IssuerHttpLink::new(client, entry.private_hosts.clone(), entry.ca_certificate.clone());
        (entry.settings.clone(), Arc::new(link) as Arc<dyn IssuerLink>)
    });
    let issuers: Vec<_> = issuers.collect();
    (!issuers.is_empty()).then(|| Arc::new(JwtVerifier::new(issuers)) as Arc<dyn TokenVerifier>)
}

/// Their metadata for clients. The configuration has issuers only together with a public URL.
pub(super) fn published(configuration: &Configuration) -> Option<ProtectedResource> {
    let public_url = configuration.mcp.public_url.clone().filter(|_| !configuration.issuers.is_empty())?;
    let settings = || configuration.issuers.iter().map(|entry| &entry.settings);
    let scopes: BTreeSet<String> = settings().flat_map(|issuer| issuer.required_scopes.iter().cloned()).collect();
    Some(ProtectedResource {
        public_url,
        authorization_servers: settings().map(|issuer| issuer.issuer.to_string()).collect(),
        scopes: scopes.into_iter().collect(),
    })
}
