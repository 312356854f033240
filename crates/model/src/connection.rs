//! How a service is reached, from the metadata of its credential: its URL, its tools and how the credential is
//! presented. This is the format of the protocol's reference; a registered service can define most of it too.

use std::collections::BTreeMap;
use std::time::Duration;

use url::Url;

use crate::constraint::HostSet;
use crate::parameter_name::FoldedName;
use crate::scope::{Scope, ScopeSet};
use crate::service::{
    HttpMapping, HttpMethod, PathTemplate, RenderedRequest, ServiceVersion, ToolDefinition, ToolName,
};

pub use self::base_url::BaseUrl;
pub(crate) use self::base_url::parse_address;

mod base_url;
mod wire;

#[cfg(test)]
mod tests;

/// The default timeout of a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The connection settings in a credential's metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// What executes calls; by default the auth type decides.
    pub adapter: Option<AdapterName>,
    pub base_url: Option<BaseUrl>,
    /// The tools that are not called in the default way.
    pub endpoints: BTreeMap<ToolName, HttpMapping>,
    /// How the credential is presented; by default the auth type decides.
    pub auth: Option<AuthPlacement>,
    pub timeout: Duration,
    /// The hosts that may be reached with this credential.
    pub allowed_hosts: Option<HostSet>,
    /// Where tokens are renewed.
    pub token: Option<TokenEndpoint>,
    /// Certificates (PEM) that are trusted instead of the default ones.
    pub ca_certificate: Option<String>,
    /// The version of the registered service that this credential is for.
    pub service_version: Option<ServiceVersion>,
}

/// What executes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdapterName {
    /// HTTP requests with a token that is renewed.
    OAuth2,
    /// HTTP requests with a fixed credential.
    Rest,
    /// Signed messages to one URL.
    Webhook,
}

/// Where the credential is put in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthPlacement {
    Header {
        name: String,
        /// What precedes the credential, separated by one blank. By default the auth type decides.
        prefix: Option<String>,
    },
    Query {
        name: String,
    },
    /// Nowhere: the service needs none.
    Nowhere,
}

/// Where and how tokens are renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenEndpoint {
    pub url: Url,
    /// What is exchanged; by default whatever the material has.
    pub grant_type: Option<TokenGrantType>,
    /// The scope to request.
    pub scope: Option<String>,
}

/// What is exchanged for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenGrantType {
    /// Client id and secret.
    ClientCredentials,
    RefreshToken,
}

impl Connection {
    /// How this tool is called: by its endpoint, otherwise by POST to `/{tool}` with the parameters in a JSON body.
    pub fn endpoint(&self, tool: &ToolName) -> HttpMapping {
        self.endpoints.get(tool).cloned().unwrap_or_else(|| default_endpoint(tool))
    }

    /// The tools that this credential defines by itself: one for every endpoint and every scope, each under the scope
    /// of its own name. None without a base URL.
    pub fn implicit_tools(&self, scopes_available: &ScopeSet) -> BTreeMap<ToolName, ToolDefinition> {
        if self.base_url.is_none() || self.service_version.is_some() {
            return BTreeMap::new();
        }
        let from_scopes = scopes_available.iter().filter_map(|scope| ToolName::parse(scope.as_str()).ok());
        let names = self.endpoints.keys().cloned().chain(from_scopes);
        names.filter_map(|name| Some((name.clone(), self.implicit_tool(&name)?))).collect()
    }

    fn implicit_tool(&self, name: &ToolName) -> Option<ToolDefinition> {
        let scope = Scope::parse(name.as_str()).ok()?;
        Some(ToolDefinition { http: Some(self.endpoint(name)), ..ToolDefinition::of_scope(scope) })
    }
}

impl AdapterName {
    /// The displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OAuth2 => "oauth2",
            Self::Rest => "rest",
            Self::Webhook => "webhook",
        }
    }
}

impl AuthPlacement {
    /// Whether a request already has something in the place of the credential, in any spelling that some server treats
    /// as the same. Such a request must not be sent: the service could read the agent's value instead of the
    /// credential.
    pub fn is_taken_in(&self, request: &RenderedRequest) -> bool {
        match self {
            Self::Header { name, .. } => {
                request.headers.iter().any(|(taken, _)| crate::service::is_same_header(taken, name))
            }
            Self::Query { name } => {
                let name = FoldedName::of(name);
                request.url.query_pairs().any(|(taken, _)| FoldedName::of(&taken).may_be(&name))
            }
            Self::Nowhere => false,
        }
    }
}

pub(crate) fn default_endpoint(tool: &ToolName) -> HttpMapping {
    HttpMapping::new(HttpMethod::Post, PathTemplate::of_segment(tool.as_str()))
}
