//! What a mount is reached with: a credential that exists, a secret that stands in a file or a variable and is sealed in the
//! vault at the start, or nothing.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolgate_cli::environment::Environment;
use toolgate_model::connection::Connection;
use toolgate_model::credential::{AuthType, check_material, material_from_json};
use toolgate_model::id::CredentialId;
use toolgate_model::secret::{Material, Secret};
use toolgate_model::strict_json;
use zeroize::Zeroizing;

use super::Mount;

/// What the names of variables with secrets of mounts begin with.
pub const SECRET_VARIABLE: &str = "TOOLGATE_SECRET_";

/// What a mount is reached with.
pub enum EntryAccess {
    /// A credential of the mount's service.
    Credential(CredentialId),
    /// A secret that becomes one.
    Secret { auth_type: AuthType, metadata: Map<String, Value>, material: Material },
    /// Nothing.
    Open,
}

/// Where secrets are taken from.
pub(super) struct Secrets<'a> {
    base: &'a Path,
    environment: &'a mut Environment,
    files: Vec<PathBuf>,
}

impl<'a> Secrets<'a> {
    pub(super) fn new(base: &'a Path, environment: &'a mut Environment) -> Self {
        Self { base, environment, files: Vec::new() }
    }

    /// The files that were read.
    pub(super) fn files(self) -> Vec<PathBuf> {
        self.files
    }

    fn take(&mut self, place: &str) -> Result<Secret, String> {
        let secret = if let Some(name) = place.strip_prefix("env:") {
            if !name.starts_with(SECRET_VARIABLE) {
                return Err(format!("`secret` must name a variable that begins with {SECRET_VARIABLE}"));
            }
            let secret =
                self.environment.take_secret(name).map_err(|_| format!("`secret`: {name} is not UTF-8 text"))?;
            secret.ok_or_else(|| format!("`secret`: the variable {name} is not set, or used by another mount"))?
        } else if let Some(file) = place.strip_prefix("file:") {
            let path = self.base.join(file);
            let text = std::fs::read_to_string(&path).map(Zeroizing::new);
            let text = text.map_err(|error| format!("`secret`: {} cannot be read: {error}", path.display()))?;
            self.files.push(path);
            Secret::new(text.trim_end_matches(['\r', '\n']).to_owned())
        } else {
            return Err(format!("`secret` must be file:PATH or env:{SECRET_VARIABLE}NAME, and not the secret itself"));
        };
        if secret.expose().is_empty() { Err("`secret` is empty".to_owned()) } else { Ok(secret) }
    }
}

/// Reads it; `None` where the mount is left to an administrator.
pub(super) fn of(mount: &Mount, secrets: &mut Secrets<'_>) -> Result<Option<EntryAccess>, String> {
    let given = [
        ("auth_type", mount.auth_type.is_some()),
        ("header", mount.header.is_some()),
        ("query", mount.query.is_some()),
        ("secret", mount.secret.is_some()),
    ];
    let given = given.iter().find(|(_, is_given)| *is_given).map(|(key, _)| *key);
    if mount.mount == Some(false) {
        let given = given.or(mount.credential_id.as_ref().map(|_| "credential_id"));
        return match given {
            Some(key) => Err(format!("`{key}` is used only where `mount` is not false")),
            None if mount.url.is_some() => Err("`mount` can be false only for a process".to_owned()),
            None => Ok(None),
        };
    }
    match (&mount.credential_id, &mount.secret, given) {
        (Some(id), None, None) => {
            let id = CredentialId::parse(id).map_err(|_| "`credential_id` is not the id of a credential")?;
            Ok(Some(EntryAccess::Credential(id)))
        }
        (Some(_), _, Some(key)) => Err(format!("give `credential_id` or `{key}`, not both")),
        (None, Some(place), _) => sealed(mount, secrets.take(place)?).map(Some),
        (None, None, Some(key)) => Err(format!("`{key}` needs a `secret`: file:PATH or env:{SECRET_VARIABLE}NAME")),
        (_, _, None) => match mount.credential {
            // The process cannot be started without its secret, so an administrator mounts it with a credential.
            Some(_) => Ok(None),
            None => Ok(Some(EntryAccess::Open)),
        },
    }
}

fn sealed(mount: &Mount, secret: Secret) -> Result<EntryAccess, String> {
    if mount.command.is_some() && mount.credential.is_none() {
        return Err("`secret` of a process needs `credential`, the variable that it is put into".to_owned());
    }
    let allowed = [AuthType::BearerToken, AuthType::ApiKey, AuthType::BasicAuth, AuthType::OAuth2ClientCredentials];
    let auth_type = match mount.auth_type.as_deref() {
        None => AuthType::BearerToken,
        Some(named) => allowed.into_iter().find(|kind| kind.as_str() == named).ok_or_else(|| {
            let words: Vec<&str> = allowed.iter().map(|kind| kind.as_str()).collect();
            format!("`auth_type` must be one of {}; for others name a `credential_id`", words.join(", "))
        })?,
    };
    let mut metadata = Map::new();
    if let Some(placement) = placement(mount)? {
        metadata.insert("auth".to_owned(), placement);
    }
    Connection::from_metadata(&metadata).map_err(|error| format!("`header`, `prefix` or `query`: {error}"))?;
    let material = material(auth_type, secret)?;
    check_material(auth_type, &material).map_err(|error| format!("`secret`: {error}"))?;
    Ok(EntryAccess::Secret { auth_type, metadata, material })
}

/// Where the secret is put, as the metadata of credentials says it.
fn placement(mount: &Mount) -> Result<Option<Value>, String> {
    match (&mount.header, &mount.prefix, &mount.query) {
        (None, None, None) => Ok(None),
        (Some(header), None, None) => Ok(Some(json!({"location": "header", "header_name": header}))),
        (Some(header), Some(prefix), None) => {
            Ok(Some(json!({"location": "header", "header_name": header, "header_prefix": prefix})))
        }
        (None, None, Some(query)) => Ok(Some(json!({"location": "query", "query_param": query}))),
        (None, Some(_), _) => Err("`prefix` needs `header`".to_owned()),
        (Some(_), _, Some(_)) => Err("give `header` or `query`, not both".to_owned()),
    }
}

/// One secret, or an object with the fields of a type that has several.
fn material(auth_type: AuthType, secret: Secret) -> Result<Material, String> {
    let [field] = auth_type.usual_fields() else {
        let expected = "`secret` must be a JSON object with the fields of its `auth_type`";
        let value = strict_json::parse(secret.expose().as_bytes()).map_err(|_| expected)?;
        return material_from_json(value).map_err(|_| expected.to_owned());
    };
    let mut material = Material::new();
    material.insert((*field).to_owned(), secret);
    Ok(material)
}
