//! What a principal needs for a tool and does not have, at a glance. Only a glance: `tool why` asks the gate itself.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use toolgate_model::permission::Permission;
use toolgate_model::principal_scope::{NotCovered, covers_all};

use crate::output::at;

/// Something that a principal needs for a tool and does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Missing {
    /// The permission to call tools at all.
    Permission {
        /// Which.
        permission: String,
    },
    /// Its allowlist leaves the tool out.
    Allowlist,
    /// Nobody has a credential that the tool could be called with, so no grant can be given either.
    Credential,
    /// It holds no grant with the scope of the tool.
    Grant,
    /// It does not hold a scope that the tool requires of the principal itself.
    Scope {
        /// Which.
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

/// What a principal has, as far as whoever asks may know.
#[derive(Default)]
pub(super) struct PrincipalAccess {
    /// The principal as the gate shows it; `None` where that is not to be seen.
    pub(super) principal: Option<Value>,
    /// One row for each grant and each tool that it opens.
    pub(super) granted: Vec<Value>,
    /// All credentials of the tenant; `None` where they are not to be seen.
    pub(super) credentials: Option<Vec<Value>>,
}

/// A tool that somebody may want to call.
pub(super) struct Tool {
    /// Its service.
    pub(super) service: String,
    /// Its name in the service.
    pub(super) name: String,
    /// The version of the service's definition; `null` for a tool that a credential defines.
    pub(super) version: Value,
    /// What the gate tells of it.
    pub(super) declared: Map<String, Value>,
}

impl Tool {
    /// As it is called.
    pub(super) fn full_name(&self) -> String {
        format!("{}.{}", self.service, self.name)
    }

    /// A member of what is told of it.
    pub(super) fn declared(&self, name: &str) -> &Value {
        self.declared.get(name).unwrap_or(&Value::Null)
    }
}

impl PrincipalAccess {
    /// Whether the principal holds a grant for this scope of this service.
    pub(super) fn has_grant(&self, tool: &Tool) -> bool {
        self.granted.iter().any(|row| at(row, "service") == &tool.service && at(row, "scope") == tool.declared("scope"))
    }

    /// What the principal would need besides.
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

fn missing_of_principal(principal: &Value, tool: &Tool) -> Vec<Missing> {
    let mut missing = Vec::new();
    let permission = Permission::InvokeTools.to_string();
    if !texts(at(principal, "permissions")).contains(permission.as_str()) {
        missing.push(Missing::Permission { permission });
    }
    if at(principal, "tool_allowlist").as_array().is_some_and(|allowed| !allowed.contains(tool.declared("tool_id"))) {
        missing.push(Missing::Allowlist);
    }
    let required = texts(tool.declared("required_scopes"));
    let scopes = match covers_all(texts(at(principal, "scopes")), required.iter().copied()) {
        Ok(()) => Vec::new(),
        Err(NotCovered::Missing(scopes)) => scopes,
        // What cannot be decided is denied.
        Err(NotCovered::Unevaluable { .. }) => required.into_iter().map(str::to_owned).collect(),
    };
    missing.extend(scopes.into_iter().map(|scope| Missing::Scope { scope }));
    missing
}

/// Whether a tool could be called with this credential.
fn serves(credential: &Value, tool: &Tool) -> bool {
    at(credential, "service") == &tool.service
        && at(credential, "status") == "active"
        && at(credential, "scopes_available").as_array().is_some_and(|scopes| scopes.contains(tool.declared("scope")))
}

fn texts(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> Tool {
        let declared = json!({
            "scope": "messages.send", "required_scopes": ["tools:mail:send"], "tool_id": "connector:mail.messages.send",
        });
        let Value::Object(declared) = declared else { panic!("an object") };
        Tool { service: "mail".to_owned(), name: "messages.send".to_owned(), version: json!("1"), declared }
    }

    fn missing(access: &PrincipalAccess) -> Vec<String> {
        access.missing(&tool()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_is_missing_to_who_has_grant_scope_and_permission() {
        let access = PrincipalAccess {
            principal: Some(json!({
                "permissions": ["tools.invoke"], "scopes": ["tools:mail:*"],
                "tool_allowlist": ["connector:mail.messages.send"],
            })),
            granted: vec![json!({"service": "mail", "scope": "messages.send"})],
            credentials: Some(Vec::new()),
        };
        assert!(access.missing(&tool()).is_empty());
    }

    #[test]
    fn everything_that_is_missing_is_named() {
        let principal = json!({"permissions": ["audit.read"], "scopes": ["tools:sms:*"], "tool_allowlist": []});
        let access = PrincipalAccess { principal: Some(principal), granted: Vec::new(), credentials: Some(Vec::new()) };
        assert_eq!(
            missing(&access),
            ["permission tools.invoke", "not on its allowlist", "scope tools:mail:send", "no credential"]
        );
    }

    #[test]
    fn a_grant_is_missing_where_a_credential_is_there_or_not_to_be_seen() {
        let credential =
            |status: &str, scope: &str| json!({"service": "mail", "status": status, "scopes_available": [scope]});
        for (credentials, said) in [
            (None, "no grant"),
            (Some(vec![credential("active", "messages.send")]), "no grant"),
            (Some(vec![credential("revoked", "messages.send")]), "no credential"),
            (Some(vec![credential("active", "messages.read")]), "no credential"),
        ] {
            assert_eq!(missing(&PrincipalAccess { credentials, ..PrincipalAccess::default() }), [said]);
        }
        let other = json!({"service": "sms", "scope": "messages.send"});
        assert_eq!(missing(&PrincipalAccess { granted: vec![other], ..PrincipalAccess::default() }), ["no grant"]);
    }

    #[test]
    fn a_scope_that_cannot_be_read_opens_nothing() {
        let principal = json!({"permissions": ["tools.invoke"], "scopes": ["tools mail"]});
        let access = PrincipalAccess { principal: Some(principal), ..PrincipalAccess::default() };
        assert_eq!(missing(&access), ["scope tools:mail:send", "no grant"]);
    }
}
