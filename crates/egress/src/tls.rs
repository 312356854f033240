//! The trust of TLS: the system's root certificates, or only a credential's own CA.

use std::io;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::TlsConnector;

use crate::error::SendError;

/// The trust in the system's roots, loaded once, and the means to trust others.
pub(crate) struct Trust {
    provider: Arc<CryptoProvider>,
    /// Absent on a system without root certificates, which can still use http, and https with a custom CA.
    system: Option<Arc<ClientConfig>>,
}

impl Trust {
    pub(crate) fn load() -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verified = builder(&provider).and_then(|builder| builder.with_platform_verifier());
        let system = match verified {
            Ok(verified) => Some(Arc::new(finished(verified.with_no_client_auth()))),
            Err(error) => {
                tracing::warn!(%error, "no root certificates: https works only with a credential's own CA");
                None
            }
        };
        Self { provider, system }
    }

    /// A connector that trusts the CAs of this PEM text, or without one the system's.
    pub(crate) fn connector(&self, ca_certificate: Option<&str>) -> Result<TlsConnector, SendError> {
        let config = match ca_certificate {
            Some(pem) => Arc::new(self.trusting(pem)?),
            None => Arc::clone(self.system.as_ref().ok_or(SendError::NoRoots)?),
        };
        Ok(TlsConnector::from(config))
    }

    fn trusting(&self, pem: &str) -> Result<ClientConfig, SendError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
            added.ok_or(SendError::BadCertificate)?;
        }
        if roots.is_empty() {
            return Err(SendError::BadCertificate);
        }
        let builder = builder(&self.provider).map_err(|_| SendError::BadCertificate)?;
        Ok(finished(builder.with_root_certificates(roots).with_no_client_auth()))
    }
}

/// The reason of a failed handshake, without repeating anything that the peer sent.
pub(crate) fn reason(error: &io::Error) -> &'static str {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(certificate)) = tls else {
        return "the handshake failed; check that the service speaks TLS 1.2 or 1.3 on this port";
    };
    match certificate {
        CertificateError::UnknownIssuer => "its certificate comes from an unknown CA; give the credential that CA",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired; renew it",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name; correct the host of the service's URL"
        }
        _ => "its certificate is not valid; replace it",
    }
}

fn builder(provider: &Arc<CryptoProvider>) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions()
}

fn finished(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would tell the service that two credentials belong to the same gate.
    config.resumption = Resumption::disabled();
    config
}
