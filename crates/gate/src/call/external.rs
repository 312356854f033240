//! Client-executed calls: before a coding agent uses one of its own tools, it asks whether it may. These calls pass the
//! same pipeline and the same log as every other call, but nothing is executed here.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use toolgate_model::approval::Category;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::{SafetyTier, SourceKind};
use toolgate_model::id::{ApprovalId, InvocationId, StandingApprovalId};
use toolgate_model::scope::Scope;
use toolgate_model::service::{ToolDefinition, ToolName};

use super::hooks::Hooks;
use super::{CallOptions, CallRequest, Denial, Progress};
use crate::action::Action;
use crate::catalog::Tool;
use crate::identify::Caller;
use crate::refusal::{Code, Refusal};

/// A call that a client is about to execute itself.
pub struct ExternalCall {
    /// Its tool is the program and the program's tool, as in `claude-code.Bash`.
    pub request: CallRequest,
    pub category: Category,
    /// Whether the client can execute the call with modified arguments.
    pub takes_changes: bool,
}

/// The permission to execute the call, and what it is based on.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalPermit {
    pub invocation: InvocationId,
    pub approval: Option<ApprovalId>,
    pub standing: Vec<StandingApprovalId>,
    /// The arguments to use, if guardians modified them.
    pub arguments: Option<Value>,
}

impl Hooks {
    /// Decides whether a call may be executed; waits for an approver if required.
    pub async fn ask(&self, caller: Caller, asked: ExternalCall) -> Result<ExternalPermit, Denial> {
        let denied = Denial::unrecorded;
        let ExternalCall { request, category, takes_changes } = asked;
        let tool = Arc::new(external_tool(&request.tool, category).map_err(denied)?);
        self.require_foreign(&caller, &tool).await.map_err(denied)?;
        let (observer, mut progress) = mpsc::unbounded_channel();
        let request = CallRequest { observer: Some(observer), ..request };
        let options = CallOptions { tool: Some(tool), takes_changes, ..CallOptions::default() };
        let result = self.pipeline.invoke_with(caller, request, options).await?;
        let mut permit =
            ExternalPermit { invocation: result.invocation, approval: None, standing: Vec::new(), arguments: None };
        while let Ok(step) = progress.try_recv() {
            match step {
                Progress::Asked(approval) => permit.approval = Some(approval.id),
                Progress::Covered(standing) => permit.standing = standing,
                Progress::Modified(change) => permit.arguments = Some(change.parameters),
                Progress::Admitted(_) | Progress::Upstream(_) => {}
            }
        }
        match result.outcome.error {
            None => Ok(permit),
            Some(error) => {
                let refusal = Refusal::new(Code::GuardianDenied, error.message);
                Err(Denial::refused(Some(result.invocation), refusal))
            }
        }
    }
}

impl Hooks {
    /// An approval for a tool that only a client has must not cover a tool of the gate with the same name.
    async fn require_foreign(&self, caller: &Caller, tool: &Tool) -> Result<(), Refusal> {
        if !self.governs(caller.tenant(), tool.qualified_name(), false).await? {
            return Ok(());
        }
        let reason = format!("`{}` is a service of this gate; call its tools through the gate", tool.service);
        Err(Refusal::new(Code::InvalidField, reason).with("path", "tool"))
    }
}

/// A tool that only the client knows.
pub(super) fn external_tool(named: &str, category: Category) -> Result<Tool, Refusal> {
    let wrong = || {
        let reason = "`tool` must be a program and its tool, as in claude-code.Bash";
        Refusal::new(Code::InvalidField, reason).with("path", "tool")
    };
    let (service, name) = named.split_once('.').ok_or_else(wrong)?;
    let tier = match category {
        Category::Info => SafetyTier::Read,
        Category::Edit | Category::Mcp => SafetyTier::Write,
        Category::Exec => SafetyTier::Exec,
    };
    let scope = Scope::parse("external").map_err(|_| wrong())?;
    let definition = ToolDefinition { safety_tier: Some(tier), ..ToolDefinition::of_scope(scope) };
    let service = ServiceName::parse(service).map_err(|_| wrong())?;
    let name = ToolName::parse(name).map_err(|_| wrong())?;
    let tool = Tool::built_in(service, name, Arc::new(definition), Action::ClientExecuted);
    Ok(tool.of_source(SourceKind::HostExtension).of_category(category))
}
