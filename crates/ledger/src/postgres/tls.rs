//! TLS to the database, verified with the system's root certificates, as the URL's `sslmode` requires.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::OpenError;

/// `None` if the URL does not request TLS. Without `sslmode`, TLS is used if the server offers it.
pub(super) fn connector(config: &Config) -> Result<Option<MakeRustlsConnect>, OpenError> {
    if config.get_ssl_mode() == SslMode::Disable {
        return Ok(None);
    }
    match client_config() {
        Ok(client) => Ok(Some(MakeRustlsConnect::new(client))),
        // A machine without root certificates can still use a server that does not offer TLS.
        Err(_) if config.get_ssl_mode() == SslMode::Prefer => Ok(None),
        Err(error) => Err(OpenError::Tls(error.to_string())),
    }
}

fn client_config() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?;
    Ok(builder.with_no_client_auth())
}
