//! Suggestions for unknown names of agents, services, scopes and tools. A name that may be registered later gets a warning
//! on standard error; a name that the gate refused gets a suggestion in the error.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::Value;
use toolgate_api::agents::{ListAgents, ShowAgent};
use toolgate_api::parameters::{Limit, Paging};
use toolgate_api::services::{ListServices, RegisteredService, ShowService};
use toolgate_api::tools::ListTools;

use super::Failure;
use crate::client::{Client, ClientError};
use crate::output::{self, Report, at, clean};

/// How many letters may differ from a suggested name: fewer in short ones.
fn slips(name: &str) -> usize {
    if name.chars().count() < 6 { 1 } else { 2 }
}

/// Warns about an agent that is not registered.
pub(super) async fn warn_of_agent(client: &Client, agent: &str) {
    let shown = client.to::<ShowAgent>().named(agent).send().await;
    let missing = matches!(shown, Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }));
    // A caller that may not list agents gets no warning.
    if missing && let Some(known) = agents(client).await {
        warn(&format!("no agent {}{}", clean(agent), meant(agent, &known)));
    }
}

/// Warns about a service that is not registered, if one with a similar name is.
pub(super) async fn warn_of_service(client: &Client, service: &str) {
    let known = services(client).await;
    let meant = meant(service, &known);
    if !known.contains(service) && !meant.is_empty() {
        warn(&format!("no service {}{meant}", clean(service)));
    }
}

/// Warns about scopes of a grant that no tool of a registered service requires.
pub(super) async fn warn_of_scopes(client: &Client, service: &str, scopes: &[String]) {
    warn_of_unneeded(client, service, scopes, |_| true).await;
}

/// The same for a credential, which often has more scopes than tools require: warns only if a scope looks mistyped.
pub(super) async fn warn_of_mistyped_scopes(client: &Client, service: &str, scopes: &[String]) {
    warn_of_unneeded(client, service, scopes, |meant| !meant.is_empty()).await;
}

async fn warn_of_unneeded(client: &Client, service: &str, scopes: &[String], is_noted: impl Fn(&str) -> bool) {
    let Ok(shown) = client.to::<ShowService>().named(service).send().await else { return };
    let definitions = shown.versions.iter().map(|version| &version.definition.0);
    let tools = definitions.filter_map(|definition| definition.get("tools")?.as_object());
    let tools = tools.flat_map(|tools| tools.values());
    let known: BTreeSet<String> = tools.filter_map(|tool| at(tool, "scope").as_str()).map(str::to_owned).collect();
    for scope in scopes.iter().filter(|scope| !known.is_empty() && !known.contains(*scope)) {
        let meant = meant(scope, &known);
        if is_noted(&meant) {
            warn(&format!("no tool of {} requires the scope {}{meant}", clean(service), clean(scope)));
        }
    }
}

/// Warns about scopes of an agent, such as `tools:SERVICE:TOOL`, for a service that is not registered.
pub(super) async fn warn_of_principal_scopes(client: &Client, scopes: &[String]) {
    let service = |scope: &String| Some(scope.strip_prefix("tools:")?.split(':').next()?.to_owned());
    for service in scopes.iter().filter_map(service).collect::<BTreeSet<_>>() {
        warn_of_service(client, &service).await;
    }
}

/// Warns about unknown names in the filter of a list that is empty.
pub(super) async fn warn_of_empty(client: &Client, report: &Report, agent: Option<&str>, service: Option<&str>) {
    let lists = report.value.as_object().into_iter().flat_map(|members| members.values().filter_map(Value::as_array));
    if lists.into_iter().any(|list| !list.is_empty()) {
        return;
    }
    if let Some(agent) = agent {
        warn_of_agent(client, agent).await;
    }
    if let Some(service) = service {
        warn_of_service(client, service).await;
    }
}

/// Adds a suggestion to the refusal of an unknown agent.
pub(super) async fn with_agent(client: &Client, error: ClientError, agent: &str) -> Failure {
    match of_code(&error, "AGENT_NOT_FOUND") {
        true => suggested(error, agent, &agents(client).await.unwrap_or_default()),
        false => error.into(),
    }
}

/// The same for a service.
pub(super) async fn with_service(client: &Client, error: ClientError, service: &str) -> Failure {
    match of_code(&error, "SERVICE_NOT_FOUND") {
        true => suggested(error, service, &services(client).await),
        false => error.into(),
    }
}

/// Suggests a tool, among those that the caller can see.
pub(super) async fn tool_meant(client: &Client, error: &ClientError, tool: &str) -> Option<String> {
    if !of_code(error, "TOOL_NOT_FOUND") {
        return None;
    }
    let shown = client.to::<ListTools>().send().await.ok()?;
    let names = shown
        .services
        .iter()
        .flat_map(|listed| listed.tools.keys().map(|tool| listed.service.with_tool(tool.as_str())));
    let names: BTreeSet<String> = names.collect();
    let near = nearest(tool, &names).filter(|near| *near != tool);
    near.map(|near| format!("did you mean {}?", clean(near)))
}

fn warn(sentence: &str) {
    output::say(&format!("toolgate: warning: {sentence}"));
}

fn meant(name: &str, known: &BTreeSet<String>) -> String {
    match nearest(name, known) {
        Some(near) => format!("; did you mean {}?", clean(near)),
        None => String::new(),
    }
}

/// The most similar known name, if it is similar enough.
fn nearest<'a>(name: &str, known: &'a BTreeSet<String>) -> Option<&'a str> {
    let scored = known.iter().map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate.as_str()));
    scored.filter(|(wrong, _)| *wrong <= slips(name)).min().map(|(_, name)| name)
}

fn suggested(error: ClientError, name: &str, known: &BTreeSet<String>) -> Failure {
    let meant = meant(name, known);
    match error {
        ClientError::Refused { status, body } if !meant.is_empty() => {
            let text = format!("{}{meant}", ClientError::Refused { status, body: body.clone() });
            Failure::explained(text, &body)
        }
        other => other.into(),
    }
}

fn of_code(error: &ClientError, code: &str) -> bool {
    matches!(error, ClientError::Refused { body, .. } if body.code() == code)
}

async fn agents(client: &Client) -> Option<BTreeSet<String>> {
    let query = Paging { limit: Some(Limit(Limit::MAXIMUM)), cursor: None };
    let page = client.to::<ListAgents>().query(&query).send().await.ok()?;
    Some(page.agents.iter().map(|agent| agent.id.to_string()).collect())
}

async fn services(client: &Client) -> BTreeSet<String> {
    let listed = client.to::<ListServices>().send().await;
    let names = |listed: &RegisteredService| Some(listed.definition.0.get("service")?.as_str()?.to_owned());
    listed.map(|listed| listed.services.iter().filter_map(names).collect()).unwrap_or_default()
}
