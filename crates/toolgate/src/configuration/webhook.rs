//! The webhook of approvals: its address, and the secret that is never in the file.

use std::sync::Arc;

use toolgate_cli::environment::Environment;
use toolgate_egress::standard_webhooks::SignatureKey;
use url::Url;

use super::resolve::Resolved;
use super::{ConfigurationError, keys, take_secret};
use crate::webhooks::Details;

/// The variable of the secret that the messages of the webhook are signed with.
const WEBHOOK_SECRET: &str = "TOOLGATE_APPROVALS_WEBHOOK_SECRET";
/// The minimum length.
const MIN_SECRET: usize = 24;

pub struct WebhookSettings {
    pub url: Url,
    /// The key of the signatures.
    pub key: Arc<SignatureKey>,
    /// How much of a call is sent.
    pub details: Details,
    /// Where people reach this gate.
    pub public_url: Option<String>,
}

/// Reads it; an address and a secret are given together or not at all.
pub(super) fn read(
    resolved: &mut Resolved,
    environment: &mut Environment,
    public_url: Option<String>,
) -> Result<Option<WebhookSettings>, ConfigurationError> {
    let secret = take_secret(environment, WEBHOOK_SECRET)?;
    let (url, secret) = match (resolved.hook_url(&keys::APPROVALS_WEBHOOK_URL), secret) {
        (Some(url), Some(secret)) => (url, secret),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            let problem = format!("approvals.webhook_url needs a secret to sign with: set {WEBHOOK_SECRET}");
            return Err(ConfigurationError::one(problem));
        }
        // A secret that is given and not used would leave its owner believing that something is signed.
        (None, Some(_)) => {
            let problem =
                format!("{WEBHOOK_SECRET} is set, but approvals.webhook_url is not; set it, or unset the secret");
            return Err(ConfigurationError::one(problem));
        }
    };
    let weak = || {
        let problem = format!(
            "{WEBHOOK_SECRET} must have at least {MIN_SECRET} characters, or be whsec_ and the base64 of at least \
             {MIN_SECRET} bytes"
        );
        ConfigurationError::one(problem)
    };
    let key = SignatureKey::of(&secret).map_err(|_| weak())?;
    // Four letters of base64 are three bytes.
    let least = if secret.expose().starts_with("whsec_") { MIN_SECRET / 3 * 4 + "whsec_".len() } else { MIN_SECRET };
    if secret.expose().chars().count() < least {
        return Err(weak());
    }
    let details = match resolved.text(&keys::APPROVALS_WEBHOOK_DETAILS)?.as_str() {
        "description" => Details::Description,
        _ => Details::None,
    };
    Ok(Some(WebhookSettings { url, key: Arc::new(key), details, public_url }))
}
