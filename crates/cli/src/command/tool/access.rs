//! What a principal lacks to call a tool. An estimate from listed data: `tool why` is the decision of the gate.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_api::agents::Agent;
use toolgate_api::credentials::Credential;
use toolgate_api::tools::GrantedTool;
use toolgate_model::credential::{CredentialStatus, ServiceName};
use toolgate_model::descriptor::ToolId;
use toolgate_model::permission::Permission;
use toolgate_model::principal_scope::{NotCovered, RequiredScope, covers_all};
use toolgate_model::scope::Scope;
use toolgate_model::service::{ServiceVersion, ToolName};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Missing {
    Permission {
        permission: String,
    },
    /// The tool is not on its allowlist.
    Allowlist,
    /// There is no credential for the tool, so no grant can be created either.
    Credential,
    Grant,
    /// A scope that the tool requires of the principal itself.
    Scope {
        scope: String,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission { permission } => write!(formatter, "permission {permission}"),
            Self::Allowlist => formatter.write_str("not on its allowlist"),
            Self::Credential => formatter.write_str("no credential"),
            Self::Grant => formatter.write_str("no grant"),
            Self::Scope { scope } => write!(formatter, "scope {scope}"),
        }
    }
}

/// What a principal has, as far as the caller may know.
#[derive(Default)]
pub(super) struct PrincipalAccess {
    /// `None` if the caller may not see the principal.
    pub(super) principal: Option<Agent>,
    /// One element for each pair of a grant and a tool that it opens.
    pub(super) granted: Vec<GrantedTool>,
    /// All credentials of the tenant; `None` if the caller may not see them.
    pub(super) credentials: Option<Vec<Credential>>,
}

/// A tool in one version of its service.
pub(super) struct Tool {
    pub(super) service: ServiceName,
    pub(super) name: ToolName,
    /// The version of the service's definition; `None` for a tool that a credential defines.
    pub(super) version: Option<ServiceVersion>,
    pub(super) id: Option<ToolId>,
    pub(super) scope: Scope,
    /// What it requires of the caller itself.
    pub(super) required_scopes: BTreeSet<RequiredScope>,
    /// All that the gate returned about it.
    pub(super) declared: Map<String, Value>,
}

impl Tool {
    /// `SERVICE.TOOL`.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.service, self.name)
    }

    pub(super) fn declared(&self, name: &str) -> &Value {
        self.declared.get(name).unwrap_or(&Value::Null)
    }
}

impl PrincipalAccess {
    /// Whether the principal holds a grant for the scope of this tool.
    pub(super) fn has_grant(&self, tool: &Tool) -> bool {
        self.granted.iter().any(|granted| granted.service == tool.service && granted.scope == tool.scope)
    }

    pub(super) fn missing(&self, tool: &Tool) -> Vec<Missing> {
        let mut missing = Vec::new();
        if let Some(principal) = &self.principal {
            missing.extend(missing_of_principal(principal, tool));
        }
        if !self.has_grant(tool) {
            let known = self.credentials.as_ref();
            let none = known.is_some_and(|known| !known.iter().any(|credential| serves(credential, tool)));
            missing.push(if none { Missing::Credential } else { Missing::Grant });
        }
        missing
    }
}

fn missing_of_principal(principal: &Agent, tool: &Tool) -> Vec<Missing> {
    let mut missing = Vec::new();
    if !principal.permissions.has(Permission::InvokeTools) {
        missing.push(Missing::Permission { permission: Permission::InvokeTools.to_string() });
    }
    let listed = |allowed: &BTreeSet<ToolId>| tool.id.as_ref().is_some_and(|id| allowed.contains(id));
    if principal.tool_allowlist.as_ref().is_some_and(|allowed| !listed(allowed)) {
        missing.push(Missing::Allowlist);
    }
    let required = || tool.required_scopes.iter().map(RequiredScope::as_str);
    let scopes = match covers_all(principal.scopes.iter().map(String::as_str), required()) {
        Ok(()) => Vec::new(),
        Err(NotCovered::Missing(scopes)) => scopes,
        // What cannot be decided is denied.
        Err(NotCovered::Unevaluable { .. }) => required().map(str::to_owned).collect(),
    };
    missing.extend(scopes.into_iter().map(|scope| Missing::Scope { scope }));
    missing
}

/// Whether the tool could be called with this credential.
fn serves(credential: &Credential, tool: &Tool) -> bool {
    credential.service == tool.service
        && credential.status == CredentialStatus::Active
        && credential.scopes_available.contains(&tool.scope)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::principal::{Principal, PrincipalKind};
    use toolgate_model::time::Timestamp;

    use super::*;
    use crate::command::values::typed;

    fn tool() -> Tool {
        Tool {
            service: typed("service", "mail").unwrap(),
            name: typed("name", "messages.send").unwrap(),
            version: typed("version", "1").unwrap(),
            id: typed("id", "connector:mail.messages.send").unwrap(),
            scope: typed("scope", "messages.send").unwrap(),
            required_scopes: typed("required_scopes", ["tools:mail:send"]).unwrap(),
            declared: Map::new(),
        }
    }

    fn principal(permissions: &[&str], scopes: &[&str], allowlist: Option<&[&str]>) -> Agent {
        let principal = Principal::new(
            typed("tenant_id", "default").unwrap(),
            typed("id", "clerk").unwrap(),
            PrincipalKind::Agent,
            typed("permissions", permissions).unwrap(),
            Timestamp::EPOCH,
        );
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Agent { scopes, tool_allowlist: typed("tool_allowlist", allowlist).unwrap(), ..principal.into() }
    }

    fn granted(service: &str) -> GrantedTool {
        let granted = json!({
            "grant_id": "grant_01ARZ3NDEKTSV4RRFFQ69G5FAV", "service": service, "tool": "messages.send", "version": "1",
            "tool_id": null, "name": "messages.send", "alias": "mail_messages__send", "scope": "messages.send",
            "description": null, "parameters": null, "safety_tier": "write", "approval": null, "required_scopes": null, "constraints": {}, "source": "direct",
            "context": {}, "expires_at": null, "metadata": {},
        });
        serde_json::from_value(granted).unwrap()
    }

    fn credential(status: &str, scope: &str) -> Credential {
        let time = "2026-03-08T10:00:00.000+00:00";
        let credential = json!({
            "id": "cred_01ARZ3NDEKTSV4RRFFQ69G5FAV", "vault_id": "vault_01ARZ3NDEKTSV4RRFFQ69G5FAV", "service": "mail",
            "label": "Mail", "auth_type": "api_key", "scopes_available": [scope], "metadata": {},
            "credential_metadata": {}, "status": status, "version": 1, "material_fields": ["api_key"],
            "created_at": time, "rotated_at": time, "expires_at": null, "revoked_at": null,
        });
        serde_json::from_value(credential).unwrap()
    }

    fn missing(access: &PrincipalAccess) -> Vec<String> {
        access.missing(&tool()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_is_missing_to_who_has_grant_scope_and_permission() {
        let allowlist = ["connector:mail.messages.send"];
        let access = PrincipalAccess {
            principal: Some(principal(&["tools.invoke"], &["tools:mail:*"], Some(&allowlist))),
            granted: vec![granted("mail")],
            credentials: Some(Vec::new()),
        };
        assert_eq!(missing(&access), [""; 0]);
    }

    #[test]
    fn everything_that_is_missing_is_named() {
        let principal = principal(&["audit.read"], &["tools:sms:*"], Some(&[]));
        let access = PrincipalAccess { principal: Some(principal), granted: Vec::new(), credentials: Some(Vec::new()) };
        assert_eq!(
            missing(&access),
            ["permission tools.invoke", "not on its allowlist", "scope tools:mail:send", "no credential"]
        );
    }

    #[test]
    fn a_grant_is_missing_where_a_credential_is_there_or_not_to_be_seen() {
        for (credentials, said) in [
            (None, "no grant"),
            (Some(vec![credential("active", "messages.send")]), "no grant"),
            (Some(vec![credential("revoked", "messages.send")]), "no credential"),
            (Some(vec![credential("active", "messages.read")]), "no credential"),
        ] {
            assert_eq!(missing(&PrincipalAccess { credentials, ..PrincipalAccess::default() }), [said]);
        }
        let other = PrincipalAccess { granted: vec![granted("sms")], ..PrincipalAccess::default() };
        assert_eq!(missing(&other), ["no grant"]);
    }

    #[test]
    fn a_scope_that_cannot_be_read_opens_nothing() {
        let principal = principal(&["tools.invoke"], &["tools mail"], None);
        let access = PrincipalAccess { principal: Some(principal), ..PrincipalAccess::default() };
        assert_eq!(missing(&access), ["scope tools:mail:send", "no grant"]);
    }
}
