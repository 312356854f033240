//! How secrets come in: as `material`, or inside `metadata` under the names that clients of the protocol use. Either way
//! they are taken out of everything that is stored in the clear or shown.

use serde_json::{Map, Value};
use thiserror::Error;
use zeroize::Zeroize;

use super::AuthType;
use crate::secret::{Material, Secret};
use crate::text::check_identifier;

/// The names under which secrets are known to arrive in `metadata`, at its top or in its `auth` object. Under the same names
/// deeper down nobody would look for them: a text there is refused.
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
/// One secret field. Certificates with their keys fit; a backup does not.
const FIELD_LIMIT: usize = 64 * 1024;
const FIELD_COUNT_LIMIT: usize = 32;
/// A shorter secret would be found in ordinary words.
const SEARCHABLE: usize = 8;

/// Material that cannot be taken. No variant carries any of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MaterialError {
    /// A field that is no text.
    #[error("`{path}` must be a text of 1 to {FIELD_LIMIT} bytes")]
    Field {
        /// Which field.
        path: String,
    },
    /// A field whose name cannot be kept.
    #[error(
        "the names of material fields are short: letters, digits and . _ : @ -, at most {FIELD_COUNT_LIMIT} fields"
    )]
    Name,
    /// The same field twice.
    #[error("`{name}` is given twice; send each secret once, in `material` or in `metadata`")]
    Twice {
        /// Which field.
        name: String,
    },
    /// Material that the auth type cannot use.
    #[error("a credential of type {} needs {needs} in `material`", auth_type.as_str())]
    Incomplete {
        /// The type.
        auth_type: AuthType,
        /// What is missing, in words.
        needs: &'static str,
    },
    /// A secret where it would not be found, and be shown.
    #[error("`{path}` looks like a secret, and would be shown; put it into `material`")]
    Buried {
        /// Where.
        path: String,
    },
    /// A secret that also stands where it would be shown.
    #[error("`{path}` contains the secret `{name}`, and would be shown; leave it out")]
    Leak {
        /// Where.
        path: String,
        /// Which secret.
        name: String,
    },
}

/// Takes an object of secret fields.
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

/// Moves the secrets that stand in the metadata under known names into the material.
pub fn lift_secrets(metadata: &mut Map<String, Value>, material: &mut Material) -> Result<(), MaterialError> {
    lift_from(metadata, material, "metadata")?;
    if let Some(Value::Object(auth)) = metadata.get_mut("auth") {
        lift_from(auth, material, "metadata.auth")?;
    }
    metadata.iter().try_for_each(|(name, value)| refuse_buried(name, value, "metadata"))
}

/// Checks that the material fits the auth type. No material at all is no mistake: it can come later.
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

/// Refuses metadata, and a label, in which a secret of the material still stands.
pub fn refuse_leaks(material: &Material, metadata: &Map<String, Value>, label: &str) -> Result<(), MaterialError> {
    for (name, secret) in material.iter().filter(|(_, secret)| secret.expose().len() >= SEARCHABLE) {
        let leak = |path: String| MaterialError::Leak { path, name: name.to_owned() };
        if label.contains(secret.expose()) {
            return Err(leak("label".to_owned()));
        }
        for (key, value) in metadata {
            if key.contains(secret.expose()) || contains(value, secret.expose()) {
                let shown =
                    if key.contains(secret.expose()) { "metadata".to_owned() } else { format!("metadata.{key}") };
                return Err(leak(shown));
            }
        }
    }
    Ok(())
}

fn lift_from(members: &mut Map<String, Value>, material: &mut Material, path: &str) -> Result<(), MaterialError> {
    for name in SECRET_NAMES {
        match members.remove(name) {
            None | Some(Value::Null) => {}
            Some(value) => take(material, name, path, value)?,
        }
    }
    Ok(())
}

/// Looks for texts under secret names at any depth. `client_id` and `username` are also names of parameters, and no
/// secrets by themselves.
fn refuse_buried(name: &str, value: &Value, path: &str) -> Result<(), MaterialError> {
    match value {
        Value::String(_) if SECRET_NAMES.contains(&name) && !matches!(name, "client_id" | "username") => {
            Err(MaterialError::Buried { path: format!("{path}.{name}") })
        }
        Value::Array(elements) => elements.iter().try_for_each(|element| refuse_buried(name, element, path)),
        Value::Object(members) => {
            let path = format!("{path}.{name}");
            members.iter().try_for_each(|(name, value)| refuse_buried(name, value, &path))
        }
        _ => Ok(()),
    }
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

fn contains(value: &Value, secret: &str) -> bool {
    match value {
        Value::String(text) => text.contains(secret),
        Value::Array(elements) => elements.iter().any(|element| contains(element, secret)),
        Value::Object(members) => members.iter().any(|(key, value)| key.contains(secret) || contains(value, secret)),
        _ => false,
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
            "`metadata.upstreams.oauth.client_secret` looks like a secret, and would be shown; put it into `material`"
        );
        assert_eq!(buried(json!({"endpoints": {"token": {"path": "/token"}}, "mapping": {"username": "query"}})), None);
    }

    #[test]
    fn a_secret_that_also_stands_in_the_metadata_is_refused_without_being_shown() {
        let (metadata, material) =
            lifted(json!({"api_key": "sk_live_123456", "headers": {"X": ["Bearer sk_live_123456"]}}));
        let error = refuse_leaks(&material, &metadata, "label").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`metadata.headers` contains the secret `api_key`, and would be shown; leave it out"
        );
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
    fn each_auth_type_says_what_it_needs() {
        let material = material_from_json(json!({"username": "ann"})).ok().unwrap();
        let error = check_material(AuthType::BasicAuth, &material).unwrap_err();
        assert_eq!(error.to_string(), "a credential of type basic_auth needs `username` and `password` in `material`");
        assert_eq!(check_material(AuthType::Custom, &material), Ok(()));
        assert_eq!(check_material(AuthType::Webhook, &Material::new()), Ok(()));
    }
}
