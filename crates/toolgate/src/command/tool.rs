//! `toolgate tool`: which tools there are for whom, why, what they leave undeclared, and calling one.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use self::listing::Listing;
use self::parameters::{Parameter, parse_object, parse_parameter};
use super::service::{first_line, parameters as names_of};
use super::values::read_object;
use super::{Connection, Failure, object, typos};
use crate::client::{Client, escaped, with_query};
use crate::output::{Report, at, clean, clean_lines, json_text, plain};

mod access;
mod calling;
mod explanation;
mod lint;
mod listing;
mod parameters;
mod why;

/// List tools, find out who can call them and why, and call them
#[derive(Args)]
pub(crate) struct Tool {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List tools: how dangerous each is, and what you or an agent still need for it
    #[command(after_help = "Example:\n  toolgate tool list --service payments\n  toolgate tool list --agent billing")]
    List {
        /// Only of this service
        #[arg(long)]
        service: Option<String>,
        /// For whom; you unless said otherwise
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Show all that is known of a tool, in each of its versions
    #[command(after_help = "Example:\n  toolgate tool show payments.charges.create --agent billing")]
    Show {
        /// The tool: SERVICE.TOOL, its id, or the tool alone where no other has its name
        tool: String,
        /// For whom; you unless said otherwise
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Only this version of the service's definition
        #[arg(long)]
        version: Option<String>,
    },
    /// Explain step by step why an agent can or cannot call a tool
    ///
    /// The gate goes the path of such a call without making it. Exit status: 0 if it can, 1 if it cannot.
    #[command(
        after_help = "Example:\n  toolgate tool why payments.charges.create --agent billing\n  toolgate tool why payments.charges.create --agent billing --parameters '{\"amount\": 2000}'"
    )]
    Why(Box<Why>),
    /// List what the registered tools do not declare: tier, approval, egress, scopes and the like
    #[command(after_help = "Example:\n  toolgate tool lint\n  toolgate tool lint payments --strict")]
    Lint {
        /// Only of this service
        service: Option<String>,
        /// End with status 1 where anything is undeclared
        #[arg(long)]
        strict: bool,
    },
    /// Call a tool through the gate
    ///
    /// The result is printed, and nothing else on standard output; how it went is told on standard error. Where the call is
    /// refused or fails, it says what to change.
    #[command(
        after_help = "Example:\n  toolgate tool call payments.charges.create --param currency=usd --param amount:=2000 | jq .id\n  toolgate tool call payments.charges.read --json-params '{\"id\": \"ch_1\"}' --agent billing"
    )]
    Call(Box<Call>),
}

/// A call that is not made.
#[derive(Args)]
pub(crate) struct Why {
    /// The tool, as a call would name it
    tool: String,
    /// The agent that would call; you unless said otherwise
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The parameters of the call, as a JSON object; without them they are not checked
    #[arg(long, value_name = "JSON", value_parser = parse_object)]
    parameters: Option<Map<String, Value>>,
    /// The version of the service's definition; without this the credential's, or the newest
    #[arg(long)]
    version: Option<String>,
    /// The intent that it would belong to
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// The plan that it would belong to
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// The task that it would belong to
    #[arg(long, value_name = "ID")]
    task: Option<String>,
}

/// A call.
#[derive(Args)]
pub(crate) struct Call {
    /// The tool: SERVICE.TOOL, or the tool alone where no other has its name
    tool: String,
    /// A parameter: NAME=TEXT, or NAME:=JSON; may be repeated
    #[arg(short, long = "param", value_name = "NAME=TEXT|NAME:=JSON", value_parser = parse_parameter)]
    parameters: Vec<Parameter>,
    /// Parameters as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_object)]
    json_params: Option<Map<String, Value>>,
    /// A file with parameters as a JSON object, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "json_params")]
    params_file: Option<PathBuf>,
    /// The grant to use; without this the gate picks the best
    #[arg(long, value_name = "ID")]
    grant: Option<String>,
    /// The agent to call as; you unless said otherwise
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The version of the service's definition; without this the credential's, or the newest
    #[arg(long)]
    version: Option<String>,
    /// Your name for this call: the same again does not call the service again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The intent that it belongs to
    #[arg(long, value_name = "ID")]
    intent: Option<String>,
    /// The plan that it belongs to
    #[arg(long, value_name = "ID")]
    plan: Option<String>,
    /// The task that it belongs to
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Do not wait: print the id of the call, for `toolgate invocation result`. It goes on without this connection
    #[arg(long)]
    detach: bool,
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            Self::List { service, agent } => {
                let client = connection.client()?;
                let listing = match Listing::fetch(&client, service.as_deref(), agent.clone()).await {
                    Ok(listing) => listing,
                    Err(error) => {
                        return Err(typos::with_agent(&client, error, agent.as_deref().unwrap_or_default()).await);
                    }
                };
                let report = listing.list();
                typos::warn_of_empty(&client, &report, None, service.as_deref()).await;
                Ok(report)
            }
            Self::Show { tool, agent, version } => {
                Listing::fetch(&connection.client()?, None, agent).await?.show(&tool, version.as_deref())
            }
            Self::Why(why) => Ok(why::report(connection.client()?.get(&why.path()).await?)),
            Self::Lint { service, strict } => {
                let path = service.map_or_else(String::new, |service| format!("/{}", escaped(&service)));
                let answer = connection.client()?.get(&format!("/api/v1/services{path}")).await?;
                let member = if path.is_empty() { "services" } else { "versions" };
                Ok(lint::lint(at(&answer, member).as_array().map(Vec::as_slice).unwrap_or_default(), strict))
            }
            Self::Call(call) => {
                let (tool, detach) = (call.tool.clone(), call.detach);
                let body = call.body()?;
                let client = connection.client()?;
                let called = match detach {
                    true => client.begin("/api/v1/tools/invoke", &body).await.map(calling::accepted),
                    false => calling::call(&client, &body).await.map(answered),
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
    fn path(self) -> String {
        let query = [
            ("tool", Some(self.tool)),
            ("agent_id", self.agent),
            ("version", self.version),
            ("parameters", self.parameters.map(|parameters| Value::Object(parameters).to_string())),
            ("intent_id", self.intent),
            ("plan_id", self.plan),
            ("task_id", self.task),
        ];
        with_query("/api/v1/tools/why", &query)
    }
}

impl Call {
    fn body(self) -> Result<Value, Failure> {
        let mut parameters = match (self.json_params, &self.params_file) {
            (Some(given), _) => given,
            (None, Some(file)) => read_object(file)?,
            (None, None) => Map::new(),
        };
        for Parameter { name, value } in self.parameters {
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Failure::Usage(format!("the parameter `{name}` is given twice; keep one of the two")));
            }
        }
        let context = object([
            ("intent_id", self.intent.map(Value::from)),
            ("plan_id", self.plan.map(Value::from)),
            ("task_id", self.task.map(Value::from)),
        ]);
        Ok(Value::Object(object([
            ("tool", Some(json!(self.tool))),
            ("version", self.version.map(Value::from)),
            ("grant_id", self.grant.map(Value::from)),
            ("agent_id", self.agent.map(Value::from)),
            ("parameters", Some(Value::Object(parameters))),
            ("idempotency_key", self.idempotency_key.map(Value::from)),
            ("context", (!context.is_empty()).then_some(Value::Object(context))),
        ])))
    }
}

/// The result of a detached call, once it is there.
pub(super) async fn result_of(client: &Client, id: &str) -> Result<Report, Failure> {
    let path = format!("/api/v1/invocations/{}/result", escaped(id));
    let followed = calling::follow(client, &path).await;
    Ok(answered(followed.map_err(|error| explanation::explained(error, None))?))
}

/// The result alone on standard output, so that it can be piped into another program; the rest on standard error.
fn answered(answer: Value) -> Report {
    let result = match at(&answer, "result") {
        Value::Null => String::new(),
        Value::String(text) => clean_lines(text),
        other => json_text(other),
    };
    let mut aside = format!(
        "{} succeeded in {} ms, through {} as {}.\n",
        plain(at(&answer, "tool_name")),
        plain(at(&answer, "duration_ms")),
        plain(at(&answer, "grant_id")),
        plain(at(&answer, "invocation_id"))
    );
    if at(&answer, "result").is_null() {
        aside.push_str("The service returned no content.\n");
    }
    if at(&answer, "truncated") == &Value::Bool(true) {
        aside.push_str("The service returned more than is passed on: its response was cut off.\n");
    }
    if at(&answer, "replayed") == &Value::Bool(true) {
        let time = clean(at(&answer, "timestamp").as_str().unwrap_or_default());
        aside.push_str(&format!("This is the stored result of {time}: the service was not called again.\n"));
    }
    Report::new(answer, result).with_aside(aside)
}
