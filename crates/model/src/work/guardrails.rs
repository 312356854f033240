//! Guardrails of a coordinator (RFC-0013, RFC-0014 §7.3). A stored constraint is an enforced one: members that the gate
//! does not enforce are accepted only with the value that the official client sends by default.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::limits::NAMES;
use crate::constraint::Cost;
use crate::credential::ServiceName;
use crate::text::check_identifier;

/// What bounds a coordinator and everything that is delegated below it. An absent member bounds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// The number of external calls.
    pub max_tool_invocations: Option<u64>,
    /// The cost of external calls.
    pub max_tool_cost: Option<Cost>,
    /// RFC-0013's name of the same.
    pub max_budget: Option<Cost>,
    pub allowed_services: Option<BTreeSet<ServiceName>>,
    pub denied_services: BTreeSet<ServiceName>,
    /// Tools, as `service.tool` or `service.scope`, of which each call needs an approval.
    pub require_approval_for: BTreeSet<String>,
    /// Whether the gate delegates what an assigned task requires.
    pub auto_delegate: bool,
    pub max_tasks_per_plan: Option<u32>,
    /// How many levels below the coordinator's own grant may be delegated.
    pub max_delegation_depth: Option<u32>,
    /// How many tasks of the intent agents may have at the same time.
    pub max_concurrent_tasks: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{member}` {reason}")]
pub struct GuardrailError {
    pub member: String,
    pub reason: String,
}

/// The members that are not enforced, with the only value that is accepted besides `null`.
fn unenforced() -> [(&'static str, Value); 17] {
    [
        ("warn_at_percentage", json!(80)),
        ("on_exceed", json!("pause_and_escalate")),
        ("max_plan_versions", json!(5)),
        ("allowed_capabilities", Value::Null),
        ("max_plan_duration_hours", Value::Null),
        ("max_task_wait_hours", Value::Null),
        ("checkpoint_timeout_hours", json!(24)),
        ("require_progress_every_minutes", Value::Null),
        ("requires_plan_review", json!(false)),
        ("requires_replan_review", json!(false)),
        ("auto_escalate_after_failures", json!(3)),
        ("require_human_for_capabilities", json!([])),
        ("max_working_memory_per_task", Value::Null),
        ("max_episodic_memory_per_agent", Value::Null),
        ("allowed_semantic_namespaces", Value::Null),
        ("denied_semantic_namespaces", Value::Null),
        ("memory_archive_required", json!(true)),
    ]
}

impl Guardrails {
    /// Reads the JSON object of a coordinator.
    pub fn from_json(object: &Map<String, Value>) -> Result<Self, GuardrailError> {
        let mut guardrails = Self::default();
        for (member, value) in object {
            guardrails.read(member, value).map_err(|reason| GuardrailError { member: member.clone(), reason })?;
        }
        Ok(guardrails)
    }

    fn read(&mut self, member: &str, value: &Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match member {
            "max_tool_invocations" => self.max_tool_invocations = Some(count(value)?),
            "max_tool_cost_usd" => self.max_tool_cost = Some(cost(value)?),
            "max_budget_usd" => self.max_budget = Some(cost(value)?),
            "allowed_services" => self.allowed_services = Some(services(value)?),
            "denied_services" => self.denied_services = services(value)?,
            "require_approval_for" => {
                self.require_approval_for =
                    names(value)?.map(|name| name.map(str::to_owned)).collect::<Result<_, _>>()?;
            }
            "auto_delegate" => self.auto_delegate = value.as_bool().ok_or("must be true or false")?,
            "max_tasks_per_plan" => self.max_tasks_per_plan = Some(small(value)?),
            "max_delegation_depth" => self.max_delegation_depth = Some(small(value)?),
            "max_concurrent_tasks" => self.max_concurrent_tasks = Some(small(value)?),
            other => {
                let known = unenforced().into_iter().find(|(name, _)| *name == other);
                let (_, default) = known.ok_or("is not a guardrail")?;
                if *value != default {
                    return Err(format!("is not enforced by Toolgate; leave it out, or set it to {default}"));
                }
            }
        }
        Ok(())
    }

    /// The members that are enforced and set.
    pub fn to_json(&self) -> Map<String, Value> {
        let Self {
            max_tool_invocations,
            max_tool_cost,
            max_budget,
            allowed_services,
            denied_services,
            require_approval_for,
            auto_delegate,
            max_tasks_per_plan,
            max_delegation_depth,
            max_concurrent_tasks,
        } = self;
        let mut object = Map::new();
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                object.insert(name.to_owned(), value);
            }
        };
        set("max_tool_invocations", json!(max_tool_invocations));
        set("max_tool_cost_usd", json!(max_tool_cost.map(Cost::dollars)));
        set("max_budget_usd", json!(max_budget.map(Cost::dollars)));
        set("allowed_services", json!(allowed_services));
        set("max_tasks_per_plan", json!(max_tasks_per_plan));
        set("max_delegation_depth", json!(max_delegation_depth));
        set("max_concurrent_tasks", json!(max_concurrent_tasks));
        if !denied_services.is_empty() {
            set("denied_services", json!(denied_services));
        }
        if !require_approval_for.is_empty() {
            set("require_approval_for", json!(require_approval_for));
        }
        if *auto_delegate {
            set("auto_delegate", json!(true));
        }
        object
    }

    /// The smaller of the two limits on cost.
    pub fn cost_limit(&self) -> Option<Cost> {
        [self.max_tool_cost, self.max_budget].into_iter().flatten().min()
    }

    pub fn allows_service(&self, service: &ServiceName) -> bool {
        let listed = self.allowed_services.as_ref().is_none_or(|allowed| allowed.contains(service));
        listed && !self.denied_services.contains(service)
    }

    /// Whether each call of this tool needs an approval.
    pub fn asks_for(&self, tool: &str, service: &str, scope: &str) -> bool {
        let of_scope = |name: &String| {
            name.strip_prefix(service).and_then(|rest| rest.strip_prefix('.')).is_some_and(|rest| rest == scope)
        };
        !self.require_approval_for.is_empty()
            && (self.require_approval_for.contains(tool) || self.require_approval_for.iter().any(of_scope))
    }

    /// Whether they bound nothing.
    pub fn is_unlimited(&self) -> bool {
        let unlimited = Self { auto_delegate: self.auto_delegate, ..Self::default() };
        *self == unlimited
    }

    /// The first member that allows more than in `other`.
    pub fn first_widening(&self, other: &Self) -> Option<&'static str> {
        fn wider<L: PartialOrd>(own: &Option<L>, other: &Option<L>) -> bool {
            match (own, other) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(own), Some(other)) => own > other,
            }
        }
        let unlisted = match (&self.allowed_services, &other.allowed_services) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(other)) => !own.is_subset(other),
        };
        [
            ("max_tool_invocations", wider(&self.max_tool_invocations, &other.max_tool_invocations)),
            ("max_tool_cost_usd", wider(&self.max_tool_cost, &other.max_tool_cost)),
            ("max_budget_usd", wider(&self.max_budget, &other.max_budget)),
            ("allowed_services", unlisted),
            ("denied_services", !other.denied_services.is_subset(&self.denied_services)),
            ("require_approval_for", !other.require_approval_for.is_subset(&self.require_approval_for)),
            ("auto_delegate", self.auto_delegate && !other.auto_delegate),
            ("max_tasks_per_plan", wider(&self.max_tasks_per_plan, &other.max_tasks_per_plan)),
            ("max_delegation_depth", wider(&self.max_delegation_depth, &other.max_delegation_depth)),
            ("max_concurrent_tasks", wider(&self.max_concurrent_tasks, &other.max_concurrent_tasks)),
        ]
        .into_iter()
        .find_map(|(member, widens)| widens.then_some(member))
    }
}

fn count(value: &Value) -> Result<u64, String> {
    // A count beyond what the ledger stores bounds nothing.
    let fits = value.as_u64().filter(|count| i64::try_from(*count).is_ok());
    fits.ok_or_else(|| "must be a whole number that is not negative".to_owned())
}

fn small(value: &Value) -> Result<u32, String> {
    count(value).and_then(|count| u32::try_from(count).map_err(|_| "is too large".to_owned()))
}

fn cost(value: &Value) -> Result<Cost, String> {
    let dollars = value.as_f64().and_then(Cost::from_dollars);
    dollars.ok_or_else(|| "must be an amount of dollars, to the millionth".to_owned())
}

type Names<'a> = Box<dyn Iterator<Item = Result<&'a str, String>> + 'a>;

fn names(value: &Value) -> Result<Names<'_>, String> {
    let list = value.as_array().ok_or("must be a list")?;
    if list.len() > NAMES {
        return Err(format!("must have at most {NAMES} entries"));
    }
    Ok(Box::new(list.iter().map(|name| {
        let name = name.as_str().ok_or("must be a list of names")?;
        check_identifier(name).map(|()| name).map_err(|error| format!("has a name that {error}"))
    })))
}

fn services(value: &Value) -> Result<BTreeSet<ServiceName>, String> {
    let parse =
        |name: Result<&str, String>| ServiceName::parse(name?).map_err(|error| format!("has a service that {error}"));
    names(value)?.map(parse).collect()
}

impl Serialize for Guardrails {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Guardrails {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(&Map::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
