//! The workspace as a source of the gate, for gates whose operator has enabled it.

use async_trait::async_trait;
use serde_json::{Map, json};
use toolgate_gate::Action;
use toolgate_gate::builtin;
use toolgate_gate::call::Admitted;
use toolgate_gate::ports::source::{Access, Execution, FailureKind, ServiceResponse, Source, SourceFailure};
use toolgate_model::approval::Category;
use toolgate_workspace::{Output, Workspace, WorkspaceError, WorkspaceTool};

/// Executes the tools of a workspace.
pub struct WorkspaceSource(pub Workspace);

#[async_trait]
impl Source for WorkspaceSource {
    fn executes(&self, action: Action) -> bool {
        action == Action::Workspace
    }

    async fn execute(&self, call: &Admitted, _: Option<Access<'_>>) -> Execution {
        let Some(tool) = WorkspaceTool::parse(call.tool().as_str()) else {
            return failed("the workspace has no such tool".to_owned(), false);
        };
        let nothing = Map::new();
        let arguments = call.parameters().as_object().unwrap_or(&nothing);
        match self.0.call(tool, arguments).await {
            Ok(Output { text, is_error, truncated, details }) => {
                let result = json!({"output": text, "is_error": is_error, "details": details});
                Ok(ServiceResponse { http_status: 200, result, truncated })
            }
            Err(error) => failed(error.to_string(), may_have_acted(&error)),
        }
    }
}

/// Whether something may have been done before the error.
fn may_have_acted(error: &WorkspaceError) -> bool {
    matches!(error, WorkspaceError::System { .. })
}

fn failed(reason: String, sent: bool) -> Execution {
    Err(SourceFailure { sent, ..SourceFailure::not_sent(FailureKind::Service, reason) })
}

/// The workspace tools, as the gate knows them.
pub fn workspace_tools() -> Vec<builtin::WorkspaceTool> {
    let described = |tool: WorkspaceTool| builtin::WorkspaceTool {
        name: tool.name(),
        // INVARIANT: the words are the same; an unknown one would count as the most dangerous.
        category: Category::parse(tool.category()).unwrap_or(Category::Exec),
        description: tool.description(),
        parameters: tool.parameters(),
        is_question: tool == WorkspaceTool::AskUserQuestion,
    };
    WorkspaceTool::ALL.into_iter().map(described).collect()
}
