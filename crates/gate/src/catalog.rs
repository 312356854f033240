//! The catalog: the registered services of a tenant, ready for use. It is built once for each revision of the registry;
//! the schema of a tool is compiled when the tool is first called, its descriptor made when it is first shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use toolgate_model::approval::Category;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{DescriptorError, SafetyTier, SourceKind, ToolDescriptor, ToolId};
use toolgate_model::hook::Transport;
use toolgate_model::principal::{Principal, TenantId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::schema::{Schema, SchemaError, SchemaViolation};
use toolgate_model::scope::Scope;
use toolgate_model::service::{ServiceVersion, ToolDefinition, ToolName};

use crate::ports::clock::Clock;
use crate::ports::ledger::{Freshness, RegisteredService, Registry, Services};
use crate::refusal::Refusal;

/// What executes a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// A service over HTTP, with a credential that a grant opens.
    Connector,
    /// The guarded client, for whoever may fetch: no credential, no grant.
    Fetch,
    /// A tool of the machine that the gate runs on, for whoever holds its scope: no credential, no grant.
    Workspace(Category),
    /// A person, who is asked a question.
    Question,
    /// Whoever asks carries it out: the gate only says whether it may.
    External(Category),
    /// Nothing: a tool of the conformance endpoints, which returns by itself.
    Conformance {
        /// Whether it answers with a failure.
        fails: bool,
    },
}

impl ToolKind {
    /// How the tool is reached.
    pub fn transport(self) -> Transport {
        match self {
            Self::Connector | Self::Fetch => Transport::Http,
            Self::Workspace(_) | Self::Question | Self::External(_) | Self::Conformance { .. } => Transport::Native,
        }
    }
}

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
    /// What carries it out.
    pub kind: ToolKind,
    /// What would carry it out if it were called through the gate; `None` where `backing` says so.
    governed_as: Option<ToolKind>,
    /// What backs it, in the words of the catalog.
    pub source: SourceKind,
    /// The scopes that the agent itself must hold, as they were written.
    pub required_scopes: Vec<String>,
    schema: OnceLock<Result<Schema, SchemaError>>,
    descriptor: OnceLock<Result<Arc<ToolDescriptor>, DescriptorError>>,
}

impl Tool {
    /// A tool that a credential defines.
    pub fn implicit(service: ServiceName, name: ToolName, definition: Arc<ToolDefinition>) -> Self {
        Self {
            required_scopes: required(&definition),
            service,
            version: None,
            name,
            definition,
            base_url: None,
            kind: ToolKind::Connector,
            governed_as: None,
            source: SourceKind::Connector,
            schema: OnceLock::new(),
            descriptor: OnceLock::new(),
        }
    }

    /// A tool that needs no grant.
    pub fn built_in(service: ServiceName, name: ToolName, definition: Arc<ToolDefinition>, kind: ToolKind) -> Self {
        Self { kind, ..Self::implicit(service, name, definition) }
    }

    /// The same, carried out by another runtime. It keeps its id, and whatever is checked before the gate would carry
    /// it out is checked all the same.
    pub fn as_external(&self) -> Self {
        Self {
            service: self.service.clone(),
            version: self.version.clone(),
            name: self.name.clone(),
            definition: Arc::clone(&self.definition),
            base_url: self.base_url.clone(),
            kind: ToolKind::External(self.category()),
            governed_as: Some(self.governed_as()),
            source: self.source,
            required_scopes: self.required_scopes.clone(),
            schema: OnceLock::new(),
            descriptor: OnceLock::new(),
        }
    }

    /// The same, of another source.
    pub fn of_source(self, source: SourceKind) -> Self {
        Self { source, ..self }
    }

    /// The same, requiring these scopes.
    pub fn requiring(self, required_scopes: Vec<String>) -> Self {
        Self { required_scopes, ..self }
    }

    /// What carries it out when it is called through the gate.
    pub fn governed_as(&self) -> ToolKind {
        self.governed_as.unwrap_or(self.kind)
    }

    /// Its id: that of the catalog, or for a tool that only another runtime has, the one under which an allowlist can
    /// name it. `None` for a tool of the conformance endpoints.
    pub fn id(&self) -> Option<ToolId> {
        match self.governed_as() {
            ToolKind::Connector => ToolId::of_service(self.source, &self.service, &self.name),
            ToolKind::Fetch => ToolId::parse("openwop:http.fetch").ok(),
            ToolKind::Workspace(_) | ToolKind::Question | ToolKind::External(_) => {
                ToolId::of_service(SourceKind::HostExtension, &self.service, &self.name)
            }
            ToolKind::Conformance { .. } => None,
        }
    }

    /// Whether somebody else carries it out.
    pub fn is_external(&self) -> bool {
        matches!(self.kind, ToolKind::External(_))
    }

    /// What kind of a call one of it is.
    pub fn category(&self) -> Category {
        match self.kind {
            ToolKind::Workspace(category) | ToolKind::External(category) => category,
            ToolKind::Question => Category::Info,
            _ if self.definition.tier() == SafetyTier::Exec => Category::Exec,
            // What is somebody else's says of itself what it likes.
            ToolKind::Connector | ToolKind::Fetch | ToolKind::Conformance { .. } => Category::Mcp,
        }
    }

    /// Whether this agent's allowlist leaves it the tool; without one, all are.
    pub(crate) fn is_listed_for(&self, agent: Option<&Principal>) -> bool {
        // Only who has an allowlist pays for it.
        let Some(agent) = agent.filter(|agent| agent.tool_allowlist.is_some()) else { return true };
        match self.kind {
            ToolKind::Conformance { .. } => true,
            // What has no id cannot be on any list.
            _ => self.id().is_some_and(|id| agent.may_see(&id)),
        }
    }

    /// Whether this agent's allowlist and own scopes leave it the tool, or why not; grants are another matter. What cannot
    /// be decided is denied.
    pub(crate) fn require_open_to(&self, agent: Option<&Principal>) -> Result<(), String> {
        if !self.is_listed_for(agent) {
            return Err("the agent may not use this tool: its allowlist does not name it".to_owned());
        }
        if self.required_scopes.is_empty() {
            return Ok(());
        }
        let none = HeldScopes::default();
        let held = agent.map_or(&none, |agent| &agent.scopes);
        held.cover_all(self.required_scopes.iter().map(String::as_str))
            .map_err(|why| format!("the agent's own scopes do not do: {why}"))
    }

    /// How the catalog describes it, if it is a tool of a service.
    pub fn descriptor(&self) -> Result<Arc<ToolDescriptor>, DescriptorError> {
        let describe = || ToolDescriptor::of_connector(&self.service, self.source, &self.name, &self.definition);
        self.descriptor.get_or_init(|| describe().map(Arc::new)).clone()
    }

    /// Checks parameters against the schema, and their names against those of the mapping. A schema that does not compile
    /// admits nothing.
    pub fn check(&self, parameters: &Value) -> Result<(), SchemaViolation> {
        self.check_schema(parameters)?;
        self.definition.check_sent_names(parameters)
    }

    fn check_schema(&self, parameters: &Value) -> Result<(), SchemaViolation> {
        let Some(schema) = &self.definition.parameters else { return Ok(()) };
        match self.schema.get_or_init(|| Schema::compile(schema)) {
            Ok(schema) => schema.check_parameters(parameters),
            Err(error) => Err(SchemaViolation {
                path: String::new(),
                rule: "schema".to_owned(),
                reason: format!("the tool's schema cannot be used: {error}"),
            }),
        }
    }
}

fn required(definition: &ToolDefinition) -> Vec<String> {
    definition.required_scopes.iter().flatten().map(|scope| scope.as_str().to_owned()).collect()
}

/// One version of a service.
#[derive(Debug)]
pub struct Service {
    /// As it is registered.
    pub registered: RegisteredService,
    tools: BTreeMap<ToolName, Arc<Tool>>,
    /// The same tools, so that whoever holds few scopes of a large service does not go through all of it.
    by_scope: HashMap<Scope, Vec<Arc<Tool>>>,
}

impl Service {
    fn new(registered: &RegisteredService) -> Self {
        let definition = &registered.definition;
        let mut tools = BTreeMap::new();
        let mut by_scope: HashMap<Scope, Vec<Arc<Tool>>> = HashMap::new();
        for (name, tool) in &definition.tools {
            let tool = Arc::new(Tool {
                required_scopes: required(tool),
                service: definition.service.clone(),
                version: Some(definition.version.clone()),
                name: name.clone(),
                definition: Arc::new(tool.clone()),
                base_url: definition.base_url.clone(),
                kind: ToolKind::Connector,
                governed_as: None,
                source: definition.source,
                schema: OnceLock::new(),
                descriptor: OnceLock::new(),
            });
            by_scope.entry(tool.definition.scope.clone()).or_default().push(Arc::clone(&tool));
            tools.insert(name.clone(), tool);
        }
        Self { registered: registered.clone(), tools, by_scope }
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        ToolName::parse(name).ok().and_then(|name| self.tools.get(&name))
    }

    /// The tools that need this scope, by name.
    pub fn tools_of_scope(&self, scope: &Scope) -> impl Iterator<Item = &Arc<Tool>> {
        self.by_scope.get(scope).into_iter().flatten()
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

    /// All versions of a service, the one registered last first.
    pub fn versions(&self, name: &ServiceName) -> &[Service] {
        self.services.get(name).map_or(&[], Vec::as_slice)
    }

    /// All versions of all services, each service's newest first.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.values().flatten()
    }
}

/// The catalogs of all tenants, each built once for a revision of its registry.
pub(crate) struct Catalogs {
    services: Arc<dyn Services>,
    clock: Arc<dyn Clock>,
    built: Mutex<HashMap<TenantId, Arc<Catalog>>>,
}

impl Catalogs {
    pub(crate) fn new(services: Arc<dyn Services>, clock: Arc<dyn Clock>) -> Self {
        Self { services, clock, built: Mutex::default() }
    }

    /// The catalog of a tenant.
    pub(crate) async fn of(&self, tenant: &TenantId, freshness: Freshness) -> Result<Arc<Catalog>, Refusal> {
        let registry = self.services.registry(tenant, self.clock.now(), freshness).await?;
        let known = self.built.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        if let Some(catalog) = known.filter(|catalog| catalog.revision == registry.revision) {
            return Ok(catalog);
        }
        let catalog = Arc::new(Catalog::new(&registry));
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.insert(tenant.clone(), Arc::clone(&catalog));
        Ok(catalog)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::service::ServiceDefinition;
    use toolgate_model::time::Timestamp;

    use super::*;

    fn service(source: &str) -> Service {
        let definition = json!({
            "service": "mail", "version": "1", "source": source,
            "tools": {"list": {"scope": "read"}, "send": {"scope": "write"}, "show": {"scope": "read"}}
        });
        let time = Timestamp::from_millis(0).unwrap();
        Service::new(&RegisteredService {
            tenant: TenantId::default_tenant(),
            definition: ServiceDefinition::from_json(&definition).unwrap(),
            created_at: time,
            updated_at: time,
        })
    }

    #[test]
    fn the_tools_of_a_scope_are_those_that_need_it() {
        let service = service("connector");
        let names = |scope: &str| -> Vec<String> {
            service.tools_of_scope(&Scope::parse(scope).unwrap()).map(|tool| tool.name.to_string()).collect()
        };
        assert_eq!(names("read"), ["list", "show"]);
        assert_eq!(names("write"), ["send"]);
        assert_eq!(names("delete"), [""; 0]);
    }

    #[test]
    fn a_tool_is_described_once_and_by_the_source_of_its_service() {
        for (source, id) in [("connector", "connector:mail.send"), ("host-extension", "x-host-mail:send")] {
            let service = service(source);
            let tool = service.tool("send").unwrap();
            let described = tool.descriptor().unwrap();
            assert_eq!(described.fields().tool_id.as_str(), id);
            assert!(Arc::ptr_eq(&described, &tool.descriptor().unwrap()));
        }
    }
}
