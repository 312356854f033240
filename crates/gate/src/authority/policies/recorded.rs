//! What the log has of calls and of what guardians said, put together for whoever judges it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::principal::PrincipalId;

use crate::gate::Gate;
use crate::identify::Caller;
use crate::ports::ledger::{EventFilter, PageRequest};
use crate::ports::policy_book::{PolicyTool, Recorded};
use crate::refusal::{Code, Refusal};

/// The most events that are looked through at once.
const EVENT_LIMIT: usize = 200_000;

/// Something recorded, with its place in the log.
pub(super) struct Entry {
    pub(super) sequence: u64,
    /// The call, where it is one.
    pub(super) invocation: Option<String>,
    pub(super) recorded: Recorded,
    /// The code that the call was refused with, at whatever stage; `None` where it was not.
    pub(super) denied: Option<String>,
}

impl Entry {
    /// Whether the call was refused, and policies never came to judge it.
    pub(super) fn is_denied_before_policies(&self) -> bool {
        self.denied.as_deref().is_some_and(|code| !code.starts_with("POLICY_") && !code.starts_with("APPROVAL_"))
            && self.recorded.decision.is_none()
            && self.recorded.called.is_some()
    }
}

/// What was found.
pub(super) struct Found {
    pub(super) entries: Vec<Entry>,
    /// Whether there was more than is looked through.
    pub(super) truncated: bool,
}

impl Gate {
    /// Calls and decisions that fit the filter, in the order of the log.
    pub(super) async fn recorded(&self, caller: &Caller, filter: EventFilter) -> Result<Found, Refusal> {
        let kinds = ["agent.toolCalled", "hook.decided", "tool.denied"].map(str::to_owned).to_vec();
        let filter = EventFilter { kinds, ..filter };
        let tools: HashMap<String, PolicyTool> =
            self.policy_tools(caller).await?.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        let mut found = Found { entries: Vec::new(), truncated: false };
        let mut calls: HashMap<String, usize> = HashMap::new();
        let mut principals: BTreeMap<String, Option<Arc<Value>>> = BTreeMap::new();
        let mut page = PageRequest::first(PageRequest::LIMIT);
        let mut looked_at = 0usize;
        loop {
            let events = self.events(caller, filter.clone(), page).await?;
            for event in &events.items {
                let Line { kind, data, agent, actor, time, run } = Line::read(&event.canonical)?;
                if kind == "tool.denied" {
                    let text = |name: &str| data.get(name).and_then(Value::as_str);
                    let entry = text("invocation_id").and_then(|id| calls.get(id));
                    if let Some(entry) = entry.and_then(|place| found.entries.get_mut(*place)) {
                        entry.denied = Some(text("error_code").unwrap_or_default().to_owned());
                    }
                    continue;
                }
                if kind == "hook.decided" {
                    let of = data.get("invocation_id").and_then(Value::as_str);
                    let is_request = data.get("hook").and_then(Value::as_str) == Some("tool_call_request");
                    let entry = of.filter(|_| is_request).and_then(|id| calls.get(id));
                    if let Some(entry) = entry.and_then(|place| found.entries.get_mut(*place)) {
                        entry.recorded.decision = Some(data);
                        continue;
                    }
                }
                let name = |member| data.get(member).and_then(Value::as_str).map(str::to_owned);
                let (invocation, tool) = match kind.as_str() {
                    "agent.toolCalled" => (name("callId"), name("toolName")),
                    _ => (name("invocation_id"), name("tool")),
                };
                if !principals.contains_key(&agent) {
                    principals.insert(agent.clone(), self.principal_now(caller, &agent).await?);
                }
                let principal = principals.get(&agent).and_then(|known| known.as_deref().cloned());
                if let (Some(id), true) = (&invocation, kind == "agent.toolCalled") {
                    calls.insert(id.clone(), found.entries.len());
                }
                let tool = tool.and_then(|tool| tools.get(&tool).cloned());
                let (decision, called) = match kind.as_str() {
                    "agent.toolCalled" => (None, Some(data)),
                    _ => (Some(data), None),
                };
                let recorded = Recorded { decision, called, agent, actor, time, run, tool, principal };
                found.entries.push(Entry { sequence: event.sequence, invocation, recorded, denied: None });
            }
            looked_at = looked_at.saturating_add(events.items.len());
            match events.next {
                Some(_) if looked_at >= EVENT_LIMIT => {
                    found.truncated = true;
                    return Ok(found);
                }
                Some(next) => page = PageRequest { after: Some(next), limit: PageRequest::LIMIT },
                None => return Ok(found),
            }
        }
    }

    async fn principal_now(&self, caller: &Caller, agent: &str) -> Result<Option<Arc<Value>>, Refusal> {
        let Ok(id) = PrincipalId::parse(agent) else { return Ok(None) };
        let principal = self.ledger.principal(caller.tenant(), &id).await?;
        Ok(principal.map(|principal| {
            Arc::new(json!({
                "id": principal.id, "kind": principal.kind, "labels": principal.labels, "scopes": principal.scopes,
            }))
        }))
    }
}

/// What is needed of a line of the log.
struct Line {
    kind: String,
    data: Value,
    agent: String,
    actor: String,
    time: String,
    run: Option<String>,
}

impl Line {
    fn read(canonical: &str) -> Result<Self, Refusal> {
        let unreadable = || Refusal::new(Code::Internal, "an event of the log cannot be read");
        let mut event: Value = serde_json::from_str(canonical).map_err(|_| unreadable())?;
        let text = |event: &Value, name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
        let data = event.get_mut("data").map(Value::take).ok_or_else(unreadable)?;
        let actor = text(&event, "actor").ok_or_else(unreadable)?;
        Ok(Self {
            kind: text(&event, "type").ok_or_else(unreadable)?,
            agent: text(&event, "agent_id").unwrap_or_else(|| actor.clone()),
            actor,
            time: text(&event, "timestamp").ok_or_else(unreadable)?,
            run: text(&event, "run_id"),
            data,
        })
    }
}

/// What the policies said, as the record of a decision has it.
pub(super) fn policy_record(decision: Option<&Value>) -> Option<&Value> {
    let guardians = decision?.get("guardians")?.as_array()?;
    guardians.iter().find(|record| record.get("guardian").and_then(Value::as_str) == Some("policy"))
}
