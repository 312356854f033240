//! `toolgate provider`: model providers, which are services like others.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use toolgate_model::llm::{SCOPE, Template, Vendor};
use toolgate_model::service::ServiceDefinition;
use toolgate_model::strict_json;

use super::{Connection, Failure, service};
use crate::output::Report;

/// Register model providers, whose models agents call through this gate
#[derive(Args)]
pub(crate) struct Provider {
    #[command(flatten)]
    pub(crate) connection: Connection,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Register a provider as a service, from a template
    ///
    /// Its key is an ordinary credential: the next commands are printed.
    #[command(
        after_help = "Example:\n  toolgate provider add openai --dialect openai --base-url https://api.openai.com/v1 --model gpt-5 --prices prices.json"
    )]
    Add(Terms),
}

#[derive(Args)]
pub(crate) struct Terms {
    /// Name of the service, and of the address /llm/NAME
    name: String,
    /// Whose API the provider has
    #[arg(long)]
    dialect: Dialect,
    /// Base URL, as it is given to the vendor's own client
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// A model that can be called; repeat it for several [default: all]
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// JSON file with the prices of a million tokens in US dollars, by model
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Provider that calls go to while this one fails; repeat it for several, in order
    #[arg(long, value_name = "NAME")]
    fail_over: Vec<String>,
    /// Version of the definition
    #[arg(long = "definition-version", value_name = "VERSION", default_value = "1")]
    version: String,
    /// Only print the definition, for `service apply`
    #[arg(long)]
    print: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dialect {
    Anthropic,
    Openai,
}

impl Action {
    pub(crate) async fn run(self, connection: &Connection) -> Result<Report, Failure> {
        match self {
            Self::Add(terms) => add(connection, terms).await,
        }
    }
}

async fn add(connection: &Connection, terms: Terms) -> Result<Report, Failure> {
    let vendor = match terms.dialect {
        Dialect::Anthropic => Vendor::Anthropic,
        Dialect::Openai => Vendor::OpenAi,
    };
    let template = Template {
        service: terms.name,
        vendor,
        base_url: terms.base_url,
        version: terms.version,
        models: terms.models,
        prices: terms.prices.map(|file| read(&file)).transpose()?,
        fail_over: terms.fail_over,
    };
    let definition = template.definition();
    let checked = ServiceDefinition::from_json(&definition).map_err(|error| Failure::Usage(error.to_string()))?;
    if terms.print {
        return Ok(Report::new(&definition, pretty(&definition)));
    }
    let registered = service::apply_one(&connection.client()?, &checked, false).await?;
    let text = format!("Provider {} {registered}.\n{}", template.service, next(&template));
    Ok(Report::new(json!({"service": template.service, "outcome": registered, "definition": definition}), text))
}

fn read(file: &PathBuf) -> Result<Value, Failure> {
    let unusable = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
    strict_json::parse(&bytes).map_err(|error| unusable(error.to_string()))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// What is still to be done.
fn next(template: &Template) -> String {
    let name = &template.service;
    let (kind, extra) = match template.vendor {
        Vendor::OpenAi => ("bearer_token", String::new()),
        Vendor::Anthropic => (
            "api_key",
            " --metadata metadata.json\n  with metadata.json: {\"auth\": {\"location\": \"header\", \"header_name\": \"x-api-key\"}}"
                .to_owned(),
        ),
    };
    format!(
        "Next, store its key and grant agents the scope {SCOPE}:\n  toolgate credential add VAULT {name} \"{name} key\" \
         --auth-type {kind} --scope {SCOPE}{extra}\n  toolgate grant create AGENT CREDENTIAL --scope {SCOPE}\nClients use \
         the base URL GATE/llm/{name}{} with a key of this gate.",
        if template.vendor == Vendor::OpenAi { "/v1" } else { "" }
    )
}
