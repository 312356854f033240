//! `toolgate tool`: which tools there are for whom, and calling one.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Map, Value, json};

use self::parameters::{Parameter, parse_object, parse_parameter};
use super::service::{first_line, parameters as names_of};
use super::values::read_object;
use super::{Connection, Failure, object};
use crate::client::{Client, escaped, with_query};
use crate::output::{Report, at, clean, clean_lines, plain, table};

mod explanation;
mod parameters;

/// List tools, and call them
#[derive(Args)]
pub(crate) struct Tool {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List the tools that you can see, or those that an agent can use
    #[command(after_help = "Example:\n  toolgate tool list --service payments\n  toolgate tool list --agent billing")]
    List {
        /// Only of this service
        #[arg(long)]
        service: Option<String>,
        /// What this agent has grants for, and which
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Call a tool through the gate
    ///
    /// The answer of the service is printed. Where the call is refused or fails, it says what to change.
    #[command(
        after_help = "Example:\n  toolgate tool call payments.charges.create --param currency=usd --param amount:=2000\n  toolgate tool call payments.charges.read --json-params '{\"id\": \"ch_1\"}' --agent billing"
    )]
    Call(Box<Call>),
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
}

impl Action {
    /// Does what was asked.
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            Self::List { service, agent: None } => visible(&connection.client()?, service).await,
            Self::List { service, agent: Some(agent) } => granted(&connection.client()?, service, agent).await,
            Self::Call(call) => {
                let body = call.body()?;
                let called = connection.client()?.change(Method::POST, "/api/v1/tools/invoke", Some(&body)).await;
                let answer = called.map_err(explanation::explained)?;
                let text = answered(&answer);
                Ok(Report::new(answer, text))
            }
        }
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

async fn visible(client: &Client, service: Option<String>) -> Result<Report, Failure> {
    let path = service.map_or_else(String::new, |service| format!("/{}", escaped(&service)));
    let answer = client.get(&format!("/api/v1/tools{path}")).await?;
    let mut rows = Vec::new();
    for service in at(&answer, "services").as_array().into_iter().flatten() {
        for (name, tool) in at(service, "tools").as_object().into_iter().flatten() {
            let mut row = row(plain(at(service, "service")), name, tool);
            row.extend(object([
                ("version", Some(at(service, "version").clone())),
                ("cost", Some(at(tool, "estimated_cost_usd").clone())),
            ]));
            rows.push(Value::Object(row));
        }
    }
    let columns = [
        ("TOOL", "tool"),
        ("VERSION", "version"),
        ("SCOPE", "scope"),
        ("PARAMETERS (* required)", "parameters"),
        ("USD", "cost"),
        ("DESCRIPTION", "description"),
    ];
    let text = table(&rows, &columns);
    Ok(Report::new(answer, text))
}

async fn granted(client: &Client, service: Option<String>, agent: String) -> Result<Report, Failure> {
    let mut answer = client.get(&with_query("/api/v1/tools/granted", &[("agent_id", Some(agent))])).await?;
    if let (Some(service), Some(Value::Array(tools))) = (service, answer.get_mut("tools")) {
        tools.retain(|tool| at(tool, "service") == &service);
    }
    let tools = at(&answer, "tools").as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let mut row = row(plain(at(tool, "service")), at(tool, "tool").as_str().unwrap_or_default(), tool);
            let members = ["grant_id", "source", "expires_at"];
            row.extend(members.map(|name| (name.to_owned(), at(tool, name).clone())));
            Value::Object(row)
        })
        .collect();
    let columns = [
        ("TOOL", "tool"),
        ("GRANT", "grant_id"),
        ("SOURCE", "source"),
        ("SCOPE", "scope"),
        ("PARAMETERS (* required)", "parameters"),
        ("EXPIRES", "expires_at"),
    ];
    let text = table(&rows, &columns);
    Ok(Report::new(answer, text))
}

fn row(service: String, name: &str, tool: &Value) -> Map<String, Value> {
    object([
        ("tool", Some(json!(format!("{service}.{name}")))),
        ("scope", Some(at(tool, "scope").clone())),
        ("parameters", Some(json!(names_of(at(tool, "parameters"))))),
        ("description", Some(first_line(at(tool, "description")))),
    ])
}

/// What the service said, and below it what became of the call.
fn answered(answer: &Value) -> String {
    let result = match at(answer, "result") {
        Value::Null => "The service answered with nothing.".to_owned(),
        Value::String(text) => clean_lines(text),
        other => clean_lines(&format!("{other:#}")),
    };
    let mut text = format!(
        "{result}\n\n{} succeeded in {} ms, through {} as {}.\n",
        plain(at(answer, "tool_name")),
        plain(at(answer, "duration_ms")),
        plain(at(answer, "grant_id")),
        plain(at(answer, "invocation_id"))
    );
    if at(answer, "truncated") == &Value::Bool(true) {
        text.push_str("The service said more than is passed on: its answer was cut off.\n");
    }
    if at(answer, "replayed") == &Value::Bool(true) {
        let time = clean(at(answer, "timestamp").as_str().unwrap_or_default());
        text.push_str(&format!("This is the stored answer of {time}: the service was not called again.\n"));
    }
    text
}
