//! An issuer of access tokens: its metadata, its keys, which a test can replace, and a token endpoint.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::token_server::client_of_header;
use super::{CLIENT_ID, CLIENT_SECRET, Received, Reply, Upstream};
use crate::token_signer::TokenSigner;

/// The end of the tokens of the token endpoint, which reads no clock: the year 2100.
const END: i64 = 4_102_444_800;

/// An issuer at `http://ADDRESS`.
pub struct TokenIssuer {
    upstream: Upstream,
    keys: Arc<Mutex<Vec<Value>>>,
}

impl TokenIssuer {
    /// Publishes the keys of these signers, and issues nothing.
    pub fn start(signers: &[&TokenSigner]) -> Self {
        let issuer = Self::of(None);
        issuer.publish(signers);
        issuer
    }

    /// Issues tokens of this signer to [`CLIENT_ID`], for the resource and with the scopes that it asks for.
    pub fn issuing(signer: TokenSigner) -> Self {
        let signer = Arc::new(signer);
        let issuer = Self::of(Some(Arc::clone(&signer)));
        issuer.publish(&[&signer]);
        issuer
    }

    fn of(signer: Option<Arc<TokenSigner>>) -> Self {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let published = Arc::clone(&keys);
        let upstream = Upstream::start(move |request| {
            let issuer = format!("http://{}", request.header("host").unwrap_or_default());
            match (request.path(), &signer) {
                ("/.well-known/openid-configuration" | "/.well-known/oauth-authorization-server", _) => {
                    Reply::json(200, metadata(&issuer))
                }
                ("/keys", _) => Reply::json(200, json!({"keys": *published.lock().expect("a lock without a panic")})),
                ("/token", Some(signer)) => issue(request, &issuer, signer),
                _ => Reply::json(404, json!({"error": "not_found"})),
            }
        });
        Self { upstream, keys }
    }

    /// Publishes the keys of these signers, and no others.
    pub fn publish(&self, signers: &[&TokenSigner]) {
        *self.keys.lock().expect("a lock without a panic") = signers.iter().map(|signer| signer.jwk()).collect();
    }

    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The claim `iss` of its tokens.
    pub fn url(&self) -> String {
        self.upstream.url()
    }
}

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/keys"),
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["code"],
    })
}

fn issue(request: &Received, issuer: &str, signer: &TokenSigner) -> Reply {
    let form = request.form();
    let field = |name: &str| form.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value.as_str());
    let is_client = client_of_header(request) == Some((CLIENT_ID.to_owned(), CLIENT_SECRET.to_owned()));
    if !is_client || field("grant_type") != "client_credentials" {
        return Reply::json(401, json!({"error": "invalid_client"}));
    }
    let claims = json!({
        "iss": issuer,
        "sub": CLIENT_ID,
        "client_id": CLIENT_ID,
        "aud": field("resource"),
        "scope": field("scope"),
        "exp": END,
    });
    let token = signer.token(&claims);
    Reply::json(
        200,
        json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "scope": field("scope")}),
    )
}
