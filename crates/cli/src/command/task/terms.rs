//! The options of `toolgate task create`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use toolgate_api::reading::Object;
use toolgate_api::work::tasks::TaskRequest;
use toolgate_model::credential::ServiceName;
use toolgate_model::scope::ScopeSet;

use super::requirements::{parse_requirement, requirement};
use crate::command::Failure;
use crate::command::values::{Expiry, read_object, typed, typed_option};
use crate::durations;

#[derive(Args)]
pub(crate) struct Terms {
    /// What the agent is to do
    #[arg(long)]
    description: Option<String>,
    /// Id of the plan that it belongs to
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// Tools that an agent must have to claim it; may be repeated
    #[arg(long = "requires", value_name = "SERVICE:SCOPE,SCOPE", value_parser = parse_requirement)]
    requires: Vec<(ServiceName, ScopeSet)>,
    /// Optional tools; may be repeated
    #[arg(long = "optional", value_name = "SERVICE:SCOPE,SCOPE", value_parser = parse_requirement)]
    optional: Vec<(ServiceName, ScopeSet)>,
    /// Id of a task that must end before; may be repeated
    #[arg(long = "after", value_name = "ID")]
    after: Vec<String>,
    /// Agent that it is assigned to
    #[arg(long, value_name = "ID")]
    assign: Option<String>,
    /// Priority: low, normal, high or critical
    #[arg(long)]
    priority: Option<String>,
    /// File with its input as a JSON object, or - for standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Timeout of the task, such as 30m
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    timeout: Option<Duration>,
    /// When it must be completed: a time, or a duration such as 8h
    #[arg(long, value_name = "TIME", value_parser = Expiry::parse_end)]
    deadline: Option<Expiry>,
    /// Maximum number of attempts [default: 3]
    #[arg(long, value_name = "NUMBER")]
    max_attempts: Option<u32>,
}

impl Terms {
    pub(super) fn read(self, intent: String, name: &str) -> Result<TaskRequest, Failure> {
        let required = self.requires.into_iter().map(|parsed| requirement(parsed, true));
        let optional = self.optional.into_iter().map(|parsed| requirement(parsed, false));
        Ok(TaskRequest {
            intent_id: intent,
            name: typed("name", name)?,
            plan_id: self.plan,
            description: typed_option("description", self.description)?,
            priority: typed_option("priority", self.priority)?,
            input: self.input.as_ref().map(read_object).transpose()?,
            capabilities_required: Vec::new(),
            depends_on: self.after,
            parent_task_id: None,
            assigned_agent: typed_option("assigned_agent", self.assign)?,
            requires_tools: required.chain(optional).map(Object).collect(),
            timeout_seconds: self.timeout.map(|timeout| timeout.as_secs()),
            deadline: self.deadline.and_then(Expiry::time),
            max_attempts: self.max_attempts,
            permissions: None,
            metadata: None,
        })
    }
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let duration = durations::parse(text).filter(|duration| duration.as_secs() > 0);
    duration.ok_or_else(|| format!("use {}", durations::ADVICE))
}
