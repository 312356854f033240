//! Converts an OpenAPI 3.0 or 3.1 document to a service definition. Nothing is fetched. Everything in the document is either in
//! the definition or among the findings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use thiserror::Error;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::SourceKind;
use toolgate_model::service::{ServiceDefinition, ServiceVersion};

pub(crate) use self::finding::{Finding, Findings, Kind, Weight};
use self::reference::Part;
use self::schema::Definitions;
pub(crate) use self::security::CredentialNeed;
use self::security::Schemes;

mod body;
mod check;
pub(crate) mod document;
mod finding;
mod inputs;
mod leftover;
mod name;
mod operation;
mod parameter;
mod path;
mod reference;
mod response;
mod schema;
mod security;
mod server;
mod text;
pub(crate) mod yaml;

#[cfg(test)]
mod tests;

const TOOL_LIMIT: usize = 2_000;

/// Overrides of the document.
#[derive(Debug, Default)]
pub(crate) struct ImportOptions {
    pub(crate) service: Option<ServiceName>,
    pub(crate) version: Option<ServiceVersion>,
    pub(crate) base_url: Option<BaseUrl>,
    /// Omit the schemas of results.
    pub(crate) without_returns: bool,
}

#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) definition: ServiceDefinition,
    /// The number of operations: tools plus findings of [`Kind::Operation`].
    pub(crate) operations: usize,
    pub(crate) findings: Findings,
    pub(crate) credentials: Vec<CredentialNeed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ImportError {
    #[error("not an OpenAPI document: it has no member `openapi`")]
    NotOpenApi,
    #[error("OpenAPI {0} is not supported; convert it to 3.0 or 3.1")]
    Version(String),
    #[error("the title of the document does not yield a name; pass --service")]
    NoName,
    #[error("the version of the document is not usable; pass --version")]
    NoVersion,
}

struct Import<'a> {
    document: &'a Value,
    /// OpenAPI 3.0, whose schemas are a separate dialect.
    is_older: bool,
    keeps_returns: bool,
    server: Option<String>,
    findings: Findings,
    /// The pointers of all references.
    used: BTreeSet<String>,
    definitions: Definitions,
    schemes: Schemes,
}

pub(crate) fn import(document: &Value, options: &ImportOptions) -> Result<Imported, ImportError> {
    let version = document.get("openapi").ok_or(ImportError::NotOpenApi)?;
    let version = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
    let is_of = |line: &str| version == line || version.starts_with(&format!("{line}."));
    if !is_of("3.0") && !is_of("3.1") {
        return Err(ImportError::Version(version));
    }
    let import = Import {
        document,
        is_older: is_of("3.0"),
        keeps_returns: !options.without_returns,
        server: None,
        findings: Findings::default(),
        used: BTreeSet::new(),
        definitions: Definitions::default(),
        schemes: Schemes::default(),
    };
    import.run(options)
}

impl<'a> Import<'a> {
    fn run(mut self, options: &ImportOptions) -> Result<Imported, ImportError> {
        let root = Part { value: self.document, pointer: String::new() };
        let (service, version, description) = self.information(&root, options)?;
        self.read_schemes();
        let base_url = self.base_url(options.base_url.as_ref());
        let operations = self.operations(&root);
        let common = self.common_server(&operations);
        let base_url = base_url.or(common);
        let names = self.names(&operations);
        let mut tools = BTreeMap::new();
        for (operation, name) in operations.iter().zip(names) {
            let tool = match tools.len() < TOOL_LIMIT {
                true => self.tool(operation, &name),
                false => Err(format!("a service has at most {TOOL_LIMIT} tools")),
            };
            match tool {
                Ok(tool) => drop(tools.insert(name, tool)),
                Err(reason) => self.findings.add(Kind::Operation, &operation.part.pointer, reason),
            }
        }
        self.leftover(&root);
        let source = SourceKind::Connector;
        let credentials = self.credential_needs();
        Ok(Imported {
            definition: ServiceDefinition { service, version, description, source, base_url, tools },
            operations: operations.len(),
            findings: self.findings,
            credentials,
        })
    }

    /// Reports members that are not read: extensions, and members that OpenAPI does not define.
    fn known_members(&mut self, part: &Part<'a>, known: &[&str]) {
        for (name, below) in part.members() {
            if name.starts_with("x-") {
                self.findings.add(Kind::Extension, &below.pointer, name);
            } else if !known.contains(&name) {
                self.findings.add(Kind::UnknownMember, &below.pointer, name);
            }
        }
    }
}
