//! Policy input outside a call: an event from a policy test or from a decision record. Both have the same format, so
//! that a recorded event can be pasted into a test.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_gate::ports::guardian::{Hooked, HookedTool, Subject};
use toolgate_gate::ports::ledger::{Counts, History};
use toolgate_gate::ports::policy_book::PolicyTool;
use toolgate_model::arguments::REDACTED;
use toolgate_model::credential::ServiceName;
use toolgate_model::descriptor::Egress;
use toolgate_model::guard::{AgentRef, Content, Dialect, Hook, HookEvent, Part};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::principal_scope::HeldScopes;
use toolgate_model::scope::Scope;
use toolgate_model::service::{ToolDefinition, ToolName};
use toolgate_model::text::Label;
use toolgate_model::time::Timestamp;

use super::facts::Facts;
use super::judge::{Evaluation, judge};
use super::known::{Missing, Replayed, judge_known};
use super::reads::Members;
use super::set::CompiledSet;
use reading::Members as Given;

mod reading;

/// The default agent.
const DEFAULT_AGENT: &str = "agent";

/// An event with everything that rules can read.
pub(super) struct PolicyInput {
    event: HookEvent<'static>,
    agent: Principal,
    actor: Principal,
    tool: Option<PolicyInputTool>,
    dialect: Dialect,
    run: Option<String>,
    address: Option<IpAddr>,
    history: History,
    arguments: Option<Map<String, Value>>,
    /// The parts that are not known.
    pub(super) missing: Missing,
}

struct PolicyInputTool {
    service: ServiceName,
    /// `service.tool`.
    name: String,
    definition: Arc<ToolDefinition>,
    external: bool,
}

/// Looks up a tool of the catalog by name.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<PolicyTool>;

impl PolicyInput {
    /// Parses the input; an error says what is wrong with it.
    pub(super) fn read(given: &Value, tools: Lookup<'_>) -> Result<Self, String> {
        let given = Given::of(given)?;
        let hook = match given.text("hook")? {
            None => Hook::ToolCallRequest,
            Some(name) => Hook::parse(name).ok_or_else(|| format!("unknown hook `{name}`"))?,
        };
        let agent = read_principal(given.get("agent"), DEFAULT_AGENT)?;
        let actor = match given.get("actor") {
            None => agent.clone(),
            actor => read_principal(actor, DEFAULT_AGENT)?,
        };
        let about_tool = matches!(hook, Hook::ToolCallRequest | Hook::ToolCallResult);
        let tool = match (given.get("tool"), about_tool) {
            (Some(tool), true) => Some(read_tool(tool, tools)?),
            (None, true) => {
                return Err(
                    "`tool` is missing; set it to a name or to an object with the properties of the tool".to_owned()
                );
            }
            (_, false) => None,
        };
        let named = match (&tool, given.get("tool")) {
            (Some(tool), _) => Some(tool.name.clone()),
            (None, Some(Value::String(name))) => Some(name.clone()),
            (None, _) => None,
        };
        let arguments = given.object("arguments")?.cloned();
        let content = match hook {
            Hook::ToolCallRequest => Content::Arguments(Cow::Owned(arguments.clone().unwrap_or_default())),
            Hook::ToolCallResult => Content::Result {
                value: Cow::Owned(given.get("result").cloned().unwrap_or_default()),
                is_error: given.flag("is_error")?.unwrap_or(false),
            },
            _ => Content::Parts(vec![Part::text(given.text("text")?.unwrap_or_default())]),
        };
        let owned = |name| Ok::<_, String>(given.text(name)?.map(|text| Cow::Owned(text.to_owned())));
        let time = match given.text("time")? {
            None => Timestamp::EPOCH,
            Some(time) => Timestamp::parse(time).map_err(|error| format!("`time` {error}"))?,
        };
        let event = HookEvent {
            hook,
            agent: AgentRef { id: Cow::Owned(agent.id.to_string()), name: None },
            tool: named.map(Cow::Owned),
            execution: None,
            session: owned("session")?,
            turn: None,
            step: None,
            user: owned("user")?,
            method: owned("method")?,
            reasoning: owned("reasoning")?,
            time,
            content,
        };
        let (spent, calls) = (Given::below(&given, "spent")?, Given::below(&given, "calls")?);
        let history = History {
            marks: given.texts("marks")?.into_iter().map(str::to_owned).collect(),
            counts: Counts {
                calls_today: calls.count("today")?,
                calls_in_run: calls.count("run")?,
                cost_today: spent.micros("today")?,
                cost_in_run: spent.micros("run")?,
            },
        };
        let address =
            given.text("address")?.map(str::parse).transpose().map_err(|_| "`address` is not an IP address")?;
        Ok(Self {
            event,
            agent,
            actor,
            tool,
            dialect: read_dialect(given.text("dialect")?)?,
            run: given.text("run")?.map(str::to_owned),
            address,
            history,
            arguments,
            missing: Missing { address: address.is_none(), ..Missing::default() },
        })
    }

    /// Marks what a record lacks: the content, unless it was kept, and attributes that no rule read at that time.
    pub(super) fn from_record(facts: &Value, inputs: Option<&Value>, tools: Lookup<'_>) -> Result<Self, String> {
        let mut policy_input = Self::read(facts, tools)?;
        let is_known = |name: &str| facts.get(name).is_some();
        let is_call = policy_input.event.hook == Hook::ToolCallRequest;
        policy_input.missing = Missing {
            arguments: match inputs.and_then(Value::as_object) {
                None => Members::All,
                Some(inputs) => Members::Only(hidden(inputs)),
            },
            content: !is_call,
            reasoning: facts.get("has_reasoning").and_then(Value::as_bool) != Some(false),
            address: policy_input.address.is_none(),
            marks: !is_known("marks"),
            totals: !(is_known("spent") && is_known("calls")),
            found: serde_json::from_value(facts.get("found").cloned().unwrap_or_else(|| json!({})))
                .map_err(|_| "`found` must be an object of true or false values")?,
        };
        if let (Some(inputs), true) = (inputs.and_then(Value::as_object), is_call) {
            policy_input.event.content = Content::Arguments(Cow::Owned(inputs.clone()));
        }
        Ok(policy_input)
    }

    pub(super) fn judge(&self, set: &CompiledSet) -> Evaluation {
        judge(&set.slice(&self.subject()), &self.facts())
    }

    /// Evaluates the rules as far as the known parts allow.
    pub(super) fn judge_known(&self, set: &CompiledSet) -> Replayed {
        judge_known(&set.slice(&self.subject()), &self.facts(), &self.missing)
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            hook: self.event.hook,
            agent: &self.agent.id,
            principal: Some(&self.agent),
            actor: &self.actor,
            tool: self.tool.as_ref().map(|tool| HookedTool {
                service: &tool.service,
                name: &tool.name,
                definition: &tool.definition,
                external: tool.external,
                registry: None,
            }),
            dialect: self.dialect,
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            event: &self.event,
            dialect: self.dialect,
            run: self.run.as_deref(),
            address: self.address,
            history: Some(&self.history),
            arguments: self.arguments.as_ref(),
            secrets: &[],
        }
    }
}

/// The facts of an event that are recorded besides its content, enough to re-evaluate it.
pub(super) fn facts_of(
    hooked: &Hooked<'_>,
    history: Option<&History>,
    totals: bool,
    found: &BTreeMap<String, bool>,
) -> Value {
    let event = hooked.event;
    let mut facts = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            facts.insert(name.to_owned(), value);
        }
    };
    put("hook", json!(event.hook.as_str()));
    put("agent", hooked.principal.map_or_else(|| json!({"id": hooked.agent}), |agent| principal(agent)));
    if hooked.actor.id != *hooked.agent {
        put("actor", principal(hooked.actor));
    }
    match hooked.tool {
        Some(tool) => put(
            "tool",
            json!({
                "name": tool.name, "tier": tool.definition.tier(),
                "egress": tool.definition.egress.unwrap_or(Egress::HostMediated), "labels": tool.definition.labels,
                "idempotent": tool.definition.idempotent, "external": tool.external,
            }),
        ),
        None => put("tool", json!(event.tool)),
    }
    for (name, text) in [("session", &event.session), ("user", &event.user), ("method", &event.method)] {
        put(name, json!(text));
    }
    put("run", json!(hooked.run));
    put("time", json!(event.time));
    put("address", json!(hooked.address));
    put("dialect", json!(hooked.dialect.as_str()));
    put("has_reasoning", json!(event.reasoning.is_some()));
    if !found.is_empty() {
        put("found", json!(found));
    }
    if let Some(history) = history {
        put("marks", json!(history.marks));
    }
    if let Some(History { counts, .. }) = history.filter(|_| totals) {
        put("spent", json!({"today_micros": counts.cost_today, "run_micros": counts.cost_in_run}));
        put("calls", json!({"today": counts.calls_today, "run": counts.calls_in_run}));
    }
    Value::Object(facts)
}

fn principal(principal: &Principal) -> Value {
    let scopes: Vec<&str> = principal.scopes.iter().collect();
    json!({"id": principal.id, "kind": principal.kind, "labels": principal.labels, "scopes": scopes})
}

/// The arguments in which something was redacted.
fn hidden(inputs: &Map<String, Value>) -> BTreeSet<String> {
    let is_hidden = |(name, value): &(&String, &Value)| name.as_str() == REDACTED || holds_mark(value);
    inputs.iter().filter(is_hidden).map(|(name, _)| name.clone()).collect()
}

fn holds_mark(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(REDACTED),
        Value::Array(items) => items.iter().any(holds_mark),
        Value::Object(members) => members.iter().any(|(name, value)| name == REDACTED || holds_mark(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn read_dialect(word: Option<&str>) -> Result<Dialect, String> {
    let Some(word) = word else { return Ok(Dialect::Native) };
    Dialect::parse(word).ok_or_else(|| format!("unknown dialect `{word}`"))
}

fn read_principal(given: Option<&Value>, fallback: &str) -> Result<Principal, String> {
    let nothing = json!({});
    let (id, given) = match given {
        None => (fallback, &nothing),
        Some(Value::String(id)) => (id.as_str(), &nothing),
        Some(given) => (given.get("id").and_then(Value::as_str).unwrap_or(fallback), given),
    };
    let given = Given::with(given, &["id", "kind", "labels", "scopes"])?;
    let id = PrincipalId::parse(id).map_err(|error| format!("invalid principal id: it {error}"))?;
    let kind = match given.text("kind")? {
        None => PrincipalKind::Agent,
        Some(kind) => PrincipalKind::parse(kind).ok_or_else(|| format!("unknown principal kind `{kind}`"))?,
    };
    let scopes: Vec<String> = given.texts("scopes")?.into_iter().map(str::to_owned).collect();
    let new = Principal::new(TenantId::default_tenant(), id, kind, PermissionSet::default(), Timestamp::EPOCH);
    Ok(Principal { labels: read_labels(&given)?, scopes: HeldScopes::from_stored(scopes), ..new })
}

fn read_labels(given: &Given<'_>) -> Result<BTreeSet<Label>, String> {
    let label = |text| Label::parse(text).map_err(|error| format!("invalid label: it {error}"));
    given.texts("labels")?.into_iter().map(label).collect()
}

fn read_tool(given: &Value, tools: Lookup<'_>) -> Result<PolicyInputTool, String> {
    if let Value::String(name) = given {
        let known = tools(name)
            .ok_or_else(|| format!("the catalog has no tool `{name}`; describe it: {{name: {name}, tier: write}}"))?;
        return named_tool(name, known.definition, false);
    }
    let members = ["name", "tier", "egress", "labels", "idempotent", "external", "parameters"];
    let given = Given::with(given, &members)?;
    let name = given.text("name")?.ok_or("`tool.name` is missing")?;
    let scope = Scope::parse("given").map_err(|error| error.to_string())?;
    let known = tools(name).map(|tool| tool.definition);
    let mut definition = known.map_or_else(|| ToolDefinition::of_scope(scope), |known| (*known).clone());
    if let Some(tier) = given.text("tier")? {
        let tier = toolgate_model::descriptor::SafetyTier::parse(tier);
        definition.safety_tier = Some(tier.ok_or("`tool.tier` must be pure, read, write or exec")?);
    }
    if let Some(egress) = given.text("egress")? {
        definition.egress = Some(Egress::parse(egress).ok_or("`tool.egress` is not a known egress value")?);
    }
    if given.get("labels").is_some() {
        definition.labels = read_labels(&given)?;
    }
    if let Some(idempotent) = given.flag("idempotent")? {
        definition.idempotent = idempotent;
    }
    if let Some(parameters) = given.get("parameters") {
        definition.parameters = Some(parameters.clone());
    }
    named_tool(name, Arc::new(definition), given.flag("external")?.unwrap_or(false))
}

fn named_tool(name: &str, definition: Arc<ToolDefinition>, external: bool) -> Result<PolicyInputTool, String> {
    let (service, tool) = name.split_once('.').ok_or_else(|| format!("`{name}` is not of the form SERVICE.TOOL"))?;
    let service =
        ServiceName::parse(service).map_err(|error| format!("invalid service name in `{name}`: it {error}"))?;
    ToolName::parse(tool).map_err(|error| format!("invalid tool name in `{name}`: it {error}"))?;
    Ok(PolicyInputTool { service, name: name.to_owned(), definition, external })
}
