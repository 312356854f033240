//! What carries calls out: services over the guarded way out, and the tools of this machine where the operator has
//! switched them on.

use async_trait::async_trait;
use serde_json::{Map, json};
use toolgate_egress::connectors::Connectors;
use toolgate_gate::Refusal;
use toolgate_gate::builtin;
use toolgate_gate::call::{Admitted, AdmittedAction};
use toolgate_gate::ports::source::{
    Access, Execution, FailureKind, Reservation, ServiceResponse, Source, SourceFailure,
};
use toolgate_model::approval::Category;
use toolgate_workspace::{Output, Workspace, WorkspaceError, WorkspaceTool};

/// All sources of a gate.
pub struct Sources {
    connectors: Connectors,
    workspace: Option<Workspace>,
}

impl Sources {
    /// Of these.
    pub fn new(connectors: Connectors, workspace: Option<Workspace>) -> Self {
        Self { connectors, workspace }
    }
}

#[async_trait]
impl Source for Sources {
    fn reserve(&self) -> Result<Reservation, Refusal> {
        self.connectors.reserve()
    }

    async fn execute(&self, call: &Admitted, access: Option<Access<'_>>) -> Execution {
        match (call.action(), &self.workspace) {
            (Some(AdmittedAction::Workspace), Some(workspace)) => use_tool(workspace, call).await,
            (Some(AdmittedAction::Workspace), None) => failed("this gate has no workspace".to_owned(), false),
            _ => self.connectors.execute(call, access).await,
        }
    }
}

async fn use_tool(workspace: &Workspace, call: &Admitted) -> Execution {
    let Some(tool) = WorkspaceTool::parse(call.tool().as_str()) else {
        return failed("the workspace has no such tool".to_owned(), false);
    };
    let nothing = Map::new();
    let arguments = call.parameters().as_object().unwrap_or(&nothing);
    match workspace.call(tool, arguments).await {
        Ok(Output { text, is_error, truncated, details }) => {
            let result = json!({"output": text, "is_error": is_error, "details": details});
            Ok(ServiceResponse { http_status: 200, result, truncated })
        }
        Err(error) => failed(error.to_string(), may_have_acted(&error)),
    }
}

/// Whether something may have been done before the error.
fn may_have_acted(error: &WorkspaceError) -> bool {
    matches!(error, WorkspaceError::System { .. })
}

fn failed(reason: String, sent: bool) -> Execution {
    let failure = SourceFailure {
        kind: FailureKind::Service,
        reason,
        http_status: None,
        result: None,
        truncated: false,
        sent,
        timed_out: false,
    };
    Err(failure)
}

/// The tools of this machine, as the gate is told of them.
pub fn workspace_tools() -> Vec<builtin::WorkspaceTool> {
    let described = |tool: WorkspaceTool| builtin::WorkspaceTool {
        name: tool.name(),
        // INVARIANT: the words are the same; one that were not would be taken for the most dangerous.
        category: Category::parse(tool.category()).unwrap_or(Category::Exec),
        description: tool.description(),
        parameters: tool.parameters(),
        is_question: tool == WorkspaceTool::AskUserQuestion,
    };
    WorkspaceTool::ALL.into_iter().map(described).collect()
}
