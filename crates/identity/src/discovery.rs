//! Where the keys of an issuer are: by its metadata, which must be its own (OpenID Connect Discovery, RFC 8414).

use serde_json::Value;
use toolgate_model::strict_json;
use toolgate_model::token_subject::IssuerUrl;

/// The addresses of the metadata: that of OpenID Connect first, which more issuers have.
pub(crate) fn addresses(issuer: &IssuerUrl) -> Vec<String> {
    let text = issuer.as_str().trim_end_matches('/');
    let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
    let (host, path) = rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    vec![
        format!("{text}/.well-known/openid-configuration"),
        format!("{scheme}://{host}/.well-known/oauth-authorization-server{path}"),
    ]
}

/// The address of the keys. Metadata of another issuer is refused: it would make its keys ours.
pub(crate) fn jwks_uri(body: &[u8], issuer: &IssuerUrl) -> Result<String, &'static str> {
    let metadata = strict_json::parse(body).map_err(|_| "its metadata is not valid JSON")?;
    let text = |name: &str| metadata.get(name).and_then(Value::as_str);
    if text("issuer") != Some(issuer.as_str()) {
        return Err("its metadata names another issuer; configure it exactly as it names itself");
    }
    text("jwks_uri").map(str::to_owned).ok_or("its metadata has no `jwks_uri`; configure it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(text: &str) -> IssuerUrl {
        IssuerUrl::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_below_the_issuer_or_beside_it() {
        let found = addresses(&issuer("https://login.example.com/tenant/1/"));
        assert_eq!(
            found,
            [
                "https://login.example.com/tenant/1/.well-known/openid-configuration",
                "https://login.example.com/.well-known/oauth-authorization-server/tenant/1",
            ]
        );
        let found = addresses(&issuer("http://127.0.0.1:4000"));
        assert_eq!(found[1], "http://127.0.0.1:4000/.well-known/oauth-authorization-server");
    }

    #[test]
    fn metadata_of_another_issuer_is_refused_to_the_byte() {
        let own = issuer("https://login.example.com");
        let read = |text: &str| jwks_uri(text.as_bytes(), &own);
        let fine = r#"{"issuer": "https://login.example.com", "jwks_uri": "https://keys.example.com/"}"#;
        assert_eq!(read(fine).unwrap(), "https://keys.example.com/");
        for wrong in ["https://login.example.com/", "https://LOGIN.example.com", "https://evil.example"] {
            assert!(read(&fine.replace("https://login.example.com", wrong)).is_err(), "{wrong}");
        }
        assert!(read(r#"{"issuer": "https://login.example.com"}"#).is_err());
        assert!(read("{}").is_err() && read("no").is_err());
    }
}
