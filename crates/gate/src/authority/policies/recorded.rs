//! Reads recorded calls and decisions from the log and joins them for re-evaluation.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_model::event::{Event, EventKind, EventPayload};
use toolgate_model::guard::{GuardianRecord, Hook, HookDecision};
use toolgate_model::id::InvocationId;
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;

use super::PolicyAdministration;
use crate::identify::Caller;
use crate::ports::ledger::{EventFilter, PageRequest};
use crate::ports::policy_book::{PolicyTool, Recorded};
use crate::refusal::{Code, Refusal};

/// How many events are read before they are evaluated: this bounds the memory of a simulation.
const BLOCK: usize = 10_000;
/// How far after its call a decision may appear in the log. One transaction writes both, but events of other writers
/// may come between.
const NEARBY: u64 = 4_096;

/// A recorded call or decision, with its position in the log.
pub(super) struct Entry {
    pub(super) sequence: u64,
    /// Set if it is a call.
    pub(super) invocation: Option<InvocationId>,
    pub(super) recorded: Recorded,
    /// The code that the call was refused with, at any stage; `None` if it was not refused.
    pub(super) denied: Option<String>,
}

impl Entry {
    /// Whether the call was refused before policies evaluated it.
    pub(super) fn is_denied_before_policies(&self) -> bool {
        self.denied.as_deref().is_some_and(|code| !code.starts_with("POLICY_") && !code.starts_with("APPROVAL_"))
            && self.recorded.decision.is_none()
            && self.recorded.called.is_some()
    }
}

/// The calls and decisions in the log that match a filter, read one block at a time.
pub(super) struct Recording {
    caller: Caller,
    filter: EventFilter,
    tools: HashMap<String, PolicyTool>,
    principals: BTreeMap<PrincipalId, Option<Arc<Value>>>,
    /// Entries that may still get a decision.
    open: Vec<Entry>,
    /// The calls among them, by id.
    calls: HashMap<InvocationId, usize>,
    /// `None` once everything has been read.
    page: Option<PageRequest>,
    /// The number of events read.
    pub(super) events: u64,
    /// The position reached in the log.
    pub(super) reached: u64,
}

impl Recording {
    fn take(&mut self, sequence: u64, event: Event, principal: Option<Arc<Value>>) {
        let (decision, called) = match event.payload {
            EventPayload::AgentToolCalled(called) => {
                self.calls.insert(called.call_id, self.open.len());
                (None, Some(called))
            }
            EventPayload::HookDecided(decision) => {
                let of_call = decision.invocation.filter(|_| decision.hook == Hook::ToolCallRequest);
                if let Some(entry) = of_call.and_then(|call| self.open_call(call)) {
                    entry.recorded.decision = Some(decision);
                    return;
                }
                (Some(decision), None)
            }
            EventPayload::ToolDenied(denied) => {
                if let Some(entry) = self.open_call(denied.invocation_id) {
                    entry.denied = Some(denied.error_code);
                }
                return;
            }
            // Other events are not needed, and what cannot be read cannot be evaluated.
            _ => return,
        };
        let invocation = match (&called, &decision) {
            (Some(called), _) => Some(called.call_id),
            (None, decision) => decision.as_ref().and_then(|decision| decision.invocation),
        };
        let named = called.as_ref().map(|called| called.tool_name.as_str());
        let tool = named.or_else(|| decision.as_ref().and_then(|decision| decision.tool.as_deref()));
        let recorded = Recorded {
            tool: tool.and_then(|tool| self.tools.get(tool).cloned()),
            decision,
            called,
            agent: event.agent.as_ref().unwrap_or(&event.actor).to_string(),
            actor: event.actor.to_string(),
            time: event.time.to_string(),
            run: event.run,
            principal: principal.as_deref().cloned(),
        };
        self.open.push(Entry { sequence, invocation, recorded, denied: None });
    }

    /// The call, while a decision may still follow.
    fn open_call(&mut self, call: InvocationId) -> Option<&mut Entry> {
        let place = self.calls.get(&call)?;
        self.open.get_mut(*place)
    }

    /// The entries that no further event can change.
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
            if let (Some(id), true) = (entry.invocation, entry.recorded.called.is_some()) {
                self.calls.insert(id, place);
            }
        }
        complete
    }
}

impl PolicyAdministration {
    /// Starts to read the calls and decisions that match the filter, in the order of the log.
    pub(super) async fn begin_recording(&self, caller: &Caller, filter: EventFilter) -> Result<Recording, Refusal> {
        caller.require(Permission::ReadAudit)?;
        let read = [EventKind::AgentToolCalled, EventKind::HookDecided, EventKind::ToolDenied];
        let kinds = EventFilter::of_kinds(read).kinds;
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
                let unreadable = |_| Refusal::new(Code::Internal, "an event of the log cannot be read");
                let read = Event::read(&event.canonical).map_err(unreadable)?;
                let agent = read.agent.as_ref().unwrap_or(&read.actor).clone();
                let principal = self.principal_of(recording, &agent).await?;
                recording.reached = event.sequence;
                recording.take(event.sequence, read, principal);
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

    /// The agent in its current state, looked up once.
    async fn principal_of(
        &self,
        recording: &mut Recording,
        agent: &PrincipalId,
    ) -> Result<Option<Arc<Value>>, Refusal> {
        if let Some(known) = recording.principals.get(agent) {
            return Ok(known.clone());
        }
        let found = self.principal_now(&recording.caller, agent).await?;
        recording.principals.insert(agent.clone(), found.clone());
        Ok(found)
    }

    async fn principal_now(&self, caller: &Caller, agent: &PrincipalId) -> Result<Option<Arc<Value>>, Refusal> {
        let principal = self.principals.principal(caller.tenant(), agent).await?;
        Ok(principal.map(|principal| {
            Arc::new(json!({
                "id": principal.id, "kind": principal.kind, "labels": principal.labels, "scopes": principal.scopes,
            }))
        }))
    }
}

/// The record of the policies within a decision record.
pub(super) fn policy_record(decision: Option<&HookDecision>) -> Option<&GuardianRecord> {
    decision?.guardians.iter().find(|record| record.guardian == "policy")
}
