//! Invocation records: reading them, and accepting a caller's own report of a call.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_model::arguments::arguments_hash;
use toolgate_model::blinding::short_parameters;
use toolgate_model::constraint::Cost;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::ServiceName;
use toolgate_model::event::{EventKind, EventPayload};
use toolgate_model::hook::CallTrace;
use toolgate_model::id::{GrantId, InvocationId};
use toolgate_model::invocation::{IdempotencyKey, Invocation, InvocationError, InvocationStatus};
use toolgate_model::permission::Permission;
use toolgate_model::principal::PrincipalId;
use toolgate_model::service::{LoggingRule, ToolName};

use crate::authority::Administration;
use crate::call::authorize::require_usable;
use crate::call::context::bind;
use crate::identify::Caller;
use crate::ports::ledger::{EventFilter, Freshness, InvocationFilter, Page, PageRequest, ReportInvocation};
use crate::refusal::{Code, Refusal};

/// How often a report is checked again if its grant changes in the meantime.
const ATTEMPTS: u32 = 4;

/// A call that the caller made itself.
pub struct Report {
    pub grant: GrantId,
    pub agent: PrincipalId,
    pub service: ServiceName,
    pub tool: ToolName,
    pub parameters: Map<String, Value>,
    pub status: InvocationStatus,
    pub error: Option<String>,
    pub cost: Option<Cost>,
    pub duration_ms: Option<u64>,
    pub idempotency_key: Option<IdempotencyKey>,
    /// The intent, plan and task of the call.
    pub context: GrantContext,
}

impl Administration {
    pub async fn invocation(&self, caller: &Caller, id: InvocationId) -> Result<Invocation, Refusal> {
        let missing =
            || Refusal::new(Code::InvocationNotFound, format!("there is no invocation {id}")).with("invocation_id", id);
        let invocation = self.invocations.invocation(caller.tenant(), id).await?.ok_or_else(missing)?;
        if sees_all(caller) || invocation.agent == *caller.id() || invocation.actor == *caller.id() {
            return self.as_seen_by(caller, vec![invocation]).await?.pop().ok_or_else(missing);
        }
        match invocation.grant {
            Some(grant) if self.visible_grant(caller, grant).await.is_ok() => {
                self.as_seen_by(caller, vec![invocation]).await?.pop().ok_or_else(missing)
            }
            _ => Err(missing()),
        }
    }

    /// The records as this caller may see them. Stored arguments reveal whether the credential's secret was found in
    /// them, so a caller that may only call could learn from them whether a guess was right.
    async fn as_seen_by(&self, caller: &Caller, mut records: Vec<Invocation>) -> Result<Vec<Invocation>, Refusal> {
        if sees_all(caller) {
            return Ok(records);
        }
        let catalog = self.catalogs.of(caller.tenant(), Freshness::Recent).await?;
        // A report is not compared with any secret.
        for record in records.iter_mut().filter(|record| !record.reported) {
            let call = record.id.to_string();
            let blinded = |name: &str, hash: &str| self.audit.blinding.hash(&call, name, hash);
            record.arguments_hash = blinded("argsHash", &record.arguments_hash).into();
            let fingerprint = record.fingerprint.as_deref();
            record.fingerprint = fingerprint.map(|hash| blinded("request_fingerprint", hash).into());
            let service = record.service.as_ref().and_then(|name| catalog.service(name, record.version.as_ref()));
            let schema = service.and_then(|service| service.tool(&record.tool)?.definition.parameters.as_ref());
            let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
            let is_declared = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
            record.parameters = Arc::new(short_parameters(&record.parameters, is_declared));
        }
        Ok(records)
    }

    /// The guardians' decisions about a call, in the order of the log. Requires the permission to read the log: an
    /// agent that sees what runs in shadow mode would know what to avoid before it is enforced.
    pub async fn invocation_decisions(&self, caller: &Caller, invocation: &Invocation) -> Result<Vec<Value>, Refusal> {
        if !caller.may(Permission::ReadAudit) {
            return Ok(Vec::new());
        }
        self.audit.integrate_if_possible().await;
        let filter = EventFilter {
            run: Some(invocation.run_id()),
            agent: Some(invocation.agent.clone()),
            since: Some(invocation.created_at),
            ..EventFilter::of_kinds([EventKind::HookDecided])
        };
        let mut decisions = Vec::new();
        let events = self.log.events(&invocation.tenant, filter, PageRequest::first(PageRequest::LIMIT)).await?;
        for event in events.items {
            let stored = event.read()?;
            match &stored.event.payload {
                EventPayload::HookDecided(decision) if decision.invocation == Some(invocation.id) => {
                    decisions.push(stored.data().clone());
                }
                _ => {}
            }
        }
        Ok(decisions)
    }

    /// Lists the invocations that match the filter and that the caller can see, newest first.
    pub async fn invocations(
        &self,
        caller: &Caller,
        mut filter: InvocationFilter,
        page: PageRequest,
    ) -> Result<Page<Invocation>, Refusal> {
        if let Some(grant) = filter.grant {
            // A caller that can see the grant can see the calls made through it.
            self.visible_grant(caller, grant).await?;
        } else if !sees_all(caller) && filter.agent.as_ref() != Some(caller.id()) {
            match &filter.agent {
                None if !caller.may(Permission::ManageTools) => filter.agent = Some(caller.id().clone()),
                _ => {
                    caller.require(Permission::ManageTools)?;
                    filter.vault_owner = Some(caller.id().clone());
                }
            }
        }
        let Page { items, next } = self.invocations.invocations(caller.tenant(), filter, page).await?;
        Ok(Page { items: self.as_seen_by(caller, items).await?, next })
    }

    /// Records a call that the caller made itself, marked as reported. Its grant must be usable, and it counts against
    /// the rate of the grant like any other call.
    pub async fn report_invocation(&self, caller: &Caller, report: Report) -> Result<Invocation, Refusal> {
        caller.require(Permission::InvokeTools)?;
        caller.require_acting_for(&report.agent)?;
        for _ in 0..ATTEMPTS {
            let command = self.report(caller, &report).await?;
            let invocation = command.invocation.clone();
            match self.invocations.report_invocation(command).await {
                // The state that the report was checked against has changed.
                Err(refusal) if refusal.code() == Code::VersionConflict => {}
                outcome => return outcome.map(|()| invocation),
            }
        }
        Err(Refusal::new(Code::VersionConflict, "the grant of this report keeps changing; try again"))
    }

    async fn report(&self, caller: &Caller, report: &Report) -> Result<ReportInvocation, Refusal> {
        let missing = || {
            Refusal::new(Code::GrantNotFound, format!("there is no grant {}", report.grant))
                .with("grant_id", report.grant)
        };
        let held_grant = self.held_grants.held_grant(caller.tenant(), report.grant).await?.ok_or_else(missing)?;
        let grant = held_grant.lineage.grant();
        if grant.agent != report.agent {
            return Err(missing());
        }
        if grant.service != report.service {
            let reason = format!("grant {} is for service `{}`", report.grant, grant.service);
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "service"));
        }
        let audit = caller.mandate(self.clock.now());
        require_usable(&held_grant, audit.time())?;
        let context = match report.context.names_work() {
            true => {
                let now = (audit.time(), Freshness::Newest);
                let bound = bind(&*self.held_grants, caller.tenant(), &report.agent, &report.context, now).await?;
                bound.context
            }
            false => report.context.clone(),
        };
        let lineage = held_grant.lineage.ancestors().iter().chain([grant]);
        let summary = LoggingRule::default().summary(&report.parameters);
        let invocation = Invocation {
            id: self.ids.make(audit.time(), InvocationId::new)?,
            tenant: audit.tenant().clone(),
            grant: Some(report.grant),
            agent: report.agent.clone(),
            actor: audit.actor().clone(),
            service: Some(report.service.clone()),
            tool: (&report.tool).into(),
            version: None,
            status: report.status,
            error: report.error.clone().map(|reason| InvocationError { code: "REPORTED".to_owned(), reason }),
            parameters: Arc::new(summary),
            arguments_hash: arguments_hash(&Value::Object(report.parameters.clone()), &[]).into(),
            fingerprint: None,
            http_status: None,
            cost: report.cost,
            cost_basis: None,
            duration_ms: report.duration_ms,
            idempotency_key: report.idempotency_key.clone(),
            context,
            trace: CallTrace { by_agent: true, ..CallTrace::default() },
            reported: true,
            created_at: audit.time(),
        };
        Ok(ReportInvocation {
            audit,
            lineage: lineage.map(|grant| (grant.id, grant.authority.constraints.max_invocations_per_hour)).collect(),
            credential: held_grant.credential.id,
            invocation,
        })
    }
}

fn sees_all(caller: &Caller) -> bool {
    caller.manages_all() || caller.may(Permission::ReadAudit)
}
