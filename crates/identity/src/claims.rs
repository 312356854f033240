//! The claims of a token, checked against what the operator says about its issuer.

use std::time::Duration;

use serde_json::{Map, Number, Value};
use toolgate_gate::ports::tokens::VerifiedToken;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::time::Timestamp;
use toolgate_model::token_subject::{SubjectName, TokenSubject};

use crate::issuer::IssuerSettings;
use crate::token::invalid;

/// How far the clocks of an issuer and of the gate may differ.
pub(crate) const LEEWAY: Duration = Duration::from_secs(30);

type Claims = Map<String, Value>;

/// Checks all claims but the scopes, and returns what they say.
///
/// INVARIANT: it says something about the bearer only if the signature is verified too.
pub(crate) fn check(claims: &Claims, issuer: &IssuerSettings, now: Timestamp) -> Result<VerifiedToken, Refusal> {
    let ends_at = times(claims, now)?;
    audience(claims, &issuer.audiences)?;
    // A token that only its rightful sender may use would be usable by anybody here.
    if claims.contains_key("cnf") {
        return Err(invalid("it is bound to a key of its sender (`cnf`), which is not supported; use a bearer token"));
    }
    if claims.contains_key("at_hash") || claims.contains_key("c_hash") {
        return Err(invalid("it is an ID token; send an access token"));
    }
    let claim = &issuer.subject_claim;
    let subject = claims.get(claim).and_then(Value::as_str).ok_or_else(|| invalid(&format!("it has no `{claim}`")))?;
    let subject = SubjectName::parse(subject).map_err(|reason| invalid(&format!("`{claim}`: {reason}")))?;
    let subject = TokenSubject { issuer: issuer.issuer.clone(), subject };
    Ok(VerifiedToken { identity: subject.digest(), subject, tenant: issuer.tenant.clone(), ends_at })
}

/// Refuses a token without all scopes that the operator requires. All of them are named, so that a client can ask for
/// them at once.
pub(crate) fn check_scopes(claims: &Claims, required: &[String]) -> Result<(), Refusal> {
    let held: Vec<&str> = ["scope", "scp"].iter().filter_map(|name| claims.get(*name)).flat_map(words).collect();
    if required.iter().all(|scope| held.contains(&scope.as_str())) {
        return Ok(());
    }
    let reason = format!("the access token does not have all required scopes; ask for `{}`", required.join(" "));
    Err(Refusal::new(Code::TokenScopeInsufficient, reason).with("required_token_scopes", required))
}

fn times(claims: &Claims, now: Timestamp) -> Result<Timestamp, Refusal> {
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(Value::Number(seconds)) => timestamp(seconds).map(Some).ok_or(name.to_owned()),
        Some(_) => Err(name.to_owned()),
    };
    let time = |name: &str| time(name).map_err(|name| invalid(&format!("`{name}` is not a time in seconds")));
    let ends_at = time("exp")?.ok_or_else(|| invalid("it has no `exp`"))?.plus(LEEWAY);
    if ends_at <= now {
        return Err(Refusal::new(Code::TokenExpired, "the access token has expired; send a new one"));
    }
    if time("nbf")?.is_some_and(|begin| begin.minus(LEEWAY) > now) {
        return Err(invalid("it is not valid yet (`nbf`); check the clocks of the issuer and of the gate"));
    }
    if time("iat")?.is_some_and(|issued| issued.minus(LEEWAY) > now) {
        return Err(invalid("it was issued in the future (`iat`); check the clocks of the issuer and of the gate"));
    }
    Ok(ends_at)
}

/// A NumericDate may have a fraction; then the earlier second counts.
fn timestamp(seconds: &Number) -> Option<Timestamp> {
    let whole = match seconds.as_i64() {
        Some(whole) => whole,
        None => {
            let text = seconds.to_string();
            text.split_once('.').filter(|_| !text.contains(['e', 'E'])).and_then(|(whole, _)| whole.parse().ok())?
        }
    };
    Timestamp::from_millis(whole.checked_mul(1000).filter(|_| whole >= 0)?).ok()
}

fn audience(claims: &Claims, ours: &[String]) -> Result<(), Refusal> {
    let is_ours = |audience: &Value| audience.as_str().is_some_and(|audience| ours.iter().any(|own| own == audience));
    let addressed = match claims.get("aud") {
        Some(Value::Array(audiences)) => audiences.iter().any(is_ours),
        Some(audience) => is_ours(audience),
        None => false,
    };
    let expected = ours.first().map_or("", String::as_str);
    addressed
        .then_some(())
        .ok_or_else(|| invalid(&format!("it is not for this gate; ask for the resource `{expected}`")))
}

/// Scopes in either form: one text with spaces, or a list.
fn words(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => text.split(' ').collect(),
        Value::Array(scopes) => scopes.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::principal::TenantId;
    use toolgate_model::token_subject::IssuerUrl;

    use super::*;
    use crate::algorithm::SignatureAlgorithm;

    const NOW: i64 = 1_770_000_000;

    fn issuer() -> IssuerSettings {
        IssuerSettings {
            issuer: IssuerUrl::parse("https://login.example.com").unwrap(),
            audiences: vec!["https://gate.example.com/mcp".to_owned()],
            algorithms: SignatureAlgorithm::USUAL.to_vec(),
            jwks_uri: None,
            subject_claim: "sub".to_owned(),
            required_scopes: Vec::new(),
            tenant: TenantId::default_tenant(),
        }
    }

    fn checked(change: Value) -> Result<VerifiedToken, Refusal> {
        let mut claims = json!({"sub": "ann", "aud": "https://gate.example.com/mcp", "exp": NOW + 60, "iat": NOW});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        check(claims.as_object().unwrap(), &issuer(), Timestamp::from_millis(NOW * 1000).unwrap())
    }

    #[test]
    fn a_token_says_who_its_bearer_is_until_it_ends() {
        let token = checked(json!({})).unwrap();
        assert_eq!(token.subject.to_string(), "https://login.example.com ann");
        assert_eq!(token.ends_at, Timestamp::from_millis((NOW + 90) * 1000).unwrap());
        for fine in [json!({"exp": NOW - 29}), json!({"nbf": NOW + 29}), json!({"iat": NOW + 30}), json!({"iat": null})]
        {
            assert!(checked(fine.clone()).is_ok(), "{fine}");
        }
        assert_eq!(checked(json!({"exp": 1_770_000_060.9})).unwrap().ends_at, token.ends_at);
    }

    #[test]
    fn a_token_outside_its_time_is_refused() {
        assert_eq!(checked(json!({"exp": NOW - 30})).unwrap_err().code(), Code::TokenExpired);
        for wrong in [
            json!({"exp": null}),
            json!({"exp": "tomorrow"}),
            json!({"exp": -1}),
            json!({"exp": 1e300}),
            json!({"exp": u64::MAX}),
            json!({"nbf": NOW + 31}),
            json!({"nbf": "0"}),
            json!({"iat": NOW + 31}),
        ] {
            assert_eq!(checked(wrong.clone()).unwrap_err().code(), Code::TokenInvalid, "{wrong}");
        }
    }

    #[test]
    fn a_token_for_somebody_else_or_of_another_kind_is_refused() {
        assert!(checked(json!({"aud": ["other", "https://gate.example.com/mcp"]})).is_ok());
        for wrong in [
            json!({"aud": null}),
            json!({"aud": []}),
            json!({"aud": "client-1"}),
            json!({"aud": "https://gate.example.com/mcp/"}),
            json!({"aud": "https://GATE.example.com/mcp"}),
            json!({"aud": {"https://gate.example.com/mcp": 1}}),
            json!({"sub": null}),
            json!({"sub": 7}),
            json!({"sub": ""}),
            json!({"sub": "ann\u{200b}"}),
            json!({"cnf": {"jkt": "x"}}),
            json!({"at_hash": "x"}),
        ] {
            let refusal = checked(wrong.clone()).unwrap_err();
            assert_eq!(refusal.code(), Code::TokenInvalid, "{wrong}");
            assert!(!refusal.reason().contains("ann"), "{refusal}");
        }
    }

    #[test]
    fn required_scopes_are_found_in_either_form_and_named_all_at_once() {
        let required = ["tools".to_owned(), "admin".to_owned()];
        for held in [
            json!({"scope": "admin x tools"}),
            json!({"scp": ["tools", "admin"]}),
            json!({"scope": "tools", "scp": "admin"}),
        ] {
            assert!(check_scopes(held.as_object().unwrap(), &required).is_ok(), "{held}");
        }
        for held in
            [json!({}), json!({"scope": "tools"}), json!({"scope": "tools,admin"}), json!({"scope": 7, "scp": [1]})]
        {
            let refusal = check_scopes(held.as_object().unwrap(), &required).unwrap_err();
            assert_eq!(refusal.code(), Code::TokenScopeInsufficient, "{held}");
            assert!(refusal.reason().contains("tools admin"), "{refusal}");
        }
    }
}
