//! The catalog: the registered services of a tenant. It is built once for each revision of the registry; the schema of
//! a tool is compiled at its first call, and its descriptor is created when it is first shown.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use toolgate_model::approval::Category;
use toolgate_model::connection::BaseUrl;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{DescriptorError, SafetyTier, SourceKind, ToolDescriptor, ToolId};
use toolgate_model::mirrored::Mirrored;
use toolgate_model::principal::{Principal, TenantId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::schema::{Schema, SchemaError, SchemaViolation};
use toolgate_model::scope::Scope;
use toolgate_model::service::{McpMethod, ServiceDefinition, ServiceVersion, ToolDefinition, ToolName};
use toolgate_model::tool_alias::ToolAlias;
use toolgate_model::tool_listing::listing;

use crate::action::Action;
use crate::ports::clock::Clock;
use crate::ports::ledger::{Freshness, RegisteredService, Registry, Services};
use crate::refusal::Refusal;

/// A tool that can be called.
#[derive(Debug)]
pub struct Tool {
    pub service: ServiceName,
    /// The version of the service's definition; `None` for a tool that a credential defines.
    pub version: Option<ServiceVersion>,
    /// Its name within the service.
    pub name: ToolName,
    pub definition: Arc<ToolDefinition>,
    /// The base URL in the service's definition.
    pub base_url: Option<BaseUrl>,
    /// The action of a call here. A client may execute the tool instead: see `Candidate::action`.
    pub action: Action,
    /// The source, in the terms of the catalog.
    pub source: SourceKind,
    /// The category of its calls, for approval modes.
    pub category: Category,
    /// The scopes that the agent itself must hold, unparsed.
    pub required_scopes: Vec<String>,
    qualified_name: String,
    is_built_in: bool,
    alias: OnceLock<ToolAlias>,
    listing: OnceLock<String>,
    mirrored: OnceLock<Vec<Mirrored>>,
    schema: OnceLock<Result<Schema, SchemaError>>,
    returns: OnceLock<Result<Schema, SchemaError>>,
    descriptor: OnceLock<Result<Arc<ToolDescriptor>, DescriptorError>>,
}

impl Tool {
    /// A tool of a service, called over HTTP.
    fn new(service: ServiceName, name: ToolName, definition: Arc<ToolDefinition>) -> Self {
        Self {
            required_scopes: required(&definition),
            qualified_name: service.with_tool(name.as_str()),
            // A service can claim anything about its tools: a lower category is not accepted.
            category: if definition.tier() == SafetyTier::Exec { Category::Exec } else { Category::Mcp },
            service,
            version: None,
            name,
            definition,
            base_url: None,
            action: Action::Http,
            source: SourceKind::Connector,
            is_built_in: false,
            alias: OnceLock::new(),
            listing: OnceLock::new(),
            mirrored: OnceLock::new(),
            schema: OnceLock::new(),
            returns: OnceLock::new(),
            descriptor: OnceLock::new(),
        }
    }

    /// A tool that a credential defines.
    pub fn implicit(service: ServiceName, name: ToolName, definition: Arc<ToolDefinition>) -> Self {
        Self::new(service, name, definition)
    }

    /// A tool that a registered service defines.
    fn registered(service: &ServiceDefinition, name: &ToolName, definition: &ToolDefinition) -> Self {
        Self {
            version: Some(service.version.clone()),
            base_url: service.base_url.clone(),
            action: Action::of_service(service.source, definition),
            source: service.source,
            ..Self::new(service.service.clone(), name.clone(), Arc::new(definition.clone()))
        }
    }

    /// A tool that needs no grant.
    pub fn built_in(service: ServiceName, name: ToolName, definition: Arc<ToolDefinition>, action: Action) -> Self {
        Self { action, is_built_in: true, ..Self::new(service, name, definition) }
    }

    pub fn of_source(self, source: SourceKind) -> Self {
        Self { source, ..self }
    }

    pub fn of_category(self, category: Category) -> Self {
        Self { category, ..self }
    }

    pub fn requiring(self, required_scopes: Vec<String>) -> Self {
        Self { required_scopes, ..self }
    }

    /// Whether it is a tool of a mounted server that is a process of this machine.
    pub(crate) fn is_process(&self) -> bool {
        self.action == Action::Mcp && self.base_url.is_none()
    }

    /// `service.tool`: its name in calls, limits, approvals and the log.
    pub fn qualified_name(&self) -> &str {
        &self.qualified_name
    }

    /// Its name for clients that take only letters, digits, `_` and `-`.
    pub fn alias(&self) -> &ToolAlias {
        self.alias.get_or_init(|| match (self.is_built_in, self.source) {
            (false, _) => ToolAlias::of(&self.service, &self.name),
            (true, SourceKind::NodePack) => ToolAlias::of_built_in(&self.qualified_name),
            (true, _) => ToolAlias::of_built_in(self.name.as_str()),
        })
    }

    /// Whether it is one of those that forward the rest of a mounted server's protocol: they are no tools of the server,
    /// and are not listed as such.
    pub fn forwards_protocol(&self) -> bool {
        self.definition.mcp.as_ref().is_some_and(|mapping| mapping.method != McpMethod::CallTool)
    }

    /// How it is listed to clients that call it by its alias, as JSON.
    pub fn listing(&self) -> &str {
        // The results of a mounted server are checked against its schema; those of other services are not.
        let is_checked = self.source == SourceKind::Mcp;
        self.listing.get_or_init(|| listing(self.alias(), &self.definition, is_checked))
    }

    /// The parameters that clients repeat in headers.
    pub fn mirrored(&self) -> &[Mirrored] {
        let of_schema = || self.definition.parameters.as_ref().map(Mirrored::of_schema).unwrap_or_default();
        self.mirrored.get_or_init(of_schema)
    }

    /// Its id: that of the catalog, or for a client-executed tool, the one that an allowlist can name.
    pub fn id(&self) -> Option<ToolId> {
        match self.source {
            SourceKind::NodePack => ToolName::parse(&self.qualified_name).ok().map(|name| ToolId::core(&name)),
            source => ToolId::of_service(source, &self.service, &self.name),
        }
    }

    /// Whether the agent's allowlist includes the tool; without an allowlist, all tools are included.
    pub(crate) fn is_listed_for(&self, agent: Option<&Principal>) -> bool {
        // Only agents with an allowlist pay for the check.
        let Some(agent) = agent.filter(|agent| agent.tool_allowlist.is_some()) else { return true };
        // A tool without an id cannot be on a list.
        !self.action.is_listed() || self.id().is_some_and(|id| agent.may_see(&id))
    }

    /// Checks the agent's allowlist and own scopes; grants are checked elsewhere. What cannot be decided is denied.
    pub(crate) fn require_open_to(&self, agent: Option<&Principal>) -> Result<(), String> {
        if !self.is_listed_for(agent) {
            return Err("the agent may not use this tool: its allowlist does not include it".to_owned());
        }
        if self.required_scopes.is_empty() {
            return Ok(());
        }
        let none = HeldScopes::default();
        let held = agent.map_or(&none, |agent| &agent.scopes);
        held.cover_all(self.required_scopes.iter().map(String::as_str))
            .map_err(|why| format!("the agent's own scopes are not sufficient: {why}"))
    }

    /// Its descriptor in the catalog, if it is a tool of a service.
    pub fn descriptor(&self) -> Result<Arc<ToolDescriptor>, DescriptorError> {
        let describe = || ToolDescriptor::of_connector(&self.service, self.source, &self.name, &self.definition);
        self.descriptor.get_or_init(|| describe().map(Arc::new)).clone()
    }

    /// Checks parameters against the schema, and their names against those of the mapping. A schema that does not
    /// compile admits nothing.
    pub fn check(&self, parameters: &Value) -> Result<(), SchemaViolation> {
        self.check_schema(parameters)?;
        self.definition.check_sent_names(parameters)
    }

    /// Checks a result against the schema of results. A schema that does not compile admits nothing.
    pub(crate) fn check_result(&self, result: &Value) -> Result<(), SchemaViolation> {
        let Some(schema) = &self.definition.returns else { return Ok(()) };
        match self.returns.get_or_init(|| Schema::compile(schema)) {
            Ok(schema) => schema.check(result),
            Err(error) => Err(unusable_schema(error)),
        }
    }

    fn check_schema(&self, parameters: &Value) -> Result<(), SchemaViolation> {
        let Some(schema) = &self.definition.parameters else { return Ok(()) };
        match self.schema.get_or_init(|| Schema::compile(schema)) {
            Ok(schema) => schema.check_parameters(parameters),
            Err(error) => Err(unusable_schema(error)),
        }
    }
}

fn unusable_schema(error: &SchemaError) -> SchemaViolation {
    SchemaViolation {
        path: String::new(),
        rule: "schema".to_owned(),
        reason: format!("the tool's schema cannot be used: {error}"),
    }
}

fn required(definition: &ToolDefinition) -> Vec<String> {
    definition.required_scopes.iter().flatten().map(|scope| scope.as_str().to_owned()).collect()
}

/// One version of a service.
#[derive(Debug)]
pub struct Service {
    pub registered: RegisteredService,
    tools: BTreeMap<ToolName, Arc<Tool>>,
    /// The same tools by scope, so that an agent with few scopes of a large service does not search all of it.
    by_scope: HashMap<Scope, Vec<Arc<Tool>>>,
}

impl Service {
    fn new(registered: &RegisteredService) -> Self {
        let definition = &registered.definition;
        let mut tools = BTreeMap::new();
        let mut by_scope: HashMap<Scope, Vec<Arc<Tool>>> = HashMap::new();
        for (name, tool) in &definition.tools {
            let tool = Arc::new(Tool::registered(definition, name, tool));
            by_scope.entry(tool.definition.scope.clone()).or_default().push(Arc::clone(&tool));
            tools.insert(name.clone(), tool);
        }
        Self { registered: registered.clone(), tools, by_scope }
    }

    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        ToolName::parse(name).ok().and_then(|name| self.tools.get(&name))
    }

    /// By name.
    pub fn tools_of_scope(&self, scope: &Scope) -> impl Iterator<Item = &Arc<Tool>> {
        self.by_scope.get(scope).into_iter().flatten()
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.values()
    }
}

/// All registered services of a tenant.
#[derive(Debug)]
pub struct Catalog {
    pub revision: u64,
    services: BTreeMap<ServiceName, Vec<Arc<Service>>>,
}

impl Catalog {
    /// Reuses what has not changed since the previous catalog, including compiled schemas.
    fn new(registry: &Registry, previous: Option<&Self>) -> Self {
        let mut services: BTreeMap<ServiceName, Vec<Arc<Service>>> = BTreeMap::new();
        for registered in &registry.services {
            let known = previous.into_iter().flat_map(|catalog| catalog.versions(&registered.definition.service));
            let same = known.into_iter().find(|service| service.registered == *registered);
            let service = same.map_or_else(|| Arc::new(Service::new(registered)), Arc::clone);
            services.entry(registered.definition.service.clone()).or_default().push(service);
        }
        Self { revision: registry.revision, services }
    }

    /// The requested version of a service; by default the one registered last.
    pub fn service(&self, name: &ServiceName, version: Option<&ServiceVersion>) -> Option<&Service> {
        let versions = self.services.get(name)?;
        match version {
            None => versions.first(),
            Some(version) => versions.iter().find(|service| service.registered.definition.version == *version),
        }
        .map(|service| &**service)
    }

    /// All versions of a service, the last registered first.
    pub fn versions(&self, name: &ServiceName) -> &[Arc<Service>] {
        self.services.get(name).map_or(&[], Vec::as_slice)
    }

    /// All versions of all services, each service's newest first.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        self.services.values().flatten().map(|service| &**service)
    }
}

/// The catalogs of all tenants, each built once per revision of its registry.
pub(crate) struct Catalogs {
    services: Arc<dyn Services>,
    clock: Arc<dyn Clock>,
    built: Mutex<HashMap<TenantId, Arc<Catalog>>>,
}

impl Catalogs {
    pub(crate) fn new(services: Arc<dyn Services>, clock: Arc<dyn Clock>) -> Self {
        Self { services, clock, built: Mutex::default() }
    }

    pub(crate) async fn of(&self, tenant: &TenantId, freshness: Freshness) -> Result<Arc<Catalog>, Refusal> {
        let registry = self.services.registry(tenant, self.clock.now(), freshness).await?;
        let known = self.built.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned();
        let known = match known {
            Some(catalog) if catalog.revision == registry.revision => return Ok(catalog),
            known => known,
        };
        let catalog = Arc::new(Catalog::new(&registry, known.as_deref()));
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.insert(tenant.clone(), Arc::clone(&catalog));
        Ok(catalog)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
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
    fn a_tool_that_did_not_change_keeps_its_compiled_schema() {
        let definition = |service: &str, scope: &str| {
            let parameters = json!({"id": {"type": "string", "required": true}});
            let tools = json!({"list": {"scope": scope, "parameters": parameters}});
            let definition = json!({"service": service, "version": "1", "tools": tools});
            let time = Timestamp::from_millis(0).unwrap();
            let definition = ServiceDefinition::from_json(&definition).unwrap();
            RegisteredService { tenant: TenantId::default_tenant(), definition, created_at: time, updated_at: time }
        };
        let registry = |revision, services| Registry { revision, services };
        let first = Catalog::new(&registry(1, vec![definition("mail", "read"), definition("files", "read")]), None);
        let changed = registry(2, vec![definition("mail", "read"), definition("files", "write")]);
        let second = Catalog::new(&changed, Some(&first));
        let tool = |catalog: &Catalog, service: &str| {
            let service = catalog.service(&ServiceName::parse(service).unwrap(), None).unwrap();
            Arc::clone(service.tool("list").unwrap())
        };
        assert!(tool(&first, "mail").check(&json!({"id": "7"})).is_ok());
        assert!(tool(&second, "mail").schema.get().is_some(), "compiled for the catalog before");
        assert!(tool(&second, "files").schema.get().is_none(), "another definition");
        assert_eq!((first.revision, second.revision), (1, 2));
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
