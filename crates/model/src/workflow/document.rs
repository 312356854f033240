//! The current state in the form of a file.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{DeclaredPlan, DeclaredRequirement, DeclaredTask, WorkflowName, WorkflowVersion, to_yaml};
use crate::grant::{Authority, DelegationDepth};
use crate::guard::PolicyFile;
use crate::permission::PermissionSet;
use crate::principal::{Principal, PrincipalChanges, PrincipalId, PrincipalKind};
use crate::service::ServiceDefinition;
use crate::spending::Budget;
use crate::text::Line;

/// A file that is put together.
#[derive(Debug, Default)]
pub struct Document {
    /// The vault of the grants that name none.
    pub vault: Option<String>,
    pub grants: BTreeMap<String, Vec<Value>>,
    pub agents: Map<String, Value>,
    pub services: Vec<Value>,
    pub policies: Map<String, Value>,
    /// The budget of the tenant.
    pub budget: Option<Budget>,
    pub plan: Option<DeclaredPlan>,
}

/// The terms of a grant in a file, besides its authority.
#[derive(Debug, Clone, Default)]
pub struct GrantPlace {
    pub service: String,
    /// If it is not the vault of the file.
    pub vault: Option<String>,
    /// If the vault has several credentials for the service.
    pub credential: Option<String>,
    /// Whether the expiry is the default, counted from when it was created.
    pub default_expiry: bool,
}

impl Document {
    pub fn add_agent(&mut self, principal: &Principal, capabilities: &[Line]) {
        let usual = Principal::new(
            principal.tenant.clone(),
            principal.id.clone(),
            principal.kind,
            PermissionSet::default(),
            principal.created_at,
        );
        let members = |principal: &Principal| match serde_json::to_value(PrincipalChanges {
            stopped: None,
            ..PrincipalChanges::of(principal)
        }) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let usual = members(&usual);
        let mut own = members(principal);
        own.retain(|name, value| name == "permissions" || usual.get(name) != Some(value));
        if principal.kind != PrincipalKind::Agent {
            own.insert("kind".to_owned(), json!(principal.kind));
        }
        if !capabilities.is_empty() {
            own.insert("capabilities".to_owned(), json!(capabilities));
        }
        self.agents.insert(principal.id.to_string(), Value::Object(own));
    }

    pub fn add_grant(&mut self, agent: &PrincipalId, authority: &Authority, place: GrantPlace) {
        let mut members = Map::new();
        let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
        set("service", json!(place.service));
        if let Some(vault) = place.vault {
            set("vault", json!(vault));
        }
        if let Some(credential) = place.credential {
            set("credential", json!(credential));
        }
        set("scopes", json!(authority.scopes));
        let constraints = authority.constraints.to_json();
        if constraints.as_object().is_some_and(|constraints| !constraints.is_empty()) {
            set("constraints", constraints);
        }
        let context = json!(authority.context);
        if context.as_object().is_some_and(|context| !context.is_empty()) {
            set("context", context);
        }
        set("delegatable", json!(authority.delegatable));
        if authority.delegation_depth != DelegationDepth::Limited(u32::from(authority.delegatable)) {
            set("delegation_depth", json!(authority.delegation_depth.to_option()));
        }
        match authority.expires_at {
            None => {
                set("expires_at", Value::Null);
                set("allow_indefinite", json!(true));
            }
            Some(_) if place.default_expiry => {}
            Some(end) => {
                set("expires_at", json!(end));
            }
        }
        self.grants.entry(agent.to_string()).or_default().push(Value::Object(members));
    }

    pub fn add_service(&mut self, definition: &ServiceDefinition) {
        self.services.push(definition.to_json());
    }

    pub fn add_policies(&mut self, files: &[PolicyFile]) {
        self.policies.extend(files.iter().map(|file| (file.name.clone(), json!(file.text))));
    }

    /// The text of the file.
    pub fn to_text(&self, name: &WorkflowName, version: &WorkflowVersion) -> String {
        let mut members = vec![("name", json!(name)), ("version", json!(version))];
        if !self.services.is_empty() {
            members.push(("services", json!(self.services)));
        }
        if !self.grants.is_empty() || self.vault.is_some() {
            let mut tools = Map::new();
            if let Some(vault) = &self.vault {
                tools.insert("vault".to_owned(), json!(vault));
            }
            tools.insert("grants".to_owned(), json!(self.grants));
            members.push(("tools", Value::Object(tools)));
        }
        if !self.agents.is_empty() {
            members.push(("agents", Value::Object(self.agents.clone())));
        }
        if !self.policies.is_empty() {
            members.push(("policies", Value::Object(self.policies.clone())));
        }
        if let Some(budget) = &self.budget {
            members.push(("budgets", json!({"tenant": budget})));
        }
        if let Some(plan) = &self.plan {
            if let Some(coordinator) = &plan.coordinator {
                members.push(("coordinator", json!(coordinator.value)));
            }
            if let Some(guardrails) = &plan.guardrails {
                members.push(("guardrails", Value::Object(guardrails.value.to_json())));
            }
            members.push(("plan", plan.tasks.iter().map(DeclaredTask::to_json).collect()));
        }
        to_yaml(&members)
    }
}

impl DeclaredPlan {
    /// The normal form, which is also what two applications of a file are compared by.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        if let Some(coordinator) = &self.coordinator {
            members.insert("coordinator".to_owned(), json!(coordinator.value));
        }
        if let Some(guardrails) = &self.guardrails {
            members.insert("guardrails".to_owned(), Value::Object(guardrails.value.to_json()));
        }
        members.insert("plan".to_owned(), self.tasks.iter().map(DeclaredTask::to_json).collect());
        Value::Object(members)
    }
}

impl DeclaredTask {
    /// The normal form: only what is set.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
        set("task", json!(self.name.value));
        if let Some(agent) = &self.agent {
            set("agent", json!(agent.value));
        }
        if let Some(description) = &self.description {
            set("description", json!(description));
        }
        if !self.depends_on.is_empty() {
            set("depends_on", self.depends_on.iter().map(|name| json!(name.value)).collect());
        }
        if !self.requires_tools.is_empty() {
            set("requires_tools", self.requires_tools.iter().map(DeclaredRequirement::to_json).collect());
        }
        if !self.outputs.is_empty() {
            set("outputs", json!(self.outputs));
        }
        if !self.input.is_empty() {
            set("input", Value::Object(self.input.clone()));
        }
        if let Some(seconds) = self.timeout_seconds {
            set("timeout_seconds", json!(seconds));
        }
        if let Some(deadline) = self.deadline {
            set("deadline", json!(deadline));
        }
        if let Some(attempts) = self.max_attempts {
            set("max_attempts", json!(attempts));
        }
        Value::Object(members)
    }
}

impl DeclaredRequirement {
    fn to_json(&self) -> Value {
        let scopes: Vec<Value> = self.scopes.iter().map(|scope| json!(scope.value)).collect();
        let mut value = json!({"service": self.service.value, "scopes": scopes});
        if let (false, Some(members)) = (self.required, value.as_object_mut()) {
            members.insert("required".to_owned(), json!(false));
        }
        value
    }
}
