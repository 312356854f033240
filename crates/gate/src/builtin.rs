//! The built-in tools. They need no service, credential or grant: any principal with their scopes may use them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::approval::Category;
use toolgate_model::constraint::ParameterPath;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{
    ApprovalNeed, DescriptorFields, Egress, Hint, ReplayPolicy, SafetyTier, SourceKind, ToolAuth, ToolDescriptor,
    ToolId,
};
use toolgate_model::principal::TenantId;
use toolgate_model::principal_scope::RequiredScope;
use toolgate_model::scope::Scope;
use toolgate_model::service::{FieldRule, LoggingRule, ToolDefinition, ToolName};
use toolgate_model::text::{Label, Line};

use crate::action::Action;
use crate::catalog::Tool;
use crate::settings::MachineTools;

/// The name of the guarded fetch, without the scope prefix of its id.
pub const HTTP_FETCH: &str = "http.fetch";
/// The scope that it requires.
pub const HTTP_FETCH_SCOPE: &str = "http:fetch";
/// The service of the workspace tools.
pub const WORKSPACE: &str = "toolgate-workspace";
/// The prefix of their names in a call.
const WORKSPACE_PREFIX: &str = "x-host-toolgate-workspace.";
/// The methods that `http.fetch` accepts.
pub const HTTP_FETCH_METHODS: [&str; 6] = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"];

/// Whether a tool of this name is executed on the machine of the gate.
pub fn is_workspace_tool(name: &str) -> bool {
    let service = name.strip_prefix("x-host-").unwrap_or(name).strip_prefix(WORKSPACE);
    service.is_some_and(|rest| rest.starts_with(['.', ':']))
}

#[derive(Debug)]
pub struct Builtin {
    /// As calls resolve it.
    pub tool: Arc<Tool>,
    /// As the catalog shows it.
    pub descriptor: Arc<ToolDescriptor>,
}

/// A workspace tool, executed on the machine of the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceTool {
    pub name: &'static str,
    pub category: Category,
    /// For people and agents.
    pub description: &'static str,
    /// The schema of its parameters.
    pub parameters: Value,
    /// Whether it asks a person, whose answer is the result.
    pub is_question: bool,
}

/// All built-in tools.
#[derive(Debug)]
pub(crate) struct Builtins {
    /// Available to every tenant.
    common: Vec<Builtin>,
    /// The workspace tools.
    machine: Vec<Builtin>,
    /// The only tenants that have the workspace tools.
    machine_tenants: BTreeSet<TenantId>,
}

impl Builtins {
    /// The tools that every gate has, and these.
    pub(crate) fn new(machine: &MachineTools) -> Self {
        Self {
            common: http_fetch().into_iter().collect(),
            machine: machine.tools.iter().filter_map(workspace_tool).collect(),
            machine_tenants: machine.tenants.clone(),
        }
    }

    /// The built-in tools of a tenant.
    pub(crate) fn of(&self, tenant: &TenantId) -> impl Iterator<Item = &Builtin> {
        let machine = if self.machine_tenants.contains(tenant) { self.machine.as_slice() } else { &[] };
        self.common.iter().chain(machine)
    }

    pub(crate) fn find(&self, tenant: &TenantId, tool: &ToolId) -> Option<&Builtin> {
        self.of(tenant).find(|builtin| builtin.descriptor.fields().tool_id == *tool)
    }

    /// Finds a tool of a tenant by its id, or by the name that the log has for a workspace tool.
    pub(crate) fn named(&self, tenant: &TenantId, name: &str) -> Option<&Builtin> {
        if let Some(tool) = name.strip_prefix(WORKSPACE_PREFIX) {
            return self
                .of(tenant)
                .find(|builtin| builtin.tool.service.as_str() == WORKSPACE && builtin.tool.name.as_str() == tool);
        }
        self.find(tenant, &ToolId::parse(name).ok()?)
    }

    /// A tenant's of this alias.
    pub(crate) fn aliased(&self, tenant: &TenantId, alias: &str) -> Option<&Builtin> {
        self.of(tenant).find(|builtin| builtin.tool.alias().as_str() == alias)
    }
}

fn workspace_tool(stated: &WorkspaceTool) -> Option<Builtin> {
    let (scope, tier) = match stated.category {
        Category::Info => ("workspace:read", SafetyTier::Read),
        Category::Edit => ("workspace:write", SafetyTier::Write),
        Category::Exec | Category::Mcp => ("workspace:exec", SafetyTier::Exec),
    };
    let field = |name: &str, rule| Some((ParameterPath::parse(name).ok()?, rule));
    // What is written is content; the operation and the file are what an operator needs.
    let logging = LoggingRule {
        fields: [
            field("content", FieldRule::Hash)?,
            field("new_string", FieldRule::Hash)?,
            field("old_string", FieldRule::Hash)?,
        ]
        .into(),
        ..LoggingRule::default()
    };
    let definition = ToolDefinition {
        logging,
        title: Line::parse(stated.name).ok(),
        description: Some(stated.description.to_owned()),
        safety_tier: Some(tier),
        required_scopes: Some(BTreeSet::from([RequiredScope::parse(scope).ok()?])),
        approval: Some(if stated.is_question { ApprovalNeed::Always } else { ApprovalNeed::Conditional }),
        egress: Some(Egress::HostOwned),
        parameters: Some(stated.parameters.clone()),
        timeout: Some(Action::Workspace.longest()),
        ..ToolDefinition::of_scope(Scope::parse("workspace").ok()?)
    };
    let (action, category) = match stated.is_question {
        true => (Action::Question, Category::Info),
        false => (Action::Workspace, stated.category),
    };
    let (service, name) = (ServiceName::parse(WORKSPACE).ok()?, ToolName::parse(stated.name).ok()?);
    let tool = Tool::built_in(service, name, Arc::new(definition), action)
        .of_source(SourceKind::HostExtension)
        .of_category(category);
    let mut fields = tool.descriptor().ok()?.fields().clone();
    if let Some(auth) = &mut fields.auth {
        auth.credential_ref = false;
    }
    Some(Builtin { tool: Arc::new(tool), descriptor: Arc::new(ToolDescriptor::new(fields).ok()?) })
}

/// The guarded fetch (RFC 0076 §B). It can send data, so its tier is write.
///
/// INVARIANT: it exists; the texts are fixed, and a test parses them.
fn http_fetch() -> Option<Builtin> {
    let name = ToolName::parse(HTTP_FETCH).ok()?;
    let scopes = BTreeSet::from([RequiredScope::parse(HTTP_FETCH_SCOPE).ok()?]);
    let title = Line::parse("Fetch over HTTP").ok()?;
    let description = "Sends one HTTP request to a public address and returns the response. Private, loopback and \
                       link-local addresses are refused, redirects are not followed."
        .to_owned();
    let parameters = json!({
        "type": "object",
        "properties": {
            "url": {
                "type": "string", "minLength": 1, "maxLength": 8192, "description": "An absolute http or https URL."
            },
            "method": {"type": "string", "enum": HTTP_FETCH_METHODS, "default": "GET"},
            "headers": {
                "type": "object",
                "additionalProperties": {"type": "string", "maxLength": 8192},
                "maxProperties": 64,
                "description": "Request headers, by name."
            },
            "body": {"type": "string", "description": "The request body, as text."}
        },
        "required": ["url"],
        "additionalProperties": false
    });
    // Body and headers are content; the destination is what an operator needs.
    let field = |name: &str, rule| Some((ParameterPath::parse(name).ok()?, rule));
    let logging = LoggingRule {
        fields: [field("body", FieldRule::Hash)?, field("headers", FieldRule::Omit)?].into(),
        ..LoggingRule::default()
    };
    let definition = ToolDefinition {
        logging,
        title: Some(title.clone()),
        description: Some(description.clone()),
        safety_tier: Some(SafetyTier::Write),
        required_scopes: Some(scopes.clone()),
        egress: Some(Egress::SafeFetch),
        replay_policy: Some(ReplayPolicy::NonDeterministic),
        latency_hint: Some(Hint::Medium),
        parameters: Some(parameters.clone()),
        // A fetched page is untrusted content, and a request can carry any data out.
        labels: BTreeSet::from([Label::parse("untrusted-content").ok()?, Label::parse("sends-outside").ok()?]),
        ..ToolDefinition::of_scope(Scope::parse(HTTP_FETCH).ok()?)
    };
    let descriptor = ToolDescriptor::new(DescriptorFields {
        tool_id: ToolId::core(&name),
        source: SourceKind::NodePack,
        title: Some(title),
        description: Some(description),
        input_schema: Some(parameters),
        output_schema: None,
        auth: Some(ToolAuth { scopes, credential_ref: false }),
        egress: definition.egress,
        approval: None,
        replay_policy: definition.replay_policy,
        safety_tier: SafetyTier::Write,
        cost_hint: None,
        latency_hint: definition.latency_hint,
    });
    // The log's name joins the two with a dot.
    let (service, short) = HTTP_FETCH.split_once('.')?;
    let (service, short) = (ServiceName::parse(service).ok()?, ToolName::parse(short).ok()?);
    let tool = Tool::built_in(service, short, Arc::new(definition), Action::Fetch).of_source(SourceKind::NodePack);
    Some(Builtin { tool: Arc::new(tool), descriptor: Arc::new(descriptor.ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_model::schema::Schema;

    #[test]
    fn every_builtin_tool_has_a_descriptor_that_fits_and_is_found_by_its_id() {
        let schema = Schema::compile(&ToolDescriptor::schema()).unwrap();
        let builtins = Builtins::new(&MachineTools::default());
        let tenant = TenantId::default_tenant();
        for builtin in builtins.of(&tenant) {
            schema.check(&json!(*builtin.descriptor)).unwrap();
            Schema::compile(builtin.tool.definition.parameters.as_ref().unwrap()).unwrap();
            let id = &builtin.descriptor.fields().tool_id;
            assert_eq!(builtins.find(&tenant, id).unwrap().tool.name, builtin.tool.name);
            assert_eq!(builtin.tool.id().as_ref(), Some(id));
        }
        assert_eq!(builtins.of(&tenant).count(), 1);
        assert!(builtins.find(&tenant, &ToolId::parse("openwop:http.other").unwrap()).is_none());
    }

    #[test]
    fn the_fetch_needs_its_scope_and_no_credential() {
        let builtins = Builtins::new(&MachineTools::default());
        let shown = json!(*builtins.of(&TenantId::default_tenant()).next().unwrap().descriptor);
        assert_eq!(shown["auth"], json!({"scopes": ["http:fetch"], "credentialRef": false}));
        assert_eq!((&shown["source"], &shown["safetyTier"]), (&json!("node-pack"), &json!("write")));
        assert_eq!(shown["egress"], "safe-fetch");
    }

    #[test]
    fn the_tools_of_the_machine_are_there_for_the_tenants_that_are_named_and_for_no_other() {
        let bash = WorkspaceTool {
            name: "Bash",
            category: Category::Exec,
            description: "runs a command line",
            parameters: json!({"type": "object"}),
            is_question: false,
        };
        let named = TenantId::default_tenant();
        let tenants = BTreeSet::from([named.clone()]);
        let builtins = Builtins::new(&MachineTools { tenants, tools: vec![bash], root: None });
        let id = ToolId::parse("x-host-toolgate-workspace:Bash").unwrap();
        let other = TenantId::parse("acme").unwrap();
        assert!(builtins.find(&named, &id).is_some());
        assert!(builtins.named(&named, "x-host-toolgate-workspace.Bash").is_some());
        assert!(builtins.find(&other, &id).is_none());
        assert!(builtins.named(&other, "x-host-toolgate-workspace.Bash").is_none());
        assert_eq!((builtins.of(&named).count(), builtins.of(&other).count()), (2, 1));
    }
}
