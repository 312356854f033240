//! `toolgate tool`: discovery, explanation and calls of tools.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toolgate_api::services::{ListServices, ShowService};
use toolgate_api::tools::{CallContext, CallRequest, ExplainCall, InvokeTool, SucceededCall, WhyQuery};
use toolgate_model::context::GrantContext;

use self::listing::Listing;
use self::parameters::{Parameter, parse_object, parse_parameter};
use super::service::{first_line, parameters as names_of};
use super::values::{read_object, typed_option};
use super::{Connection, Failure, typos};
use crate::client::{Client, Outcome};
use crate::output::{Report, clean, clean_lines, json_text, plain};

mod access;
mod calling;
mod explanation;
mod lint;
mod listing;
mod parameters;
mod why;

/// List, explain and call tools
#[derive(Args)]
pub(crate) struct Tool {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List tools, with their safety tier and what a caller lacks to call them
    #[command(after_help = "Example:\n  toolgate tool list --service payments\n  toolgate tool list --agent billing")]
    List {
        /// Only tools of this service
        #[arg(long)]
        service: Option<String>,
        /// Agent that would call [default: you]
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Show a tool in all its versions
    #[command(after_help = "Example:\n  toolgate tool show payments.charges.create --agent billing")]
    Show {
        /// SERVICE.TOOL, a tool id, or a tool name that is unique
        tool: String,
        /// Agent that would call [default: you]
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Only this version of the service
        #[arg(long)]
        version: Option<String>,
    },
    /// Explain step by step why an agent can or cannot call a tool
    ///
    /// Dry-runs the pipeline of such a call. Exit status: 0 if the call would be admitted, 1 if not.
    #[command(
        after_help = "Example:\n  toolgate tool why payments.charges.create --agent billing\n  toolgate tool why payments.charges.create --agent billing --parameters '{\"amount\": 2000}'"
    )]
    Why(Box<Why>),
    /// List what registered tools do not declare, such as tier, approval, egress and scopes
    #[command(after_help = "Example:\n  toolgate tool lint\n  toolgate tool lint payments --strict")]
    Lint {
        /// Only tools of this service
        service: Option<String>,
        /// Exit with status 1 if anything is undeclared
        #[arg(long)]
        strict: bool,
    },
    /// Call a tool through the gate
    ///
    /// Prints only the result on standard output, and the outcome on standard error. If the call is refused or fails, the
    /// error says what to change.
    #[command(
        after_help = "Example:\n  toolgate tool call payments.charges.create --param currency=usd --param amount:=2000 | jq .id\n  toolgate tool call payments.charges.read --json-params '{\"id\": \"ch_1\"}' --agent billing"
    )]
    Call(Box<Call>),
}

#[derive(Args)]
pub(crate) struct Why {
    /// Tool, as a call would name it
    tool: String,
    /// Agent that would call [default: you]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Parameters of the call as a JSON object; not checked if absent
    #[arg(long, value_name = "JSON", value_parser = parse_object)]
    parameters: Option<Map<String, Value>>,
    /// Version of the service [default: that of the credential, or the newest]
    #[arg(long)]
    version: Option<String>,
    /// Intent of the call
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// Plan of the call
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// Task of the call
    #[arg(long, value_name = "ID")]
    task: Option<String>,
}

#[derive(Args)]
pub(crate) struct Call {
    /// SERVICE.TOOL, or a tool name that is unique
    tool: String,
    /// Parameter: NAME=TEXT, or NAME:=JSON; may be repeated
    #[arg(short, long = "param", value_name = "NAME=TEXT|NAME:=JSON", value_parser = parse_parameter)]
    parameters: Vec<Parameter>,
    /// Parameters as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_object)]
    json_params: Option<Map<String, Value>>,
    /// File with parameters as a JSON object, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "json_params")]
    params_file: Option<PathBuf>,
    /// Grant to use [default: selected by the gate]
    #[arg(long, value_name = "ID")]
    grant: Option<String>,
    /// Agent to call as [default: you]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Version of the service [default: that of the credential, or the newest]
    #[arg(long)]
    version: Option<String>,
    /// Idempotency key: the call is executed once per key
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Intent of the call
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// Plan of the call
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// Task of the call
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Detach the call: print its id, for `toolgate invocation result`, and do not wait
    #[arg(long)]
    detach: bool,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            Self::List { service, agent } => {
                let client = connection.client()?;
                let listing = match Listing::fetch(&client, service.as_deref(), agent.clone()).await {
                    Ok(listing) => listing,
                    Err(Failure::Client(error)) => {
                        return Err(typos::with_agent(&client, error, agent.as_deref().unwrap_or_default()).await);
                    }
                    Err(failure) => return Err(failure),
                };
                let report = listing.list();
                typos::warn_of_empty(&client, &report, None, service.as_deref()).await;
                Ok(report)
            }
            Self::Show { tool, agent, version } => {
                Listing::fetch(&connection.client()?, None, agent).await?.show(&tool, version.as_deref())
            }
            Self::Why(why) => {
                let query = why.query()?;
                Ok(why::report(&connection.client()?.to::<ExplainCall>().query(&query).send().await?))
            }
            Self::Lint { service, strict } => {
                let client = connection.client()?;
                let versions = match service {
                    Some(service) => client.to::<ShowService>().named(&service).send().await?.versions,
                    None => client.to::<ListServices>().send().await?.services,
                };
                let versions: Vec<Value> = versions.iter().map(|version| json!(version)).collect();
                Ok(lint::lint(&versions, strict))
            }
            Self::Call(call) => {
                let (tool, detach) = (call.tool.clone(), call.detach);
                let body = call.body()?;
                let client = connection.client()?;
                let called = match detach {
                    true => client.to::<InvokeTool>().body(&body).begin().await.map(|begun| match begun {
                        Outcome::Detached(call) => calling::accepted(&call),
                        Outcome::Completed(call) => report(&call),
                    }),
                    false => calling::call(&client, &body).await.map(|call| report(&call)),
                };
                match called {
                    Ok(report) => Ok(report),
                    Err(error) => {
                        let meant = typos::tool_meant(&client, &error, &tool).await;
                        Err(explanation::explained(error, meant))
                    }
                }
            }
        }
    }
}

impl Why {
    fn query(self) -> Result<WhyQuery, Failure> {
        Ok(WhyQuery {
            tool: self.tool,
            agent_id: typed_option("agent_id", self.agent)?,
            version: typed_option("version", self.version)?,
            parameters: self.parameters.map(|parameters| Value::Object(parameters).to_string()),
            intent_id: typed_option("intent_id", self.intent)?,
            plan_id: typed_option("plan_id", self.plan)?,
            task_id: typed_option("task_id", self.task)?,
        })
    }
}

impl Call {
    fn body(self) -> Result<CallRequest, Failure> {
        let mut parameters = match (self.json_params, &self.params_file) {
            (Some(given), _) => given,
            (None, Some(file)) => read_object(file)?,
            (None, None) => Map::new(),
        };
        for Parameter { name, value } in self.parameters {
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Failure::Usage(format!("parameter `{name}` is given twice; remove one")));
            }
        }
        let context = GrantContext {
            intent_id: typed_option("context.intent_id", self.intent)?,
            plan_id: typed_option("context.plan_id", self.plan)?,
            task_id: typed_option("context.task_id", self.task)?,
        };
        Ok(CallRequest {
            tool: Some(self.tool),
            version: typed_option("version", self.version)?,
            grant_id: self.grant,
            agent_id: typed_option("agent_id", self.agent)?,
            parameters: Some(parameters),
            idempotency_key: typed_option("idempotency_key", self.idempotency_key)?,
            context: (context != GrantContext::default()).then(|| CallContext {
                intent_id: context.intent_id,
                plan_id: context.plan_id,
                task_id: context.task_id,
                ..CallContext::default()
            }),
            ..CallRequest::default()
        })
    }
}

/// Waits for the result of a detached call.
pub(super) async fn result_of(client: &Client, id: &str) -> Result<Report, Failure> {
    let followed = calling::follow(client, id).await;
    Ok(report(&followed.map_err(|error| explanation::explained(error, None))?))
}

/// Only the result goes to standard output, so that it can be piped; the rest goes to standard error.
fn report(call: &SucceededCall) -> Report {
    let result = match &call.result {
        Value::Null => String::new(),
        Value::String(text) => clean_lines(text),
        other => json_text(other),
    };
    let mut aside = format!(
        "{} succeeded in {} ms, with {}, recorded as {}.\n",
        clean(&call.tool_name),
        call.duration_ms,
        plain(&json!(call.grant_id)),
        call.invocation_id
    );
    if call.result.is_null() {
        aside.push_str("The service returned no content.\n");
    }
    if call.truncated {
        aside.push_str("The result was truncated.\n");
    }
    if call.replayed {
        let time = call.timestamp;
        aside.push_str(&format!("This is the stored result of {time}; the service was not called again.\n"));
    }
    Report::new(call, result).with_aside(aside)
}
