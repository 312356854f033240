//! TLS: certificate, key and the CA of client certificates from files, read again when they change, without a restart.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use thiserror::Error;
use toolgate_model::merkle::{Hash, sha256};

#[derive(Debug, Clone)]
pub struct TlsSettings {
    /// The certificate with its chain, PEM.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
    /// Whether TLS 1.2 is spoken besides 1.3.
    pub tls12: bool,
    /// Client certificates, if they are requested.
    pub clients: Option<ClientCertificates>,
}

/// Which client certificates are accepted.
#[derive(Debug, Clone)]
pub struct ClientCertificates {
    /// The certificates of the CAs, PEM.
    pub ca: PathBuf,
    /// Whether a client without one is refused.
    pub required: bool,
}

/// Why TLS cannot be spoken.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that is missing or not PEM.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    /// Certificate and key do not belong together, or something of that kind.
    #[error("{certificate} and {key} cannot be used: {reason}")]
    Pair { certificate: String, key: String, reason: rustls::Error },
}

/// The TLS configuration of a listener, from its files.
pub struct Tls {
    settings: TlsSettings,
    current: RwLock<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// The digests of the loaded files.
    digests: [Hash; 3],
}

impl Tls {
    pub fn open(settings: TlsSettings) -> Result<Self, TlsError> {
        let files = Files::read(&settings)?;
        let current = files.current(&settings, None)?;
        Ok(Self { settings, current: RwLock::new(current) })
    }

    /// Reads the files again; returns whether they have changed. If they are not valid, the previous configuration
    /// stays in use.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let files = Files::read(&self.settings)?;
        let digests = files.digests();
        let before = self.current();
        if self.current.read().unwrap_or_else(PoisonError::into_inner).digests == digests {
            return Ok(false);
        }
        let current = files.current(&self.settings, Some(&before))?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(true)
    }

    /// Whether a certificate with this chain would still be accepted: it may have expired, or its CA may have been
    /// removed.
    pub(super) fn verify_again(&self, chain: &[CertificateDer<'static>]) -> Result<(), rustls::Error> {
        let (config, verifier) = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&current.config), current.verifier.clone())
        };
        let refused = || rustls::Error::General("client certificates are not accepted".to_owned());
        let now = config.time_provider.current_time().ok_or(rustls::Error::FailedToGetCurrentTime)?;
        let (certificate, intermediates) = chain.split_first().ok_or_else(refused)?;
        verifier.ok_or_else(refused)?.verify_client_cert(certificate, intermediates, now).map(drop)
    }

    pub(super) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).config)
    }
}

struct Files {
    certificate: Vec<u8>,
    key: zeroize::Zeroizing<Vec<u8>>,
    client_ca: Option<Vec<u8>>,
}

impl Files {
    fn read(settings: &TlsSettings) -> Result<Self, TlsError> {
        let bytes = |path: &Path| std::fs::read(path).map_err(|error| unreadable(path, error));
        Ok(Self {
            certificate: bytes(&settings.certificate)?,
            key: bytes(&settings.key)?.into(),
            client_ca: settings.clients.as_ref().map(|clients| bytes(&clients.ca)).transpose()?,
        })
    }

    fn digests(&self) -> [Hash; 3] {
        [sha256(&self.certificate), sha256(&self.key), sha256(self.client_ca.as_deref().unwrap_or_default())]
    }

    fn current(&self, settings: &TlsSettings, before: Option<&ServerConfig>) -> Result<Current, TlsError> {
        let verifier = self.verifier(settings)?;
        let config = Arc::new(self.config(settings, verifier.clone(), before)?);
        Ok(Current { config, verifier, digests: self.digests() })
    }

    fn verifier(&self, settings: &TlsSettings) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        let (Some(clients), Some(pem)) = (&settings.clients, &self.client_ca) else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&clients.ca, pem)? {
            roots.add(certificate).map_err(|error| unreadable(&clients.ca, error))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
        builder.build().map(Some).map_err(|error| unreadable(&clients.ca, error))
    }

    /// INVARIANT: rustls checks that the key belongs to the certificate before this returns.
    fn config(
        &self,
        settings: &TlsSettings,
        verifier: Option<Arc<dyn ClientCertVerifier>>,
        before: Option<&ServerConfig>,
    ) -> Result<ServerConfig, TlsError> {
        let chain = certificates(&settings.certificate, &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| unreadable(&settings.key, error))?;
        let versions: &[&SupportedProtocolVersion] = if settings.tls12 { &[&TLS13, &TLS12] } else { &[&TLS13] };
        let pair = |reason| TlsError::Pair {
            certificate: settings.certificate.display().to_string(),
            key: settings.key.display().to_string(),
            reason,
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).map_err(pair)?;
        let asks_clients = verifier.is_some();
        let builder = match verifier {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if asks_clients {
            // A resumed session has the certificate of the first handshake, which would not be checked again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            return Ok(config);
        }
        match before {
            // A session that was started before the files changed can be resumed.
            Some(before) => config.ticketer = Arc::clone(&before.ticketer),
            None => config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(pair)?,
        }
        Ok(config)
    }
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| unreadable(path, error))?;
    if found.is_empty() {
        return Err(unreadable(path, "there is no certificate in it"));
    }
    Ok(found)
}

fn unreadable(path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File { path: path.display().to_string(), reason: reason.to_string() }
}
