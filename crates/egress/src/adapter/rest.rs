//! Plain HTTP services with a fixed credential: a key or token in a header or in the query, or a user name and password.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use toolgate_gate::ports::source::SourceFailure;
use toolgate_model::connection::AuthPlacement;
use toolgate_model::credential::AuthType;
use toolgate_model::secret::{Material, Secret};
use zeroize::Zeroizing;

use super::{Adapter, OutboundCall, first_field, not_executable, secret_header};
use crate::body::InboundResponse;
use crate::client::GuardedClient;
use toolgate_model::redaction::Redactor;

pub(crate) struct Rest;

#[async_trait]
impl Adapter for Rest {
    async fn carry_out(
        &self,
        client: &GuardedClient,
        outbound: OutboundCall<'_>,
        redactor: &mut Redactor,
    ) -> Result<InboundResponse, SourceFailure> {
        let secret = match outbound.auth_type {
            _ if *outbound.placement == AuthPlacement::Nowhere => Secret::new(String::new()),
            AuthType::BasicAuth => {
                let pair = user_and_password(outbound.material)?;
                // A short password is not searched in encodings. Together with the user name it is.
                redactor.add(&pair);
                Secret::new(STANDARD.encode(pair.expose()))
            }
            auth_type => presented(auth_type, outbound.material)?,
        };
        present(client, &outbound, &secret).await
    }
}

/// Sends the rendered request with this secret where the credential is put.
pub(super) async fn present(
    client: &GuardedClient,
    outbound: &OutboundCall<'_>,
    secret: &Secret,
) -> Result<InboundResponse, SourceFailure> {
    match outbound.placement {
        AuthPlacement::Header { name, prefix } => {
            let value = Zeroizing::new(match prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
                Some(prefix) => format!("{prefix} {}", secret.expose()),
                None => secret.expose().to_owned(),
            });
            let header = secret_header(name, &value)?;
            outbound.send(client, &outbound.request.url, vec![header]).await
        }
        AuthPlacement::Query { name } => {
            let mut url = outbound.request.url.clone();
            url.query_pairs_mut().append_pair(name, secret.expose());
            outbound.send(client, &url, Vec::new()).await
        }
        AuthPlacement::Nowhere => outbound.send(client, &outbound.request.url, Vec::new()).await,
    }
}

/// The value to present, if it is a field of the material.
fn presented(auth_type: AuthType, material: &Material) -> Result<Secret, SourceFailure> {
    let names: &[&str] = match auth_type {
        AuthType::BearerToken => &["token", "access_token", "bearer_token", "api_key"],
        _ => &["api_key", "token", "secret_key", "access_token"],
    };
    first_field(material, names).map(|secret| Secret::new(secret.expose().to_owned()))
}

fn user_and_password(material: &Material) -> Result<Secret, SourceFailure> {
    let username = first_field(material, &["username"])?.expose();
    let password = first_field(material, &["password"])?.expose();
    if username.contains(':') {
        return Err(not_executable("a user name with a colon cannot be sent as basic authentication"));
    }
    Ok(Secret::new(format!("{username}:{password}")))
}
