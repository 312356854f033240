//! Which tool a question is about: one that the gate governs, or one that only whoever asks knows.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_model::approval::Category;

use super::executions::Remembered;
use super::{HookQuestion, UnknownTools};
use crate::call::external::external_tool;
use crate::catalog::Tool;
use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::ledger::Freshness;
use crate::refusal::{Code, Refusal};

/// What stands for a tool whose name has no service.
const NO_SERVICE: &str = "agent";
/// What stands for a tool that is not named.
const UNKNOWN: &str = "unknown";

impl Gate {
    /// The tool that has answered: the one that the execution was begun with, or the one that is named, or one that nobody
    /// knows.
    pub(super) async fn answered_tool(
        self: &Arc<Self>,
        caller: &Caller,
        question: &HookQuestion,
    ) -> Result<Remembered, Refusal> {
        let HookQuestion { event, agent, .. } = question;
        let begun = event.execution.as_ref().and_then(|execution| self.executions.find(caller, agent, execution));
        if let Some(remembered) = begun {
            return Ok(remembered);
        }
        let named = event.tool.as_deref().unwrap_or(UNKNOWN);
        match self.known_tool(caller, question, named, Map::new()).await? {
            Some(tool) => Ok(Remembered { tool, governed: true }),
            None => Ok(Remembered { tool: Arc::new(unknown_tool(named, Category::Mcp)?), governed: false }),
        }
    }

    /// The tool that the question names, if the gate governs it: with the agent's grants where it may use it, else as the
    /// catalog has it, so that the path refuses it.
    pub(super) async fn known_tool(
        self: &Arc<Self>,
        caller: &Caller,
        question: &HookQuestion,
        named: &str,
        arguments: Map<String, Value>,
    ) -> Result<Option<Arc<Tool>>, Refusal> {
        let request = self.request(question, named.to_owned(), arguments);
        let (call, _) = self.begin(caller.clone(), request)?;
        let found = match self.resolve(&call, Freshness::Newest).await {
            Ok(resolved) => resolved.first().map(|candidate| candidate.tool),
            Err(refusal) if matches!(refusal.code(), Code::LedgerUnavailable | Code::Internal) => return Err(refusal),
            Err(_) => None,
        };
        if found.is_some() {
            return Ok(found);
        }
        let catalog = self.catalog(caller.tenant(), Freshness::Newest).await?;
        let wanted = named.strip_prefix("connector:").unwrap_or(named);
        let is_meant = |tool: &&Arc<Tool>| {
            let rest = wanted.strip_prefix(tool.service.as_str()).and_then(|rest| rest.strip_prefix('.'));
            rest == Some(tool.name.as_str()) || tool.id().is_some_and(|id| id.as_str() == named)
        };
        Ok(catalog.services().flat_map(|service| service.tools()).find(is_meant).cloned())
    }

    /// A tool that the gate does not know, if those may be asked about.
    pub(super) async fn foreign_tool(
        &self,
        caller: &Caller,
        question: &HookQuestion,
        named: &str,
    ) -> Result<Tool, Refusal> {
        if question.terms.unknown_tools == UnknownTools::Deny {
            return Err(Refusal::new(Code::ToolNotFound, format!("`{named}` is no tool that this gate knows")));
        }
        let tool = unknown_tool(named, Category::Mcp)?;
        self.require_foreign(caller, &tool).await?;
        Ok(tool)
    }
}

/// A tool that only whoever asks knows. What cannot stand in a name is written as `@` and its bytes, so that no two names
/// become one.
pub(super) fn unknown_tool(named: &str, category: Category) -> Result<Tool, Refusal> {
    let mut name = String::with_capacity(named.len());
    for letter in named.chars() {
        if letter.is_ascii_alphanumeric() || "._:-".contains(letter) {
            name.push(letter);
            continue;
        }
        let mut buffer = [0; 4];
        for byte in letter.encode_utf8(&mut buffer).bytes() {
            name.push_str(&format!("@{byte:02x}"));
        }
    }
    let tool = match name.split_once('.') {
        Some((service, tool)) if !service.is_empty() && !tool.is_empty() => name.clone(),
        _ => format!("{NO_SERVICE}.{name}"),
    };
    external_tool(&tool, category)
}
