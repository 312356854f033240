//! Connections in the metadata of a credential. Unknown members are plain metadata.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use url::Url;

use super::base_url::parse_address;
use super::{
    AdapterName, AuthPlacement, BaseUrl, Connection, DEFAULT_TIMEOUT, TokenEndpoint, TokenGrantType, default_endpoint,
};
use crate::constraint::HostSet;
use crate::service::reading::{Fields, clamped_timeout, join, object, parsed, refuse, text, texts, word};
use crate::service::{
    DefinitionError, HttpMapping, ServiceVersion, ToolName, check_credential_name, check_header_value,
};
use crate::text::check_line;

/// The adapters by all names that the reference knows them by.
const ADAPTERS: [(&str, AdapterName); 8] = [
    ("rest", AdapterName::Rest),
    ("oauth2", AdapterName::OAuth2),
    ("webhook", AdapterName::Webhook),
    ("api_key", AdapterName::Rest),
    ("bearer_token", AdapterName::Rest),
    ("basic_auth", AdapterName::Rest),
    ("oauth2_token", AdapterName::OAuth2),
    ("oauth2_client_credentials", AdapterName::OAuth2),
];
const GRANT_TYPES: [(&str, TokenGrantType); 2] =
    [("client_credentials", TokenGrantType::ClientCredentials), ("refresh_token", TokenGrantType::RefreshToken)];
/// The maximum number of endpoints of a credential.
const ENDPOINT_LIMIT: usize = 2_000;
/// The maximum length of a certificate bundle, in bytes.
const CERTIFICATE_LIMIT: usize = 64 * 1024;

impl Connection {
    /// Reads the connection settings in a credential's metadata.
    pub fn from_metadata(metadata: &Map<String, Value>) -> Result<Self, DefinitionError> {
        let fields = Fields::among(metadata, "metadata");
        Ok(Self {
            adapter: fields.read("adapter", |value, path| word(value, path, &ADAPTERS))?,
            base_url: fields.read("base_url", parsed(BaseUrl::parse))?,
            endpoints: fields.read("endpoints", read_endpoints)?.unwrap_or_default(),
            auth: fields.read("auth", read_auth)?.flatten(),
            timeout: fields.read("timeout_ms", clamped_timeout)?.unwrap_or(DEFAULT_TIMEOUT),
            allowed_hosts: fields.read("allowed_hosts", read_hosts)?,
            token: read_token(&fields)?,
            ca_certificate: fields.read("ca_certificate", read_certificate)?,
            service_version: fields.read("service_version", parsed(ServiceVersion::parse))?,
        })
    }
}

fn read_endpoints(value: &Value, path: &str) -> Result<BTreeMap<ToolName, HttpMapping>, DefinitionError> {
    let members = object(value, path)?;
    if members.len() > ENDPOINT_LIMIT {
        return Err(refuse(path, format!("has {} endpoints, the limit is {ENDPOINT_LIMIT}", members.len())));
    }
    let mut endpoints = BTreeMap::new();
    for (name, value) in members {
        let path = join(path, name);
        let tool =
            ToolName::parse(name).map_err(|error| refuse(&path, format!("is not a valid tool name: it {error}")))?;
        let endpoint = HttpMapping::from_endpoint(value, &path, default_endpoint(&tool))?;
        endpoints.insert(tool, endpoint);
    }
    Ok(endpoints)
}

/// Where the credential stands.
#[derive(Clone, Copy)]
enum Location {
    Header,
    Nowhere,
    Query,
}

/// An empty `auth` has no effect.
fn read_auth(value: &Value, path: &str) -> Result<Option<AuthPlacement>, DefinitionError> {
    let fields = Fields::of(value, path, &["header_name", "header_prefix", "location", "query_param"])?;
    let locations = [("header", Location::Header), ("none", Location::Nowhere), ("query", Location::Query)];
    let location = fields.read("location", |value, path| word(value, path, &locations))?;
    let header_name = fields.read("header_name", parsed(read_header_name))?;
    let prefix = fields.read("header_prefix", parsed(read_prefix))?.filter(|prefix| !prefix.is_empty());
    let query_param = fields.read("query_param", parsed(|name| check_line(name, 128).map(|()| name.to_owned())))?;
    match location {
        Some(Location::Nowhere) => match fields.first_set(&["header_name", "header_prefix", "query_param"]) {
            Some(member) => Err(refuse(&fields.at(member), "must not be set where the location is none")),
            None => Ok(Some(AuthPlacement::Nowhere)),
        },
        Some(Location::Query) => {
            Ok(Some(AuthPlacement::Query { name: query_param.unwrap_or_else(|| "api_key".to_owned()) }))
        }
        None if header_name.is_none() && prefix.is_none() => Ok(None),
        Some(Location::Header) | None => {
            let name = header_name.unwrap_or_else(|| "Authorization".to_owned());
            Ok(Some(AuthPlacement::Header { name, prefix }))
        }
    }
}

fn read_header_name(name: &str) -> Result<String, String> {
    check_credential_name(name)?;
    Ok(name.to_owned())
}

fn read_prefix(prefix: &str) -> Result<String, &'static str> {
    check_header_value(prefix)?;
    Ok(prefix.trim().to_owned())
}

fn read_hosts(value: &Value, path: &str) -> Result<HostSet, DefinitionError> {
    HostSet::parse(texts(value, path)?).map_err(|reason| refuse(path, reason))
}

fn read_token(fields: &Fields<'_>) -> Result<Option<TokenEndpoint>, DefinitionError> {
    let url: Option<Url> = fields.read("token_url", parsed(parse_address))?;
    let grant_type = fields.read("token_grant_type", |value, path| word(value, path, &GRANT_TYPES))?;
    let scope = fields.read("token_scope", parsed(|scope| check_line(scope, 1024).map(|()| scope.to_owned())))?;
    match url {
        Some(url) => Ok(Some(TokenEndpoint { url, grant_type, scope })),
        None if grant_type.is_some() || scope.is_some() => {
            Err(refuse(&fields.at("token_url"), "is missing; the other token settings require it"))
        }
        None => Ok(None),
    }
}

fn read_certificate(value: &Value, path: &str) -> Result<String, DefinitionError> {
    let pem = text(value, path)?.trim();
    if pem.contains("PRIVATE KEY-----") {
        return Err(refuse(path, "must not contain a private key; only certificates"));
    }
    if pem.len() > CERTIFICATE_LIMIT || !pem.contains("-----BEGIN CERTIFICATE-----") {
        return Err(refuse(path, format!("must be PEM certificates of at most {CERTIFICATE_LIMIT} bytes")));
    }
    Ok(pem.to_owned())
}
