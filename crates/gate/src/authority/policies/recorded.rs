//! What the log has of calls and of what guardians said, put together for whoever judges it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use super::PolicyAdministration;
use crate::identify::Caller;
use crate::ports::ledger::{EventFilter, PageRequest};
use crate::ports::policy_book::{PolicyTool, Recorded};
use crate::refusal::{Code, Refusal};

/// How many events are read before what they tell of is judged: what a simulation holds in memory.
const BLOCK: usize = 10_000;
/// How far behind a call its decision may stand. Both are written by one transaction, and other writers come between.
const NEARBY: u64 = 4_096;

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

/// The calls and decisions in the log that fit a filter, read a block at a time.
pub(super) struct Recording {
    caller: Caller,
    filter: EventFilter,
    tools: HashMap<String, PolicyTool>,
    principals: BTreeMap<String, Option<Arc<Value>>>,
    /// What a decision may still come for.
    open: Vec<Entry>,
    /// The calls among them, by id.
    calls: HashMap<String, usize>,
    /// `None` once all was read.
    page: Option<PageRequest>,
    /// How many events were read.
    pub(super) events: u64,
    /// The place in the log that was reached.
    pub(super) reached: u64,
}

impl Recording {
    /// Takes an event.
    fn take(&mut self, sequence: u64, line: Line, principal: Option<Arc<Value>>) {
        let Line { kind, data, agent, actor, time, run } = line;
        let text = |name: &str| data.get(name).and_then(Value::as_str);
        if kind == "tool.denied" {
            let place = text("invocation_id").and_then(|id| self.calls.get(id));
            if let Some(entry) = place.and_then(|place| self.open.get_mut(*place)) {
                entry.denied = Some(text("error_code").unwrap_or_default().to_owned());
            }
            return;
        }
        let is_call = kind == "agent.toolCalled";
        if !is_call && text("hook") == Some("tool_call_request") {
            let place = text("invocation_id").and_then(|id| self.calls.get(id));
            if let Some(entry) = place.and_then(|place| self.open.get_mut(*place)) {
                entry.recorded.decision = Some(data);
                return;
            }
        }
        let (invocation, tool) = match is_call {
            true => (text("callId"), text("toolName")),
            false => (text("invocation_id"), text("tool")),
        };
        let tool = tool.and_then(|tool| self.tools.get(tool).cloned());
        let invocation = invocation.map(str::to_owned);
        if let (Some(id), true) = (&invocation, is_call) {
            self.calls.insert(id.clone(), self.open.len());
        }
        let (decision, called) = if is_call { (None, Some(data)) } else { (Some(data), None) };
        let principal = principal.as_deref().cloned();
        let recorded = Recorded { decision, called, agent, actor, time, run, tool, principal };
        self.open.push(Entry { sequence, invocation, recorded, denied: None });
    }

    /// Those that nothing more can come for.
    fn complete(&mut self) -> Vec<Entry> {
        let open_from = match self.page {
            Some(_) => self.reached.saturating_sub(NEARBY),
            None => u64::MAX,
        };
        let split = self.open.partition_point(|entry| entry.sequence < open_from);
        let open = self.open.split_off(split);
        let complete = std::mem::replace(&mut self.open, open);
        self.calls.clear();
        for (place, entry) in self.open.iter().enumerate() {
            if let (Some(id), true) = (&entry.invocation, entry.recorded.called.is_some()) {
                self.calls.insert(id.clone(), place);
            }
        }
        complete
    }
}

impl PolicyAdministration {
    /// Begins to read the calls and decisions that fit the filter, in the order of the log.
    pub(super) async fn begin_recording(&self, caller: &Caller, filter: EventFilter) -> Result<Recording, Refusal> {
        caller.require(Permission::ReadAudit)?;
        let kinds = ["agent.toolCalled", "hook.decided", "tool.denied"].map(str::to_owned).to_vec();
        let tools = self.policy_tools(caller).await?.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        self.audit.integrate_if_possible().await;
        Ok(Recording {
            caller: caller.clone(),
            filter: EventFilter { kinds, ..filter },
            tools,
            principals: BTreeMap::new(),
            open: Vec::new(),
            calls: HashMap::new(),
            page: Some(PageRequest::first(PageRequest::LIMIT)),
            events: 0,
            reached: 0,
        })
    }

    /// The next calls and decisions; `None` after the last. Refused once the caller's key or permission has ended.
    pub(super) async fn next_recorded(&self, recording: &mut Recording) -> Result<Option<Vec<Entry>>, Refusal> {
        if recording.page.is_none() {
            return Ok(None);
        }
        recording.caller = self.authenticator.identify_again(&recording.caller).await?;
        recording.caller.require(Permission::ReadAudit)?;
        let mut read = 0usize;
        while let Some(page) = recording.page.take() {
            let tenant = recording.caller.tenant();
            let events = self.log.events(tenant, recording.filter.clone(), page).await?;
            for event in &events.items {
                let line = Line::read(&event.canonical)?;
                let principal = self.principal_of(recording, &line.agent).await?;
                recording.reached = event.sequence;
                recording.take(event.sequence, line, principal);
            }
            read = read.saturating_add(events.items.len());
            recording.page = events.next.map(|next| PageRequest { after: Some(next), limit: PageRequest::LIMIT });
            if read >= BLOCK {
                break;
            }
        }
        recording.events = recording.events.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        Ok(Some(recording.complete()))
    }

    /// The agent as it is now, looked up once.
    async fn principal_of(&self, recording: &mut Recording, agent: &str) -> Result<Option<Arc<Value>>, Refusal> {
        if let Some(known) = recording.principals.get(agent) {
            return Ok(known.clone());
        }
        let found = self.principal_now(&recording.caller, agent).await?;
        recording.principals.insert(agent.to_owned(), found.clone());
        Ok(found)
    }

    async fn principal_now(&self, caller: &Caller, agent: &str) -> Result<Option<Arc<Value>>, Refusal> {
        let Ok(id) = PrincipalId::parse(agent) else { return Ok(None) };
        let principal = self.principals.principal(caller.tenant(), &id).await?;
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
