//! Discovery of tools, and why a call would be refused.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_model::constraint::{Constraints, Cost};
use toolgate_model::context::{ContextId, GrantContext};
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{ApprovalNeed, Egress, Hint, ReplayPolicy, SafetyTier, SourceKind, ToolId};
use toolgate_model::id::GrantId;
use toolgate_model::json_schema::ToolRateLimit;
use toolgate_model::principal::PrincipalId;
use toolgate_model::principal_scope::RequiredScope;
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::scope::Scope;
use toolgate_model::service::{ServiceVersion, ToolDefinition, ToolName};
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;

use crate::detached::DetachedCall;
use crate::document::{merge, refusal};
use crate::endpoint::endpoints;
use crate::error::ErrorBody;
use crate::grants::GrantSource;
use crate::reply::{Dollars, ErrorCode};
use crate::schemas::Schemas;

pub use self::calls::{
    AskedApproval, BriefApproval, CallContext, CallFailure, CallRequest, CallResponse, CallStep, FailedCall,
    SucceededCall,
};

mod calls;

endpoints! {
    tag "tools" = "Discovery of tools, and calls.";

    /// List the tools that the caller may know of
    ListTools = GET "/api/v1/tools" as "list_tools" {
        reply: OK ToolList = "The tools.",
    }

    /// List the tools of a service
    ListToolsOfService = GET "/api/v1/tools/{service}" as "list_tools_of_service" {
        path: ServiceName,
        reply: OK ToolsOfService = "The tools.",
    }

    /// List the tools that an agent has active grants for
    ListGrantedTools = GET "/api/v1/tools/granted" as "list_granted_tools" {
        query: GrantedQuery,
        reply: OK GrantedTools = "The tools.",
    }

    /// Explain why an agent can or cannot call a tool
    ///
    /// A dry run of the pipeline: nothing is reserved, sent or recorded.
    ExplainCall = GET "/api/v1/tools/why" as "explain_call" {
        query: WhyQuery,
        reply: OK Explanation = "The outcome that the call would have.",
        amend: describe_parameters,
    }

    /// Call a tool
    ///
    /// Needs `tools.invoke`. The gate resolves tool and grant, checks the call, waits for an approver where it needs one,
    /// adds the credential and calls the service. With `Accept: application/x-ndjson` the response is a stream of steps.
    /// With `Prefer: respond-async` the call is detached: the response is 202, or, with `wait=SECONDS` beside it, the
    /// result if the call ends in that time.
    InvokeTool = POST "/api/v1/tools/invoke" as "invoke_tool" {
        body: CallRequest = {"tool": "stripe.charges.read", "parameters": {"id": "ch_1"}},
        reply: OK SucceededCall = "It was executed.",
        stream: Lines CallStep = "Lines of JSON, each one step.",
        errors: [NotFound],
        amend: describe_call,
    }
}

/// The outcomes of a call besides success.
fn describe_call(operation: &mut Value, schemas: &mut Schemas) {
    describe_endings(operation, schemas);
    let either = json!({"anyOf": [schemas.reply::<ErrorBody>(), schemas.reply::<FailedCall>()]});
    let replayed = json!({"description": "`true` if it was executed before.", "schema": {"type": "string"}});
    merge(
        operation,
        json!({"responses": {
            "200": {"headers": {"Idempotent-Replayed": replayed}},
            "403": refusal("The call, or its result, is not allowed.", &either),
            "409": refusal("It is not possible in the current state.", &either),
        }}),
    );
}

/// The outcomes that a call and the result of a detached call share.
pub(crate) fn describe_endings(operation: &mut Value, schemas: &mut Schemas) {
    let failed = schemas.reply::<FailedCall>();
    let prefer = json!({
        "name": "Prefer",
        "in": "header",
        "description": "RFC 7240: `respond-async` and `wait=SECONDS`. Others are ignored.",
        "schema": {"type": "string"},
    });
    merge(
        operation,
        json!({
            "parameters": [prefer],
            "responses": {
                "202": detached_response(schemas),
                "502": refusal("The service, or the connection to it, failed.", &failed),
                "504": refusal("The service did not respond in time.", &failed),
            },
        }),
    );
}

/// The response about a detached call that has not ended.
pub(crate) fn detached_response(schemas: &mut Schemas) -> Value {
    json!({
        "description": "The call has not ended.",
        "headers": {
            "Location": {"description": "The URL of the call.", "schema": {"type": "string"}},
            "Retry-After": {"description": "Seconds to wait before asking again.", "schema": {"type": "integer"}},
        },
        "content": {"application/json": {"schema": schemas.reply::<DetachedCall>()}},
    })
}

/// The query parameter `parameters` is JSON.
fn describe_parameters(operation: &mut Value, _: &mut Schemas) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten();
    for parameter in parameters.filter(|parameter| parameter.get("name") == Some(&json!("parameters"))) {
        if let Some(members) = parameter.as_object_mut() {
            members.remove("schema");
            let schema = json!({"type": "object", "additionalProperties": true});
            members.insert("content".to_owned(), json!({"application/json": {"schema": schema}}));
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantedQuery {
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyQuery {
    /// As a call would name it.
    #[schemars(with = "ToolName")]
    pub tool: String,
    /// The caller where absent; another principal needs `agents.act_as`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<PrincipalId>,
    /// Of the service's definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ServiceVersion>,
    /// Those of the call, as a JSON object. Without them the checks of parameters are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// The intent that the call would belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<ContextId>,
    /// The plan that the call would belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<ContextId>,
    /// The task that the call would belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<ContextId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolList {
    pub services: Vec<ServiceTools>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolsOfService {
    pub service: ServiceName,
    pub services: Vec<ServiceTools>,
}

/// The tools of one version of a service.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ServiceTools {
    pub service: ServiceName,
    pub version: Option<ServiceVersion>,
    /// Whether a credential defines them, not the registry.
    pub implicit: bool,
    // With names as keys the schema would allow no others.
    #[schemars(with = "BTreeMap<String, Tool>")]
    pub tools: BTreeMap<ToolName, Tool>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its id in the catalog of all sources.
    pub tool_id: Option<ToolId>,
    pub title: Option<Line>,
    pub description: Option<String>,
    pub scope: Scope,
    #[schemars(with = "DefinedSource")]
    pub source: SourceKind,
    /// JSON Schema 2020-12; `null` if there is none.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub parameters: Option<Value>,
    /// JSON Schema 2020-12; `null` if there is none.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub returns: Option<Value>,
    pub idempotent: bool,
    #[schemars(with = "Option<Dollars>")]
    pub estimated_cost_usd: Option<f64>,
    /// `write` where none is declared.
    pub safety_tier: SafetyTier,
    pub approval: Option<ApprovalNeed>,
    /// The scopes that the caller itself must hold; `null` if none are declared.
    pub required_scopes: Option<BTreeSet<RequiredScope>>,
    pub egress: Option<Egress>,
    pub replay_policy: Option<ReplayPolicy>,
    pub cost_hint: Option<Hint>,
    pub latency_hint: Option<Hint>,
    #[schemars(with = "Option<ToolRateLimit>")]
    pub rate_limit: Option<RateLimit>,
}

impl Tool {
    pub fn new(id: Option<ToolId>, source: SourceKind, definition: &ToolDefinition) -> Self {
        Self {
            tool_id: id,
            title: definition.title.clone(),
            description: definition.description.clone(),
            scope: definition.scope.clone(),
            source,
            parameters: definition.parameters.clone(),
            returns: definition.returns.clone(),
            idempotent: definition.idempotent,
            estimated_cost_usd: definition.estimated_cost.map(Cost::dollars),
            safety_tier: definition.tier(),
            approval: definition.approval,
            required_scopes: definition.required_scopes.clone(),
            egress: definition.egress,
            replay_policy: definition.replay_policy,
            cost_hint: definition.cost_hint,
            latency_hint: definition.latency_hint,
            rate_limit: definition.rate_limit,
        }
    }
}

/// The sources that a service definition can name.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum DefinedSource {
    Connector,
    HostExtension,
    Mcp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantedTools {
    pub agent_id: PrincipalId,
    pub tools: Vec<GrantedTool>,
}

/// A tool, and the grant that opens it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantedTool {
    pub grant_id: GrantId,
    pub service: ServiceName,
    pub tool: ToolName,
    pub version: Option<ServiceVersion>,
    pub tool_id: Option<ToolId>,
    /// The name to call it by.
    pub name: String,
    /// A name to call it by of letters, digits, `_` and `-` only, for model APIs: the one that it has over MCP.
    pub alias: String,
    pub scope: Scope,
    pub description: Option<String>,
    /// JSON Schema 2020-12; `null` if there is none.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub parameters: Option<Value>,
    pub safety_tier: SafetyTier,
    pub approval: Option<ApprovalNeed>,
    pub required_scopes: Option<BTreeSet<RequiredScope>>,
    #[schemars(with = "Constraints")]
    pub constraints: Value,
    pub source: GrantSource,
    pub context: GrantContext,
    pub expires_at: Option<Timestamp>,
    /// `environment` of the credential's metadata, for agents that have grants for several. They see no other member.
    pub metadata: Map<String, Value>,
    /// The agent that delegated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "PrincipalId")]
    pub delegated_from: Option<PrincipalId>,
}

/// The outcome that a call would have.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Whether it would be admitted.
    pub allowed: bool,
    #[schemars(with = "ToolName")]
    pub tool: String,
    pub agent_id: PrincipalId,
    pub steps: Vec<ExplanationStep>,
}

/// One check; a failed one has the reason.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationStep {
    #[schemars(with = "DryStage")]
    pub stage: String,
    /// What was checked.
    pub subject: String,
    /// `null` is a note that decides nothing.
    pub passed: Option<bool>,
    #[serde(flatten)]
    pub refused: Option<StepRefusal>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StepRefusal {
    pub code: ErrorCode,
    pub reason: String,
    /// The details of the refusal.
    pub details: Map<String, Value>,
}

/// The stages up to the admission.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum DryStage {
    Identify,
    Resolve,
    Authorize,
    Constrain,
    Guard,
    Approve,
    Admit,
}
