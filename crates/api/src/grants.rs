//! Grants and delegation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::ServiceName;
use toolgate_model::grant::{DelegationDepth, GrantStatus};
use toolgate_model::id::{CredentialId, GrantId};
use toolgate_model::principal::PrincipalId;
use toolgate_model::scope::ScopeSet;
use toolgate_model::time::Timestamp;

use crate::credentials::Reason;
use crate::endpoint::{RequestBody, endpoints};
use crate::parameters::{Cursor, Limit};
use crate::reading::{optional_object, present};
use crate::reply::constants;

pub use self::replies::{
    Ancestor, EffectiveAuthority, Grant, GrantBranch, GrantPage, GrantTree, ReadGrant, RevokedGrant, RootBranch,
    StatedGrant,
};

mod replies;

endpoints! {
    tag "grants" = "The authority of one agent over some scopes of one credential. It only narrows as it is delegated.";

    /// Create a grant
    ///
    /// Needs `tools.manage`.
    CreateGrant = POST "/api/v1/grants" as "create_grant" {
        body: GrantRequest,
        reply: CREATED Grant = "The grant.",
        errors: [NotFound],
    }

    /// List the grants that the caller may see
    ListGrants = GET "/api/v1/grants" as "list_grants" {
        query: GrantQuery,
        reply: OK GrantPage = "A page of grants.",
    }

    /// List all grants of an agent
    ///
    /// Revoked and expired ones included, up to 10000, as the Python client of OpenIntent reads them.
    ListGrantsOfAgent = GET "/api/v1/agents/{agent_id}/grants" as "list_grants_of_agent" {
        path: PrincipalId,
        reply: OK Vec<Grant> = "All grants of the agent.",
    }

    /// Show a grant
    ShowGrant = GET "/api/v1/grants/{grant_id}" as "show_grant" {
        path: GrantId,
        reply: OK ReadGrant = "The grant.",
    }

    /// Revoke a grant with everything below it
    RevokeGrant = DELETE "/api/v1/grants/{grant_id}" as "revoke_grant" {
        path: GrantId,
        body: Reason,
        reply: OK RevokedGrant = "What was revoked.",
    }

    /// Show a grant with all that was delegated from it
    ShowGrantTree = GET "/api/v1/grants/{grant_id}/tree" as "show_grant_tree" {
        path: GrantId,
        reply: OK GrantTree = "The tree.",
    }

    /// Delegate part of a grant
    ///
    /// Needs `tools.delegate` and to hold the grant, or to manage its credential. Absent members are inherited; nothing
    /// may be wider.
    DelegateGrant = POST "/api/v1/grants/{grant_id}/delegate" as "delegate_grant" {
        path: GrantId,
        body: DelegationRequest = {"target_agent_id": "refunds", "scopes": ["charges.read"]},
        reply: CREATED Grant = "The new grant.",
    }

    /// Suspend a grant and its descendants
    SuspendGrant = PATCH "/api/v1/grants/{grant_id}/suspend" as "suspend_grant" {
        path: GrantId,
        body: Reason,
        reply: OK Grant = "The grant.",
    }

    /// Resume a suspended grant
    ResumeGrant = PATCH "/api/v1/grants/{grant_id}/resume" as "resume_grant" {
        path: GrantId,
        reply: OK Grant = "The grant.",
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    // A text that is not an id names no credential.
    #[schemars(with = "CredentialId")]
    pub credential_id: String,
    /// The principal that may use it.
    pub agent_id: PrincipalId,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<PrincipalId>,
    #[serde(default)]
    pub scopes: ScopeSet,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<Constraints>")]
    pub constraints: Value,
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub context: Option<GrantContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegatable: Option<bool>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DelegationDepth")]
    pub delegation_depth: Option<Option<u32>>,
    /// A time in the future; `null` is no end and needs `allow_indefinite`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub expires_at: Option<Option<Timestamp>>,
    /// That a grant without end is meant.
    #[serde(default)]
    pub allow_indefinite: bool,
}

impl RequestBody for GrantRequest {}

impl GrantRequest {
    /// A grant by the caller, without scopes and constraints and with the default end.
    pub fn new(credential_id: String, agent_id: PrincipalId) -> Self {
        Self {
            credential_id,
            agent_id,
            granted_by: None,
            scopes: ScopeSet::default(),
            constraints: Value::Null,
            context: None,
            delegatable: None,
            delegation_depth: None,
            expires_at: None,
            allow_indefinite: false,
        }
    }
}

/// A delegation to `target_agent_id` or `agent_id`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegationRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<DelegateAction>")]
    pub action: Option<String>,
    /// The grant of the path, or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<GrantId>")]
    pub source_grant_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(default)]
    pub scopes: ScopeSet,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schemars(with = "Option<Constraints>")]
    pub constraints: Value,
    #[serde(default, deserialize_with = "optional_object", skip_serializing_if = "Option::is_none")]
    pub context: Option<GrantContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegatable: Option<bool>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "DelegationDepth")]
    pub delegation_depth: Option<Option<u32>>,
    /// A time in the future; `null` is no end and needs `allow_indefinite`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Timestamp>")]
    pub expires_at: Option<Option<Timestamp>>,
    /// That a grant without end is meant.
    #[serde(default)]
    pub allow_indefinite: bool,
}

impl RequestBody for DelegationRequest {}

constants! {
    DelegateAction = "delegate_grant";
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    /// A text that is not an id matches nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<String>,
    /// The status of the grant itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<GrantStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<GrantSource>,
    /// A text that is not an id matches nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_grant_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantSource {
    Delegated,
    Direct,
}
