//! Calls of the conformance endpoints: tools that are in no catalog, run through the same pipeline and into the same log as
//! every other call. The caller must be allowed to act for others.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::Map;
use toolgate_model::approval::{Approval, ApprovalRule, Attendance, Channel, Decision, Vote};
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{ApprovalNeed, SourceKind};
use toolgate_model::permission::Permission;
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::rate_limit::RateLimit;
use toolgate_model::scope::Scope;
use toolgate_model::service::{ToolDefinition, ToolName};

use super::settle::CallResult;
use super::{CallOptions, CallRequest, Denial, Observer, Pipeline, Presence};
use crate::action::Action;
use crate::authority::Administration;
use crate::builtin::Builtins;
use crate::catalog::Tool;
use crate::gate::{Ports, Shared};
use crate::identify::Caller;
use crate::ports::approver::Approver;
use crate::ports::clock::Clock;
use crate::ports::ledger::{Approvals, DecideApproval, Principals};
use crate::refusal::{Code, Refusal};

/// A call of a conformance endpoint.
pub struct ConformanceCall {
    pub request: CallRequest,
    /// The scopes that the tool requires, unparsed; a scope that cannot be parsed cannot be decided.
    pub required_scopes: Vec<String>,
    pub limit: Option<RateLimit>,
    /// [`Action::Conformance`] or [`Action::Fetch`].
    pub action: Action,
}

/// The conformance endpoints.
pub struct Conformance {
    principals: Arc<dyn Principals>,
    approvals: Arc<dyn Approvals>,
    approver: Arc<dyn Approver>,
    clock: Arc<dyn Clock>,
    builtins: Arc<Builtins>,
    administration: Arc<Administration>,
    pipeline: Arc<Pipeline>,
}

impl Conformance {
    pub(crate) fn new(
        ports: &Ports,
        shared: &Shared,
        administration: Arc<Administration>,
        pipeline: Arc<Pipeline>,
    ) -> Self {
        Self {
            principals: ports.ledger.clone(),
            approvals: ports.ledger.clone(),
            approver: Arc::clone(&ports.approver),
            clock: Arc::clone(&ports.clock),
            builtins: Arc::clone(&shared.builtins),
            administration,
            pipeline,
        }
    }

    /// Runs a call of a conformance endpoint through the pipeline.
    pub async fn run_conformance_call(
        &self,
        caller: Caller,
        conformance_call: ConformanceCall,
    ) -> Result<CallResult, Denial> {
        let denied = Denial::unrecorded;
        caller.require(Permission::ActAs).map_err(denied)?;
        let tool = Arc::new(self.conformance_tool(caller.tenant(), &conformance_call).map_err(denied)?);
        let request = conformance_call.request;
        self.pipeline.invoke_with(caller, request, CallOptions { tool: Some(tool), ..CallOptions::default() }).await
    }

    /// Opens a session of a tool that is in no catalog.
    pub async fn conformance_session(
        &self,
        caller: &Caller,
        tool: &str,
    ) -> Result<crate::ports::ledger::ToolSession, Refusal> {
        caller.require(Permission::ActAs)?;
        self.administration.open_session_of(caller, tool.to_owned(), None, None).await
    }
}

/// The tool behind the approval gate of the conformance suite.
const GATE: (&str, &str) = ("conformance", "approval-gate");

impl Conformance {
    /// Makes a call that two approvers must approve, and that one of them may override. The caller follows it, and
    /// cancels it by disconnecting.
    pub async fn conformance_gate(
        &self,
        caller: Caller,
        address: IpAddr,
        observer: Observer,
        presence: Presence,
    ) -> Result<CallResult, Denial> {
        let denied = Denial::unrecorded;
        caller.require(Permission::ActAs).map_err(denied)?;
        let tool = Arc::new(gated_tool().map_err(denied)?);
        let request = CallRequest {
            agent: Some(caller.id().clone()),
            observer: Some(observer),
            presence: Some(presence),
            ..CallRequest::new(format!("{}.{}", GATE.0, GATE.1), Map::new(), address)
        };
        self.pipeline.invoke_with(caller, request, CallOptions { tool: Some(tool), ..CallOptions::default() }).await
    }

    /// Records the decision of a principal on such a call, if the principal may decide: the ledger checks it like any
    /// other. The caller acts for the principal, and only on its own conformance calls.
    pub async fn conformance_decision(
        &self,
        caller: &Caller,
        approval: &Approval,
        principal: PrincipalId,
        decision: Decision,
        reason: Option<String>,
    ) -> Result<Approval, Refusal> {
        caller.require_acting_for(&principal)?;
        if approval.actor != *caller.id() || approval.tool != format!("{}.{}", GATE.0, GATE.1) {
            return Err(Refusal::new(Code::Internal, "this approval does not belong to a conformance call"));
        }
        let audit = caller.mandate(self.clock.now());
        let vote = Vote {
            by: principal,
            decision,
            channel: Channel::Http,
            reason,
            answer: None,
            wish: None,
            at: audit.time(),
        };
        let command = DecideApproval {
            audit,
            id: approval.id,
            vote,
            standing: None,
            notice: None,
            idempotency_key: None,
            request_digest: String::new(),
        };
        self.approvals.decide_approval(command).await.inspect(|decided| self.approver.resolved(decided))
    }

    pub async fn knows_principal(&self, caller: &Caller, principal: &PrincipalId) -> Result<bool, Refusal> {
        caller.require_acting_for(principal)?;
        let found = self.principals.principal(caller.tenant(), principal).await?;
        Ok(found.is_some_and(|principal| principal.removed_at.is_none()))
    }
}

fn gated_tool() -> Result<Tool, Refusal> {
    let wrong = || Refusal::new(Code::Internal, "the name of the conformance tool is not valid");
    let definition = ToolDefinition {
        approval: Some(ApprovalNeed::Always),
        approval_rule: Some(ApprovalRule {
            approvers: 2,
            ttl_seconds: Some(15),
            attendance: Some(Attendance::Inbox),
            standing: false,
            override_groups: Some(BTreeSet::new()),
            ..ApprovalRule::default()
        }),
        ..ToolDefinition::of_scope(Scope::parse("conformance").map_err(|_| wrong())?)
    };
    let service = ServiceName::parse(GATE.0).map_err(|_| wrong())?;
    let name = ToolName::parse(GATE.1).map_err(|_| wrong())?;
    Ok(Tool::built_in(service, name, Arc::new(definition), Action::Conformance { fails: false }))
}

impl Conformance {
    /// Whether a principal holds a scope; `false` for an unknown principal or a scope that cannot be parsed.
    pub async fn holds_scope(&self, caller: &Caller, principal: &PrincipalId, scope: &str) -> Result<bool, Refusal> {
        caller.require_acting_for(principal)?;
        let found = self.principals.principal(caller.tenant(), principal).await?;
        let found = found.filter(|principal| principal.removed_at.is_none());
        Ok(found.is_some_and(|principal| principal.scopes.cover_all([scope]).is_ok()))
    }
}

impl Conformance {
    fn conformance_tool(&self, tenant: &TenantId, conformance_call: &ConformanceCall) -> Result<Tool, Refusal> {
        let wrong =
            |_| Refusal::new(Code::InvalidField, "`toolName` is not a valid tool name").with("path", "toolName");
        let named = &conformance_call.request.tool;
        let (service, name) = named.split_once('.').unwrap_or(("conformance", named));
        let fetch = self.builtins.of(tenant).find(|builtin| builtin.tool.action == conformance_call.action);
        let source = fetch.map_or(SourceKind::Connector, |builtin| builtin.tool.source);
        let definition = match fetch {
            Some(builtin) => {
                ToolDefinition { rate_limit: conformance_call.limit, ..(*builtin.tool.definition).clone() }
            }
            None => ToolDefinition {
                rate_limit: conformance_call.limit,
                ..ToolDefinition::of_scope(Scope::parse("conformance").map_err(wrong)?)
            },
        };
        let (service, name) = (ServiceName::parse(service).map_err(wrong)?, ToolName::parse(name).map_err(wrong)?);
        let tool = Tool::built_in(service, name, Arc::new(definition), conformance_call.action);
        Ok(tool.of_source(source).requiring(conformance_call.required_scopes.clone()))
    }
}
