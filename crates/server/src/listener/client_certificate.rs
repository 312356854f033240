//! The certificate that a client presented on its connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::certificate::CertificateName;

use super::tls::Tls;

/// How long a certificate counts as verified: connections may outlive it by years.
const VERIFIED_FOR: Duration = Duration::from_secs(10);

/// A certificate that the handshake has verified.
pub(crate) struct VerifiedCertificate {
    name: CertificateName,
    chain: Vec<CertificateDer<'static>>,
    tls: Arc<Tls>,
    verified: Mutex<Verified>,
}

/// When a certificate was verified last, and by which configuration.
struct Verified {
    at: Instant,
    by: Arc<ServerConfig>,
}

impl VerifiedCertificate {
    /// That of a connection, where its client presented one.
    pub(super) fn of(stream: &TlsStream<TcpStream>, tls: &Arc<Tls>, by: Arc<ServerConfig>) -> Option<Self> {
        let chain = stream.get_ref().1.peer_certificates()?.to_vec();
        let der = chain.first()?;
        // The handshake has parsed it, so that it cannot fail here.
        let parsed = webpki::EndEntityCert::try_from(der).ok()?;
        let name = CertificateName::of(der, parsed.valid_uri_names());
        Some(Self { name, chain, tls: Arc::clone(tls), verified: Mutex::new(Verified { at: Instant::now(), by }) })
    }

    pub(crate) fn name(&self) -> &CertificateName {
        &self.name
    }

    /// Refuses a certificate that a handshake would no longer accept.
    pub(super) fn check_again(&self) -> Result<(), Refusal> {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.tls.current();
        if verified.at.elapsed() < VERIFIED_FOR && Arc::ptr_eq(&verified.by, &current) {
            return Ok(());
        }
        let ended = |error| {
            let reason = format!(
                "the client certificate of this connection is no longer valid: {error}; connect again with a \
                    new one"
            );
            Refusal::new(Code::Unauthenticated, reason)
        };
        self.tls.verify_again(&self.chain).map_err(ended)?;
        *verified = Verified { at: Instant::now(), by: current };
        Ok(())
    }
}
