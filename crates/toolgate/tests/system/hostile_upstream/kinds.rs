//! One credential of every kind, with the parts of it that must not come back.

use serde_json::{Value, json};
use toolgate_testkit::upstream::Upstream;

use crate::world::merged;

/// A kind of credential.
pub struct Kind {
    pub name: &'static str,
    auth_type: &'static str,
    material: Value,
    metadata: Value,
    /// What is secret in it, by name.
    pub secrets: Vec<(String, String)>,
}

impl Kind {
    fn new(name: &'static str, auth_type: &'static str, material: Value, metadata: Value) -> Self {
        let is_secret = |field: &str| !matches!(field, "username" | "client_id");
        let fields = material.as_object().unwrap().iter().filter(|(field, _)| is_secret(field));
        let secrets = fields.map(|(field, secret)| (format!("{name}: {field}"), secret.as_str().unwrap().to_owned()));
        let secrets = secrets.collect();
        Self { name, auth_type, material, metadata, secrets }
    }

    /// The credential, for this service.
    pub fn credential(&self, upstream: &Upstream) -> Value {
        let metadata = merged(json!({"base_url": upstream.url()}), self.metadata.clone());
        json!({"auth_type": self.auth_type, "material": self.material, "metadata": metadata})
    }
}

/// All kinds that are presented without a token endpoint. What stands in a header is ASCII; the rest need not be.
pub fn all() -> Vec<Kind> {
    let api_key = |name, number: u32, auth: Value| {
        let material = json!({"api_key": format!("sk{number}\"v/k+8\\~%&=W?x{}", number * 7919)});
        Kind::new(name, "api_key", material, json!({"auth": auth}))
    };
    vec![
        api_key("a key", 1, json!({})),
        api_key("a key in its own header", 2, json!({"header_name": "X-Api-Key"})),
        api_key("a key behind a prefix", 3, json!({"header_name": "X-Auth", "header_prefix": "Token"})),
        Kind::new(
            "a key in the query",
            "api_key",
            json!({"api_key": "sk4 é\"/k+8\\~%&=W?x😀'<\t>"}),
            json!({"auth": {"location": "query", "query_param": "key"}}),
        ),
        Kind::new("a bearer token", "bearer_token", json!({"token": "eyJhbGciOi.J9.c2lnbmF0dXJl-_x"}), json!({})),
        Kind::new(
            "a password",
            "basic_auth",
            json!({"username": "ann", "password": "pa:ss/wörd+8\\\"%~=x"}),
            json!({}),
        ),
        Kind::new(
            "OAuth2 tokens",
            "oauth2_token",
            json!({"access_token": "at_5f/9+0=a", "refresh_token": "rt_7~\"k%é", "client_id": "the-client",
                "client_secret": "cs_1\\2&3?4"}),
            json!({}),
        ),
        Kind::new("a signing secret", "webhook", json!({"signing_secret": "hook/é+\"8\\~%&=W?x"}), json!({})),
        Kind::new(
            "a signing secret of the standard",
            "webhook",
            json!({"signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}),
            json!({}),
        ),
        Kind::new(
            "several secrets at once",
            "custom",
            json!({"api_key": "first/secret+1", "private_key": PRIVATE_KEY, "pin": "918273645546372819"}),
            json!({"adapter": "rest"}),
        ),
    ]
}

/// In the shape of a key file, and none.
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n\
    aW5kZWVkL25vdCthK2tleStidXQvbGluZXMrb2YvdGhlK3NhbWUrbGVuZ3Ro\n-----END PRIVATE KEY-----";
