//! How secrets are accepted: as `material`, or inside `metadata` under the names that clients of the protocol use. In
//! both cases they are removed from everything that is stored unencrypted or shown.

use serde_json::{Map, Value};
use thiserror::Error;
use zeroize::Zeroize;

use super::AuthType;
use crate::arguments::shape;
use crate::redaction::Redactor;
use crate::secret::{Material, Secret};
use crate::secret_name::{is_secret, snake_case};
use crate::text::check_identifier;

/// The names under which secrets are accepted in `metadata`, at its top level or in its `auth` object, in any spelling
/// (`api_key`, `apiKey`, `API-Key`). Elsewhere, a value with the name or the format of a secret is refused, by the
/// rules that redact it in arguments.
const SECRET_NAMES: [&str; 14] = [
    "access_token",
    "api_key",
    "bearer_token",
    "client_id",
    "client_secret",
    "connection_string",
    "password",
    "private_key",
    "refresh_token",
    "secret",
    "secret_key",
    "signing_secret",
    "token",
    "username",
];
/// The maximum length of one secret field. Certificates with their keys fit; a backup does not.
const FIELD_LIMIT: usize = 64 * 1024;
const FIELD_COUNT_LIMIT: usize = 32;
/// A shorter secret would occur in ordinary words.
const SEARCHABLE: usize = 8;

/// Invalid material. No variant contains any of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MaterialError {
    #[error("`{path}` must be a string of 1 to {FIELD_LIMIT} bytes")]
    Field { path: String },
    #[error(
        "`material` must have at most {FIELD_COUNT_LIMIT} fields with short names of letters, digits and . _ : @ -"
    )]
    Name,
    #[error("duplicate secret `{name}`; send it once, in `material` or in `metadata`")]
    Twice { name: String },
    #[error("a credential of type {} requires {needs} in `material`", auth_type.as_str())]
    Incomplete {
        auth_type: AuthType,
        /// The missing fields.
        needs: &'static str,
    },
    /// A secret in a place where it would be shown.
    #[error("`{path}` looks like a secret and would be shown; put it into `material`")]
    Buried { path: String },
    /// A secret of the material that also occurs where it would be shown.
    #[error("`{path}` contains the secret `{name}` and would be shown; remove it")]
    Leak { path: String, name: String },
}

/// Parses an object of secret fields.
pub fn material_from_json(value: Value) -> Result<Material, MaterialError> {
    let mut material = Material::new();
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                take(&mut material, &name, "material", value)?;
            }
        }
        mut other => {
            wipe(&mut other);
            return Err(MaterialError::Field { path: "material".to_owned() });
        }
    }
    Ok(material)
}

/// Moves secrets in the metadata under known names into the material.
pub fn lift_secrets(metadata: &mut Map<String, Value>, material: &mut Material) -> Result<(), MaterialError> {
    lift_from(metadata, material, "metadata")?;
    if let Some(Value::Object(auth)) = metadata.get_mut("auth") {
        lift_from(auth, material, "metadata.auth")?;
    }
    metadata.iter().try_for_each(|(name, value)| refuse_buried(name, value, "metadata", ""))
}

/// Checks that the material fits the auth type. Absent material is valid: it can be added later.
pub fn check_material(auth_type: AuthType, material: &Material) -> Result<(), MaterialError> {
    if material.is_empty() {
        return Ok(());
    }
    let any = |names: &[&str]| names.iter().any(|name| material.get(name).is_some());
    let (fits, needs) = match auth_type {
        AuthType::ApiKey => (any(&["api_key", "token", "secret_key"]), "`api_key`"),
        AuthType::BasicAuth => (any(&["username"]) && any(&["password"]), "`username` and `password`"),
        AuthType::BearerToken => (any(&["token", "access_token", "bearer_token", "api_key"]), "`token`"),
        AuthType::ConnectionString => (any(&["connection_string"]), "`connection_string`"),
        AuthType::OAuth2ClientCredentials => {
            (any(&["client_id"]) && any(&["client_secret"]), "`client_id` and `client_secret`")
        }
        AuthType::OAuth2Token => {
            (any(&["access_token", "refresh_token", "token"]), "`access_token` or `refresh_token`")
        }
        AuthType::Webhook => (any(&["signing_secret", "secret"]), "`signing_secret`"),
        AuthType::Custom => (true, ""),
    };
    if fits { Ok(()) } else { Err(MaterialError::Incomplete { auth_type, needs }) }
}

/// Refuses metadata, and a label, that contain a secret of the material.
pub fn refuse_leaks(material: &Material, metadata: &Map<String, Value>, label: &str) -> Result<(), MaterialError> {
    let is_searched =
        |name: &str, secret: &Secret| secret.expose().len() >= SEARCHABLE && !is_public_field(name, secret);
    for (name, secret) in material.iter().filter(|(name, secret)| is_searched(name, secret)) {
        let leak = |path: String| MaterialError::Leak { path, name: name.to_owned() };
        let mut redactor = Redactor::none();
        redactor.add(secret);
        if redactor.hides(label) {
            return Err(leak("label".to_owned()));
        }
        for (key, value) in metadata {
            if redactor.hides(key) {
                return Err(leak("metadata".to_owned()));
            }
            if redactor.occurs_in(value) {
                return Err(leak(format!("metadata.{key}")));
            }
        }
    }
    Ok(())
}

/// Whether a field of the material accompanies a secret and is not secret itself: services name it in ordinary results,
/// and agents in ordinary arguments. Some services take a key as the user name, which is recognized by its format.
pub fn is_public_field(name: &str, value: &Secret) -> bool {
    let by_name = matches!(name, "account_id" | "client_id" | "scope" | "scopes" | "token_type" | "username");
    (by_name || name.ends_with("_expires_at")) && !shape::occurs(value.expose())
}

fn lift_from(members: &mut Map<String, Value>, material: &mut Material, path: &str) -> Result<(), MaterialError> {
    let known = |name: &&String| SECRET_NAMES.contains(&snake_case(name).as_str());
    let spelled: Vec<String> = members.keys().filter(known).cloned().collect();
    for name in spelled {
        match members.remove(&name) {
            None | Some(Value::Null) => {}
            // Some names are also those of settings, such as the source of the token.
            Some(value @ (Value::Object(_) | Value::Array(_))) if !SECRET_NAMES.contains(&name.as_str()) => {
                members.insert(name, value);
            }
            Some(value) => take(material, &snake_case(&name), path, value)?,
        }
    }
    Ok(())
}

/// Searches for secrets at any depth: strings under their names, and strings and names with their format. `client_id`
/// and `username` are also names of parameters, and not secrets by themselves.
fn refuse_buried(name: &str, value: &Value, path: &str, around: &str) -> Result<(), MaterialError> {
    let buried = || Err(MaterialError::Buried { path: format!("{path}.{name}") });
    match value {
        _ if shape::occurs(name) => Err(MaterialError::Buried { path: path.to_owned() }),
        Value::String(text) if shape::occurs(text) => buried(),
        Value::String(text) if is_secret(around, name) || SECRET_NAMES.contains(&snake_case(name).as_str()) => {
            let is_public = matches!(snake_case(name).as_str(), "client_id" | "username");
            if is_public || is_address(text) { Ok(()) } else { buried() }
        }
        Value::Array(elements) => elements.iter().try_for_each(|element| refuse_buried(name, element, path, around)),
        Value::Object(members) => {
            let path = format!("{path}.{name}");
            members.iter().try_for_each(|(inner, value)| refuse_buried(inner, value, &path, name))
        }
        _ => Ok(()),
    }
}

/// A URL or path: `authorization_url` has the name of a secret and is not one.
fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://") || text.starts_with('/')
}

fn take(material: &mut Material, name: &str, path: &str, mut value: Value) -> Result<(), MaterialError> {
    if check_identifier(name).is_err() || material.names().count() >= FIELD_COUNT_LIMIT {
        wipe(&mut value);
        return Err(MaterialError::Name);
    }
    match value {
        Value::String(text) if (1..=FIELD_LIMIT).contains(&text.len()) => {
            if material.insert(name.to_owned(), Secret::new(text)) {
                Ok(())
            } else {
                Err(MaterialError::Twice { name: name.to_owned() })
            }
        }
        mut other => {
            wipe(&mut other);
            Err(MaterialError::Field { path: format!("{path}.{name}") })
        }
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(elements) => elements.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lifted(metadata: Value) -> (Map<String, Value>, Material) {
        let Value::Object(mut metadata) = metadata else { panic!("metadata is an object") };
        let mut material = Material::new();
        lift_secrets(&mut metadata, &mut material).unwrap();
        (metadata, material)
    }

    #[test]
    fn known_names_are_lifted_and_gone_from_the_metadata() {
        let (metadata, material) = lifted(json!({
            "base_url": "https://api.example.com", "api_key": "sk_live_1", "auth": {"location": "header", "password": "p"},
            "token_url": "https://example.com/token", "refresh_token": null
        }));
        assert_eq!(material.names().collect::<Vec<_>>(), ["api_key", "password"]);
        assert_eq!(
            Value::Object(metadata),
            json!({"base_url": "https://api.example.com", "auth": {"location": "header"}, "token_url": "https://example.com/token"})
        );
    }

    #[test]
    fn a_secret_buried_in_the_metadata_is_refused_by_its_place() {
        let buried = |metadata: Value| {
            let Value::Object(mut metadata) = metadata else { panic!("metadata is an object") };
            lift_secrets(&mut metadata, &mut Material::new()).err().map(|error| error.to_string())
        };
        let error = buried(json!({"upstreams": [{"oauth": {"client_secret": "s3cret"}}]})).unwrap();
        assert_eq!(
            error,
            "`metadata.upstreams.oauth.client_secret` looks like a secret and would be shown; put it into `material`"
        );
        assert_eq!(buried(json!({"endpoints": {"token": {"path": "/token"}}, "mapping": {"username": "query"}})), None);
    }

    #[test]
    fn other_spellings_of_known_names_are_lifted_and_other_secrets_refused() {
        let (metadata, material) = lifted(json!({"apiKey": "k-1", "auth": {"Client-Secret": "s-1"}, "region": "eu"}));
        assert_eq!(material.names().collect::<Vec<_>>(), ["api_key", "client_secret"]);
        assert_eq!(Value::Object(metadata), json!({"auth": {}, "region": "eu"}));
        let refused = |metadata: Value| {
            let Value::Object(mut metadata) = metadata else { panic!("metadata is an object") };
            lift_secrets(&mut metadata, &mut Material::new()).is_err()
        };
        for buried in [
            json!({"headers": {"X-Api-Key": "abc"}}),
            json!({"headers": [{"Authorization": "abc"}]}),
            json!({"X-Api-Key": "abc"}),
            json!({"dsn": "postgres://ann:hunter2@db.internal/app"}),
            json!({"note": "use sk_live_4eC39HqLyjWDarjtT1zdp7dc"}),
            json!({"options": {"userPassword": "x"}}),
            json!({"map": {"ghp_abcdefghijklmnopqrstuvwxyz0123456789": 1}}),
        ] {
            assert!(refused(buried.clone()), "{buried}");
        }
        for plain in [
            json!({"authorization_url": "https://a.example/auth", "token_url": "https://a.example/t", "max_tokens": 5}),
            json!({"auth": {"header_name": "X-Api-Key", "location": "header", "header_prefix": "Token"}}),
            json!({"oauth": {"client_id": "c-1"}, "token_grant_type": "refresh_token", "dsn": "postgres://db/app"}),
        ] {
            assert!(!refused(plain.clone()), "{plain}");
        }
    }

    #[test]
    fn a_user_name_is_public_unless_it_is_a_key() {
        let secret = |text: &str| Secret::new(text.to_owned());
        assert!(is_public_field("username", &secret("ann@example.com")));
        assert!(!is_public_field("username", &secret("sk_live_4eC39HqLyjWDarjtT1zdp7dc")));
        assert!(is_public_field("access_expires_at", &secret("2030-01-01")));
        assert!(!is_public_field("password", &secret("ann")));
    }

    #[test]
    fn a_secret_that_also_stands_in_the_metadata_is_refused_without_being_shown() {
        let (metadata, material) =
            lifted(json!({"api_key": "zebra-crossing", "headers": {"X": ["see zebra%2Dcrossing"]}}));
        let error = refuse_leaks(&material, &metadata, "label").unwrap_err();
        assert_eq!(error.to_string(), "`metadata.headers` contains the secret `api_key` and would be shown; remove it");
    }

    #[test]
    fn a_secret_given_twice_or_as_a_number_is_refused() {
        let mut material = material_from_json(json!({"api_key": "one"})).ok().unwrap();
        let Value::Object(mut metadata) = json!({"api_key": "two"}) else { panic!("an object") };
        assert!(matches!(lift_secrets(&mut metadata, &mut material), Err(MaterialError::Twice { .. })));
        assert!(matches!(material_from_json(json!({"pin": 1234})), Err(MaterialError::Field { .. })));
        assert!(matches!(material_from_json(json!({"pin": ""})), Err(MaterialError::Field { .. })));
    }

    #[test]
    fn the_usual_fields_of_an_auth_type_are_what_it_needs() {
        for auth_type in AuthType::ALL {
            let mut material = Material::new();
            for field in auth_type.usual_fields() {
                assert!(SECRET_NAMES.contains(field), "{field}");
                material.insert((*field).to_owned(), Secret::new("x".to_owned()));
            }
            assert_eq!(material.is_empty(), auth_type == AuthType::Custom);
            assert_eq!(check_material(auth_type, &material), Ok(()));
        }
    }

    #[test]
    fn each_auth_type_says_what_it_needs() {
        let material = material_from_json(json!({"username": "ann"})).ok().unwrap();
        let error = check_material(AuthType::BasicAuth, &material).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a credential of type basic_auth requires `username` and `password` in `material`"
        );
        assert_eq!(check_material(AuthType::Custom, &material), Ok(()));
        assert_eq!(check_material(AuthType::Webhook, &Material::new()), Ok(()));
    }
}
