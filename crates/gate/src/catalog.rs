//! The catalog: the registered services of a tenant, ready for use. It is built once for each revision of the registry;
//! the schema of a tool is compiled when the tool is first called.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::principal::TenantId;
use toolgate_model::schema::{Schema, SchemaError, SchemaViolation};
use toolgate_model::scope::Scope;
use toolgate_model::service::{ServiceVersion, ToolDefinition, ToolName};

use crate::gate::Gate;
use crate::ports::ledger::{Freshness, RegisteredService, Registry};
use crate::refusal::Refusal;

/// A tool that can be called.
#[derive(Debug)]
pub struct Tool {
    /// Its service.
    pub service: ServiceName,
    /// The version of the service's definition; `None` for a tool that a credential defines.
    pub version: Option<ServiceVersion>,
    /// Its name in the service.
    pub name: ToolName,
    /// What is known of it.
    pub definition: Arc<ToolDefinition>,
    /// Where the service is, as its definition says.
    pub base_url: Option<BaseUrl>,
    schema: OnceLock<Result<Schema, SchemaError>>,
}

impl Tool {
    /// A tool that a credential defines.
    pub fn implicit(service: ServiceName, name: ToolName, definition: Arc<ToolDefinition>) -> Self {
        Self { service, version: None, name, definition, base_url: None, schema: OnceLock::new() }
    }

    /// Checks parameters against the schema. A schema that does not compile admits nothing.
    pub fn check(&self, parameters: &Value) -> Result<(), SchemaViolation> {
        let Some(schema) = &self.definition.parameters else { return Ok(()) };
        match self.schema.get_or_init(|| Schema::compile(schema)) {
            Ok(schema) => schema.check(parameters),
            Err(error) => Err(SchemaViolation {
                path: String::new(),
                rule: "schema".to_owned(),
                reason: format!("the tool's schema cannot be used: {error}"),
            }),
        }
    }
}

/// One version of a service.
#[derive(Debug)]
pub struct Service {
    /// As it is registered.
    pub registered: RegisteredService,
    tools: BTreeMap<ToolName, Arc<Tool>>,
}

impl Service {
    fn new(registered: &RegisteredService) -> Self {
        let definition = &registered.definition;
        let tools = definition.tools.iter().map(|(name, tool)| {
            let tool = Tool {
                service: definition.service.clone(),
                version: Some(definition.version.clone()),
                name: name.clone(),
                definition: Arc::new(tool.clone()),
                base_url: definition.base_url.clone(),
                schema: OnceLock::new(),
            };
            (name.clone(), Arc::new(tool))
        });
        Self { registered: registered.clone(), tools: tools.collect() }
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        ToolName::parse(name).ok().and_then(|name| self.tools.get(&name))
    }

    /// The tools that need this scope.
    pub fn tools_of_scope(&self, scope: &Scope) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values().filter(move |tool| tool.definition.scope == *scope)
    }

    /// All tools, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }
}

/// All registered services of a tenant.
#[derive(Debug)]
pub struct Catalog {
    /// The revision of the registry that it was built from.
    pub revision: u64,
    services: BTreeMap<ServiceName, Vec<Service>>,
}

impl Catalog {
    fn new(registry: &Registry) -> Self {
        let mut services: BTreeMap<ServiceName, Vec<Service>> = BTreeMap::new();
        for registered in &registry.services {
            services.entry(registered.definition.service.clone()).or_default().push(Service::new(registered));
        }
        Self { revision: registry.revision, services }
    }

    /// The version of a service that is asked for; the one registered last where none is.
    pub fn service(&self, name: &ServiceName, version: Option<&ServiceVersion>) -> Option<&Service> {
        let versions = self.services.get(name)?;
        match version {
            None => versions.first(),
            Some(version) => versions.iter().find(|service| service.registered.definition.version == *version),
        }
    }

    /// All versions of all services, each service's newest first.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.values().flatten()
    }
}

/// The catalogs that were built.
#[derive(Default)]
pub(crate) struct Catalogs(Mutex<HashMap<TenantId, Arc<Catalog>>>);

impl Gate {
    /// The tenant's catalog.
    pub(crate) async fn catalog(&self, tenant: &TenantId, freshness: Freshness) -> Result<Arc<Catalog>, Refusal> {
        let registry = self.ledger.registry(tenant, self.clock.now(), freshness).await?;
        let known = self.catalogs.0.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        if let Some(catalog) = known.filter(|catalog| catalog.revision == registry.revision) {
            return Ok(catalog);
        }
        let catalog = Arc::new(Catalog::new(&registry));
        let mut catalogs = self.catalogs.0.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.insert(tenant.clone(), Arc::clone(&catalog));
        Ok(catalog)
    }
}
