//! The registry of services and their tools. A definition controls where credentials are sent, so changing it needs the
//! permission to manage every credential of the tenant.

use std::sync::Arc;

use toolgate_model::credential::ServiceName;
use toolgate_model::permission::Permission;
use toolgate_model::service::{DefinitionError, McpMethod, ServiceDefinition, ServiceVersion, ToolDefinition};

use crate::authority::Administration;
use crate::builtin;
use crate::identify::Caller;
use crate::ports::ledger::{ApplyService, Freshness, RegisteredService, Registry, RemoveService};
use crate::refusal::{Code, Refusal};

impl Administration {
    /// Registers or replaces a version of a service. Returns whether it is new.
    pub async fn apply_service(
        &self,
        caller: &Caller,
        definition: ServiceDefinition,
        replace: bool,
    ) -> Result<(RegisteredService, bool), Refusal> {
        let (service, version) = (definition.service.clone(), definition.version.clone());
        let command = self.service_application(caller, definition, replace)?;
        let new = self.services.apply_service(command).await?;
        let registered = self.service(caller, &service, Some(&version)).await?;
        let registered = registered.into_iter().next().ok_or_else(|| not_found(&service))?;
        Ok((registered, new))
    }

    /// The command that registers a version of a service, if the caller may.
    pub(super) fn service_application(
        &self,
        caller: &Caller,
        definition: ServiceDefinition,
        replace: bool,
    ) -> Result<ApplyService, Refusal> {
        require_registrar(caller)?;
        // An approval for one must not cover the other.
        if definition.service.as_str() == builtin::WORKSPACE {
            let reason = format!("`{}` is reserved for built-in tools; choose another name", builtin::WORKSPACE);
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "service"));
        }
        require_pins(&definition)?;
        refuse_store_tools(&definition)?;
        Ok(ApplyService { audit: caller.mandate(self.clock.now()), definition, replace })
    }

    /// Removes a version of a service, or all versions, and returns how many.
    pub async fn remove_service(
        &self,
        caller: &Caller,
        service: ServiceName,
        version: Option<ServiceVersion>,
    ) -> Result<u64, Refusal> {
        let command = self.service_removal(caller, service, version)?;
        self.services.remove_service(command).await
    }

    /// The command that removes versions of a service, if the caller may.
    pub(super) fn service_removal(
        &self,
        caller: &Caller,
        service: ServiceName,
        version: Option<ServiceVersion>,
    ) -> Result<RemoveService, Refusal> {
        require_registrar(caller)?;
        Ok(RemoveService { audit: caller.mandate(self.clock.now()), service, version })
    }

    pub async fn services(&self, caller: &Caller) -> Result<Arc<Registry>, Refusal> {
        caller.require(Permission::ManageTools)?;
        self.services.registry(caller.tenant(), self.clock.now(), Freshness::Newest).await
    }

    /// The versions of one service, newest first.
    pub async fn service(
        &self,
        caller: &Caller,
        service: &ServiceName,
        version: Option<&ServiceVersion>,
    ) -> Result<Vec<RegisteredService>, Refusal> {
        if !caller.may(Permission::ManageTools) {
            return Err(not_found(service));
        }
        let registry = self.services.registry(caller.tenant(), self.clock.now(), Freshness::Newest).await?;
        let wanted = |registered: &&RegisteredService| {
            let definition = &registered.definition;
            definition.service == *service && version.is_none_or(|version| definition.version == *version)
        };
        let versions: Vec<_> = registry.services.iter().filter(wanted).cloned().collect();
        if versions.is_empty() { Err(not_found(service)) } else { Ok(versions) }
    }
}

impl From<DefinitionError> for Refusal {
    fn from(error: DefinitionError) -> Self {
        Self::new(Code::InvalidField, error.to_string()).with("path", &error.path)
    }
}

/// A tool of an MCP server without a pinned definition could change under everybody's eyes.
fn require_pins(definition: &ServiceDefinition) -> Result<(), Refusal> {
    let is_unpinned = |tool: &ToolDefinition| {
        let mapping = tool.mcp.as_ref();
        mapping.is_some_and(|mapping| mapping.method == McpMethod::CallTool && mapping.definition_hash.is_none())
    };
    let Some((name, _)) = definition.tools.iter().find(|(_, tool)| is_unpinned(tool)) else { return Ok(()) };
    let reason = format!(
        "tool `{name}` of an MCP server has no `definition_hash`; mount the server with `toolgate mount add`, which pins \
        what a person accepts, or give the hash of the definition"
    );
    Err(Refusal::new(Code::InvalidField, reason).with("path", format!("tools.{name}.mcp.definition_hash")))
}

/// What a store does is not a matter of definitions.
fn refuse_store_tools(definition: &ServiceDefinition) -> Result<(), Refusal> {
    let Some((name, _)) = definition.tools.iter().find(|(_, tool)| tool.store.is_some()) else { return Ok(()) };
    let reason = format!("tool `{name}` has `store`, which only stores have; create one with `toolgate memory create`");
    Err(Refusal::new(Code::InvalidField, reason).with("path", format!("tools.{name}.store")))
}

pub(super) fn require_registrar(caller: &Caller) -> Result<(), Refusal> {
    caller.require(Permission::ManageTools)?;
    if caller.manages_all() {
        return Ok(());
    }
    let reason = format!(
        "a service definition controls where every credential of the service is sent, so it also needs the permission \
        {}",
        Permission::ActAs
    );
    Err(Refusal::new(Code::PermissionDenied, reason).with("required_permission", Permission::ActAs))
}

pub(crate) fn not_found(service: &ServiceName) -> Refusal {
    Refusal::new(Code::ServiceNotFound, format!("there is no service `{service}`"))
}
