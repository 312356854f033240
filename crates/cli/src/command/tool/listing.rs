//! `toolgate tool list` and `toolgate tool show`: tools, and what an agent lacks to call them.

use std::collections::BTreeSet;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_api::agents::{ShowAgent, Whoami};
use toolgate_api::credentials::{Credential, ListCredentials};
use toolgate_api::parameters::{Cursor, Limit, Paging};
use toolgate_api::tools::{GrantedQuery, GrantedTool, ListGrantedTools, ListTools, ListToolsOfService, ServiceTools};
use toolgate_api::vaults::{ListVaults, Vault};
use toolgate_model::id::GrantId;
use toolgate_model::permission::Permission;
use toolgate_model::service::ServiceVersion;

use super::access::{Missing, PrincipalAccess, Tool};
use super::{Failure, first_line, names_of, typed_option};
use crate::client::{Client, ClientError};
use crate::output::{Report, align, at, clean, clean_lines, plain, table};

pub(super) struct Listing {
    agent: String,
    tools: Vec<Tool>,
    access: PrincipalAccess,
}

impl Listing {
    /// Fetches the tools that the caller sees, for this agent or for itself.
    pub(super) async fn fetch(client: &Client, service: Option<&str>, agent: Option<String>) -> Result<Self, Failure> {
        let own = client.to::<Whoami>().send().await?;
        let agent = agent.unwrap_or_else(|| own.id.to_string());
        let query = GrantedQuery { agent_id: typed_option("agent_id", Some(&agent))? };
        let mut granted = client.to::<ListGrantedTools>().query(&query).send().await?.tools;
        granted.retain(|granted| service.is_none_or(|service| granted.service.as_str() == service));
        let (manages_tools, acts_for_others) =
            (own.permissions.has(Permission::ManageTools), own.permissions.has(Permission::ActAs));
        let principal = match agent == own.id.as_str() {
            true => Some(own),
            false if own.permissions.has(Permission::ManageAgents) => {
                Some(client.to::<ShowAgent>().named(&agent).send().await?)
            }
            false => None,
        };
        let mut access = PrincipalAccess { principal, granted, credentials: None };
        let tools = tools(visible(client, service).await?, &access.granted);
        if manages_tools && acts_for_others && tools.iter().any(|tool| !access.has_grant(tool)) {
            access.credentials = Some(credentials(client).await?);
        }
        Ok(Self { agent, tools, access })
    }

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

    pub(super) fn show(&self, wanted: &str, version: Option<&str>) -> Result<Report, Failure> {
        let mut found = self.named(wanted)?;
        let version_of = |tool: &Tool| tool.version.as_ref().map(ServiceVersion::to_string);
        found.retain(|tool| version.is_none_or(|version| version_of(tool).as_deref() == Some(version)));
        if found.is_empty() {
            let sentence = format!("no tool `{wanted}` is visible to you; `toolgate tool list` lists the visible ones");
            return Err(Failure::Said(sentence));
        }
        let texts: Vec<String> = found.iter().map(|tool| self.describe(tool)).collect();
        Ok(Report::new(self.value(&found), texts.join("\n")))
    }

    /// The versions of a tool: by `SERVICE.TOOL`, by id, or by a name that is unique.
    fn named(&self, wanted: &str) -> Result<Vec<&Tool>, Failure> {
        let those = |fits: &dyn Fn(&Tool) -> bool| self.tools.iter().filter(|tool| fits(tool)).collect::<Vec<_>>();
        let named =
            those(&|tool| tool.full_name() == wanted || tool.id.as_ref().is_some_and(|id| id.as_str() == wanted));
        let found = if named.is_empty() { those(&|tool| tool.name.as_str() == wanted) } else { named };
        let names: BTreeSet<String> = found.iter().map(|tool| tool.full_name()).collect();
        if names.len() > 1 {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::Said(format!("`{wanted}` is ambiguous; use one of {names}")));
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
            let grants: Vec<GrantId> = self.grants(tool).map(|granted| granted.grant_id).collect();
            for (name, value) in [
                ("tool", json!(tool.full_name())),
                ("service", json!(tool.service)),
                ("name", json!(tool.name)),
                ("version", json!(tool.version)),
                ("grants", json!(grants)),
                ("missing", json!(self.access.missing(tool))),
            ] {
                shape.insert(name.to_owned(), value);
            }
            Value::Object(shape)
        };
        json!({"agent_id": self.agent, "tools": tools.iter().map(shape).collect::<Vec<_>>()})
    }

    fn describe(&self, tool: &Tool) -> String {
        let mut heading = tool.full_name();
        if let Some(version) = &tool.version {
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
        for granted in self.grants(tool) {
            let end = granted.expires_at.map(|end| format!(", until {end}")).unwrap_or_default();
            let source = plain(&json!(granted.source));
            rows.push([format!("{} has", clean(&self.agent)), format!("{}, {source}{end}", granted.grant_id)]);
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

    fn grants<'a>(&'a self, tool: &'a Tool) -> impl Iterator<Item = &'a GrantedTool> {
        let is_its = |granted: &&GrantedTool| {
            granted.service == tool.service && granted.tool == tool.name && granted.version == tool.version
        };
        self.access.granted.iter().filter(is_its)
    }
}

const DETAILS: [(&str, &str); 11] = [
    ("id", "tool_id"),
    ("tier", "safety_tier"),
    ("approval", "approval"),
    ("scope", "scope"),
    ("required scopes", "required_scopes"),
    ("egress", "egress"),
    ("replay", "replay_policy"),
    ("idempotent", "idempotent"),
    ("cost hint", "cost_hint"),
    ("estimated cost (USD)", "estimated_cost_usd"),
    ("latency hint", "latency_hint"),
];

fn rate_limit(limit: &Value) -> String {
    if limit.is_null() {
        return plain(limit);
    }
    let burst = at(limit, "burst");
    let burst = if burst.is_null() { String::new() } else { format!(", burst {}", plain(burst)) };
    format!("{} per {} seconds{burst}", plain(at(limit, "requests")), plain(at(limit, "per_seconds")))
}

/// What is missing, on one line; `null` if nothing is.
fn said(missing: &[Missing]) -> Value {
    let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
    if words.is_empty() { Value::Null } else { Value::from(words.join(", ")) }
}

/// The tools that the caller sees, and others that the agent has grants for.
fn tools(services: Vec<ServiceTools>, granted: &[GrantedTool]) -> Vec<Tool> {
    let mut tools = Vec::new();
    for service in services {
        tools.extend(service.tools.into_iter().map(|(name, tool)| Tool {
            service: service.service.clone(),
            name,
            version: service.version.clone(),
            declared: members(&tool),
            id: tool.tool_id,
            scope: tool.scope,
            required_scopes: tool.required_scopes.unwrap_or_default(),
        }));
    }
    for granted in granted {
        let is_it = |tool: &Tool| {
            tool.service == granted.service && tool.name == granted.tool && tool.version == granted.version
        };
        if !tools.iter().any(is_it) {
            tools.push(of_grant(granted));
        }
    }
    tools.sort_by_cached_key(|tool| (tool.full_name(), tool.version.as_ref().map(ServiceVersion::to_string)));
    tools
}

/// A tool that is only known from a grant.
fn of_grant(granted: &GrantedTool) -> Tool {
    const OF_TOOL: [&str; 7] =
        ["tool_id", "scope", "description", "parameters", "safety_tier", "approval", "required_scopes"];
    let mut declared = members(granted);
    declared.retain(|name, _| OF_TOOL.contains(&name.as_str()));
    Tool {
        service: granted.service.clone(),
        name: granted.tool.clone(),
        version: granted.version.clone(),
        id: granted.tool_id.clone(),
        scope: granted.scope.clone(),
        required_scopes: granted.required_scopes.clone().unwrap_or_default(),
        declared,
    }
}

fn members(thing: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(thing) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

async fn visible(client: &Client, service: Option<&str>) -> Result<Vec<ServiceTools>, ClientError> {
    let listed = match service {
        Some(service) => client.to::<ListToolsOfService>().named(service).send().await.map(|listed| listed.services),
        None => client.to::<ListTools>().send().await.map(|listed| listed.services),
    };
    match listed {
        Ok(services) => Ok(services),
        Err(ClientError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn credentials(client: &Client) -> Result<Vec<Credential>, ClientError> {
    let mut found = Vec::new();
    for vault in vaults(client).await?.iter().filter(|vault| !vault.credentials.is_empty()) {
        let mut cursor = None;
        loop {
            let request = client.to::<ListCredentials>().at(&vault.id).query(&whole_page(cursor));
            let page = request.send().await?;
            found.extend(page.credentials);
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

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: &str = "grant_01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn listing() -> Listing {
        let declared = json!({
            "tool_id": "connector:mail.messages.send", "title": null, "description": "Sends\nmail",
            "scope": "messages.send", "source": "connector", "parameters": null, "returns": null, "idempotent": false,
            "estimated_cost_usd": null, "safety_tier": "write", "approval": "always", "required_scopes": null,
            "egress": null, "replay_policy": null, "cost_hint": null, "latency_hint": null,
            "rate_limit": {"requests": 3, "per_seconds": 60},
        });
        let services = json!([
            {"service": "mail", "version": "1", "implicit": false, "tools": {"messages.send": declared}},
        ]);
        let granted = |service: &str, version: Option<&str>| {
            json!({
                "grant_id": GRANT, "service": service, "tool": "messages.send", "version": version, "tool_id": null,
                "name": "messages.send", "alias": "mail_messages__send", "scope": "messages.send", "description": null,
                "parameters": null,
                "safety_tier": "write", "approval": null, "required_scopes": null, "constraints": {},
                "source": "direct", "context": {}, "expires_at": null, "metadata": {},
            })
        };
        let granted = json!([granted("sms", None), granted("mail", Some("1"))]);
        let granted: Vec<GrantedTool> = serde_json::from_value(granted).unwrap();
        let tools = tools(serde_json::from_value(services).unwrap(), &granted);
        Listing { agent: "clerk".to_owned(), tools, access: PrincipalAccess { granted, ..PrincipalAccess::default() } }
    }

    #[test]
    fn what_is_granted_is_listed_whether_or_not_it_is_seen_otherwise() {
        let report = listing().list();
        let lines: Vec<&str> = report.text.lines().collect();
        assert_eq!(lines.len(), 3, "{}", report.text);
        assert!(lines[1].starts_with("mail.messages.send  1        write  always    -"), "{}", report.text);
        assert!(lines[2].starts_with("sms.messages.send   -"), "{}", report.text);
        assert_eq!(report.value["tools"][0]["grants"], json!([GRANT]));
        assert_eq!(report.value["tools"][0]["missing"], json!([]));
    }

    #[test]
    fn a_tool_is_found_by_name_and_by_id_and_never_guessed() {
        let listing = listing();
        for name in ["mail.messages.send", "connector:mail.messages.send"] {
            let shown = listing.show(name, None).unwrap().text;
            assert!(shown.starts_with("mail.messages.send 1\nSends\nmail\n\n"), "{shown}");
            assert!(shown.contains("3 per 60 seconds\n") && shown.contains(&format!("{GRANT}, direct\n")), "{shown}");
        }
        let several = listing.show("messages.send", None).unwrap_err().to_string();
        assert!(several.contains("use one of mail.messages.send, sms.messages.send"), "{several}");
        assert!(listing.show("mail.messages.send", Some("2")).is_err());
        assert!(listing.show("mail", None).is_err());
    }
}
