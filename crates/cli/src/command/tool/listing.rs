//! `toolgate tool list` and `toolgate tool show`: the tools that one sees, how dangerous each is, and what an agent still
//! needs for it.

use std::collections::BTreeSet;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_api::agents::{ShowAgent, Whoami};
use toolgate_api::credentials::ListCredentials;
use toolgate_api::parameters::{Cursor, Limit, Paging};
use toolgate_api::tools::{GrantedQuery, ListGrantedTools, ListTools, ListToolsOfService};
use toolgate_api::vaults::{ListVaults, Vault};

use super::access::{Missing, PrincipalAccess, Tool};
use super::{Failure, first_line, names_of, object, typed_option};
use crate::client::{Client, ClientError};
use crate::output::{Report, align, at, clean, clean_lines, plain, table};

/// Every tool that is seen, for somebody.
pub(super) struct Listing {
    agent: String,
    tools: Vec<Tool>,
    access: PrincipalAccess,
}

impl Listing {
    /// Asks the gate. Without an agent it is about whoever asks.
    pub(super) async fn fetch(client: &Client, service: Option<&str>, agent: Option<String>) -> Result<Self, Failure> {
        let own = json!(client.to::<Whoami>().send().await?);
        let own_id = at(&own, "id").as_str().unwrap_or_default().to_owned();
        let agent = agent.unwrap_or_else(|| own_id.clone());
        let query = GrantedQuery { agent_id: typed_option("agent_id", Some(&agent))? };
        let mut granted = rows(&client.to::<ListGrantedTools>().query(&query).send().await?.tools);
        granted.retain(|row| service.is_none_or(|service| at(row, "service") == service));
        let principal = if agent == own_id { Some(own.clone()) } else { principal(client, &own, &agent).await? };
        let mut access = PrincipalAccess { principal, granted, credentials: None };
        let tools = tools(visible(client, service).await?, &access.granted);
        let administers = may(&own, "tools.manage") && may(&own, "agents.act_as");
        if administers && tools.iter().any(|tool| !access.has_grant(tool)) {
            access.credentials = Some(credentials(client).await?);
        }
        Ok(Self { agent, tools, access })
    }

    /// A table of all.
    pub(super) fn list(&self) -> Report {
        let columns = [
            ("TOOL", "tool"),
            ("VERSION", "version"),
            ("TIER", "tier"),
            ("APPROVAL", "approval"),
            ("MISSING", "missing"),
            ("PARAMETERS (* required)", "parameters"),
            ("DESCRIPTION", "description"),
        ];
        let rows: Vec<Value> = self.tools.iter().map(|tool| self.row(tool)).collect();
        Report::new(self.value(&self.tools.iter().collect::<Vec<_>>()), table(&rows, &columns))
    }

    /// All that is known of one, in each of its versions.
    pub(super) fn show(&self, wanted: &str, version: Option<&str>) -> Result<Report, Failure> {
        let mut found = self.named(wanted)?;
        found.retain(|tool| version.is_none_or(|version| tool.version == version));
        if found.is_empty() {
            let sentence = format!("there is no tool `{wanted}` that you can see; `toolgate tool list` shows those");
            return Err(Failure::Said(sentence));
        }
        let texts: Vec<String> = found.iter().map(|tool| self.describe(tool)).collect();
        Ok(Report::new(self.value(&found), texts.join("\n")))
    }

    /// The tools that this names: by service and name, by id, or by a name that no other service has.
    fn named(&self, wanted: &str) -> Result<Vec<&Tool>, Failure> {
        let those = |fits: &dyn Fn(&Tool) -> bool| self.tools.iter().filter(|tool| fits(tool)).collect::<Vec<_>>();
        let named = those(&|tool| tool.full_name() == wanted || tool.declared("tool_id") == wanted);
        let found = if named.is_empty() { those(&|tool| tool.name == wanted) } else { named };
        let names: BTreeSet<String> = found.iter().map(|tool| tool.full_name()).collect();
        if names.len() > 1 {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::Said(format!("`{wanted}` names several tools; write one of {names}")));
        }
        Ok(found)
    }

    fn row(&self, tool: &Tool) -> Value {
        let missing = said(&self.access.missing(tool));
        json!({
            "tool": tool.full_name(), "version": tool.version, "tier": tool.declared("safety_tier"),
            "approval": tool.declared("approval"), "missing": missing, "parameters": names_of(tool.declared("parameters")),
            "description": first_line(tool.declared("description")),
        })
    }

    fn value(&self, tools: &[&Tool]) -> Value {
        let shape = |tool: &&Tool| {
            let mut shape = tool.declared.clone();
            shape.extend(object([
                ("tool", Some(json!(tool.full_name()))),
                ("service", Some(json!(tool.service))),
                ("name", Some(json!(tool.name))),
                ("version", Some(tool.version.clone())),
                ("grants", Some(self.grants(tool).map(|row| at(row, "grant_id").clone()).collect())),
                ("missing", Some(json!(self.access.missing(tool)))),
            ]));
            Value::Object(shape)
        };
        json!({"agent_id": self.agent, "tools": tools.iter().map(shape).collect::<Vec<_>>()})
    }

    fn describe(&self, tool: &Tool) -> String {
        let mut heading = tool.full_name();
        if let Some(version) = tool.version.as_str() {
            heading.push_str(&format!(" {version}"));
        }
        let mut text = format!("{}\n", clean(&heading));
        for declared in ["title", "description"] {
            if let Some(words) = tool.declared(declared).as_str() {
                text.push_str(&format!("{}\n", clean_lines(words)));
            }
        }
        let mut rows: Vec<[String; 2]> =
            DETAILS.iter().map(|(label, name)| [label, &*plain(tool.declared(name))].map(str::to_owned)).collect();
        rows.push(["rate limit".to_owned(), rate_limit(tool.declared("rate_limit"))]);
        for row in self.grants(tool) {
            let (grant, source, end) = (at(row, "grant_id"), at(row, "source"), at(row, "expires_at"));
            let end = if end.is_null() { String::new() } else { format!(", until {}", plain(end)) };
            rows.push([format!("{} has", clean(&self.agent)), format!("{}, {}{end}", plain(grant), plain(source))]);
        }
        rows.push([format!("{} lacks", clean(&self.agent)), plain(&said(&self.access.missing(tool)))]);
        text.push('\n');
        text.push_str(&align(rows.into_iter().map(|[label, value]| vec![format!("{label}:"), value]).collect()));
        for (label, name) in [("Parameters", "parameters"), ("Returns", "returns")] {
            if let schema @ Value::Object(_) = tool.declared(name) {
                text.push_str(&format!("\n{label}:\n{}\n", clean_lines(&format!("{schema:#}"))));
            }
        }
        text
    }

    fn grants<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = &'a Value> {
        let is_its = |row: &&Value| {
            at(row, "service") == &tool.service && at(row, "tool") == &tool.name && at(row, "version") == &tool.version
        };
        self.access.granted.iter().filter(is_its)
    }
}

/// What is told of a tool line by line.
const DETAILS: [(&str, &str); 11] = [
    ("id", "tool_id"),
    ("tier", "safety_tier"),
    ("approval", "approval"),
    ("scope", "scope"),
    ("required scopes", "required_scopes"),
    ("egress", "egress"),
    ("replay", "replay_policy"),
    ("idempotent", "idempotent"),
    ("cost, about", "cost_hint"),
    ("cost in USD", "estimated_cost_usd"),
    ("latency, about", "latency_hint"),
];

fn rate_limit(limit: &Value) -> String {
    if limit.is_null() {
        return plain(limit);
    }
    let burst = at(limit, "burst");
    let burst = if burst.is_null() { String::new() } else { format!(", {} at once", plain(burst)) };
    format!("{} in {} seconds{burst}", plain(at(limit, "requests")), plain(at(limit, "per_seconds")))
}

/// What is missing on one line; `null` where nothing is.
fn said(missing: &[Missing]) -> Value {
    let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
    if words.is_empty() { Value::Null } else { Value::from(words.join(", ")) }
}

/// The tools that whoever asks sees, and those that the agent has grants for besides.
fn tools(services: Vec<Value>, granted: &[Value]) -> Vec<Tool> {
    let text = |value: &Value, name: &str| at(value, name).as_str().unwrap_or_default().to_owned();
    let mut tools = Vec::new();
    for service in services {
        for (name, declared) in at(&service, "tools").as_object().into_iter().flatten() {
            let declared = declared.as_object().cloned().unwrap_or_default();
            let version = at(&service, "version").clone();
            tools.push(Tool { service: text(&service, "service"), name: name.clone(), version, declared });
        }
    }
    for row in granted {
        let (service, name, version) = (text(row, "service"), text(row, "tool"), at(row, "version").clone());
        let is_it = |tool: &Tool| tool.service == service && tool.name == name && tool.version == version;
        if !tools.iter().any(is_it) {
            tools.push(Tool { service, name, version, declared: declared_by_grant(row) });
        }
    }
    tools.sort_by_cached_key(|tool| (tool.full_name(), plain(&tool.version)));
    tools
}

/// What a row about a grant says of the tool alone.
fn declared_by_grant(row: &Value) -> Map<String, Value> {
    let of_tool = ["tool_id", "scope", "description", "parameters", "safety_tier", "approval", "required_scopes"];
    of_tool.iter().map(|name| ((*name).to_owned(), at(row, name).clone())).collect()
}

async fn visible(client: &Client, service: Option<&str>) -> Result<Vec<Value>, ClientError> {
    let listed = match service {
        Some(service) => client.to::<ListToolsOfService>().named(service).send().await.map(|listed| listed.services),
        None => client.to::<ListTools>().send().await.map(|listed| listed.services),
    };
    match listed {
        Ok(services) => Ok(rows(&services)),
        Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Another principal; `None` where whoever asks does not see others.
async fn principal(client: &Client, own: &Value, agent: &str) -> Result<Option<Value>, ClientError> {
    if !may(own, "agents.manage") {
        return Ok(None);
    }
    Ok(Some(json!(client.to::<ShowAgent>().named(agent).send().await?)))
}

async fn credentials(client: &Client) -> Result<Vec<Value>, ClientError> {
    let mut found = Vec::new();
    for vault in vaults(client).await?.iter().filter(|vault| !vault.credentials.is_empty()) {
        let mut cursor = None;
        loop {
            let request = client.to::<ListCredentials>().at(&vault.id).query(&whole_page(cursor));
            let page = request.send().await?;
            found.extend(rows(&page.credentials));
            cursor = page.next_cursor.0;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

async fn vaults(client: &Client) -> Result<Vec<Vault>, ClientError> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.to::<ListVaults>().query(&whole_page(cursor)).send().await?;
        found.extend(page.vaults);
        cursor = page.next_cursor.0;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

fn whole_page(cursor: Option<String>) -> Paging {
    Paging { limit: Some(Limit(Limit::MAXIMUM)), cursor: cursor.map(Cursor) }
}

/// As the table and the report show them.
fn rows<T: Serialize>(things: &[T]) -> Vec<Value> {
    things.iter().map(|thing| json!(thing)).collect()
}

fn may(principal: &Value, permission: &str) -> bool {
    at(principal, "permissions").as_array().is_some_and(|held| held.iter().any(|held| held == permission))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let declared = json!({
            "tool_id": "connector:mail.messages.send", "scope": "messages.send", "safety_tier": "write",
            "approval": "always", "description": "Sends\nmail", "rate_limit": {"requests": 3, "per_seconds": 60},
        });
        let services = vec![json!({"service": "mail", "version": "1", "tools": {"messages.send": declared}})];
        let row = |service: &str, version: Value| {
            json!({
                "grant_id": "grant_1", "service": service, "tool": "messages.send", "version": version,
                "scope": "messages.send", "source": "direct", "expires_at": null,
            })
        };
        let granted = vec![row("sms", Value::Null), row("mail", json!("1"))];
        let tools = tools(services, &granted);
        Listing { agent: "clerk".to_owned(), tools, access: PrincipalAccess { granted, ..PrincipalAccess::default() } }
    }

    #[test]
    fn what_is_granted_is_listed_whether_or_not_it_is_seen_otherwise() {
        let report = listing().list();
        let lines: Vec<&str> = report.text.lines().collect();
        assert_eq!(lines.len(), 3, "{}", report.text);
        assert!(lines[1].starts_with("mail.messages.send  1        write  always    -"), "{}", report.text);
        assert!(lines[2].starts_with("sms.messages.send   -"), "{}", report.text);
        assert_eq!(report.value["tools"][0]["grants"], json!(["grant_1"]));
        assert_eq!(report.value["tools"][0]["missing"], json!([]));
    }

    #[test]
    fn a_tool_is_found_by_name_and_by_id_and_never_guessed() {
        let listing = listing();
        for name in ["mail.messages.send", "connector:mail.messages.send"] {
            let shown = listing.show(name, None).unwrap().text;
            assert!(shown.starts_with("mail.messages.send 1\nSends\nmail\n\n"), "{shown}");
            assert!(shown.contains("3 in 60 seconds\n") && shown.contains("grant_1, direct\n"), "{shown}");
        }
        let several = listing.show("messages.send", None).unwrap_err().to_string();
        assert!(several.contains("write one of mail.messages.send, sms.messages.send"), "{several}");
        assert!(listing.show("mail.messages.send", Some("2")).is_err());
        assert!(listing.show("mail", None).is_err());
    }
}
