//! An OpenAPI 3.0 or 3.1 document becomes a service definition. Pure: the document is a value and nothing is fetched.
//! What the document says is in the definition or among the findings; nothing is lost without a word.

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

/// How many tools a service may have.
const TOOL_LIMIT: usize = 2_000;

/// What the caller knows better than the document.
#[derive(Debug, Default)]
pub(crate) struct ImportOptions {
    /// The name of the service, instead of one made of the title.
    pub(crate) service: Option<ServiceName>,
    /// The version of the definition, instead of the document's.
    pub(crate) version: Option<ServiceVersion>,
    /// Where the service is, instead of the first server.
    pub(crate) base_url: Option<BaseUrl>,
    /// Whether the schemas of answers stay out.
    pub(crate) without_returns: bool,
}

/// What came of a document.
#[derive(Debug)]
pub(crate) struct Imported {
    /// The service.
    pub(crate) definition: ServiceDefinition,
    /// How many operations the document has: as many as tools and findings of [`Kind::Operation`] together.
    pub(crate) operations: usize,
    /// What is not in the definition, or not as the document has it.
    pub(crate) findings: Findings,
    /// Which credentials the service takes.
    pub(crate) credentials: Vec<CredentialNeed>,
}

/// Why a document cannot be imported at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ImportError {
    /// It is something else.
    #[error("this is no OpenAPI document: it has no member `openapi`")]
    NotOpenApi,
    /// It is of another version.
    #[error("this is OpenAPI {0}; 3.0 and 3.1 can be imported, so convert it first")]
    Version(String),
    /// It has no title that a name could be made of.
    #[error("no name can be made of the document's title; give one with --service")]
    NoName,
    /// It has no version that could be one of the definition.
    #[error("no version can be made of the document's; give one with --version")]
    NoVersion,
}

/// One import on its way.
struct Import<'a> {
    document: &'a Value,
    /// Whether it is OpenAPI 3.0, whose schemas are a dialect of their own.
    is_older: bool,
    keeps_returns: bool,
    /// The server of the service, as the document has it.
    server: Option<String>,
    findings: Findings,
    /// The pointers that something referred to.
    used: BTreeSet<String>,
    definitions: Definitions,
    schemes: Schemes,
}

/// Turns a document into a definition.
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

    /// Tells of members that are not read: extensions, and what OpenAPI does not have there.
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
