//! A pipeline on in-memory ports, for the unit tests of the stages. Nothing here is durable, and a port that a stage
//! should not use refuses.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use toolgate_model::constraint::Constraints;
use toolgate_model::context::GrantContext;
use toolgate_model::credential::{AuthType, Credential, ServiceName};
use toolgate_model::grant::{Authority, DelegationDepth, Grant, Lineage};
use toolgate_model::id::{CoordinatorId, CredentialId, GrantId, IntentId, KeyId, ProcessId, VaultId};
use toolgate_model::permission::PermissionSet;
use toolgate_model::principal::{Principal, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::scope::{Scope, ScopeSet};
use toolgate_model::service::ServiceDefinition;
use toolgate_model::text::Line;
use toolgate_model::time::Timestamp;
use toolgate_model::work::{Coordinator, CoordinatorKind, CoordinatorStatus, Guardrails};

use super::constrain::Constrained;
use super::detached::Runs;
use super::detached::pickup::Pickups;
use super::eligible::Alternative;
use super::guard::Guarded;
use super::refused::RefusedCalls;
use super::renewals::Renewals;
use super::stops::Stops;
use super::stored::StoredResults;
use super::tally::Tally;
use super::turns::Turns;
use super::{Call, CallRequest, CallResult, Pipeline, RunOutcome, RunState};
use crate::builtin::Builtins;
use crate::catalog::Catalogs;
use crate::identify::{Authenticator, Caller};
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{Freshness, HeldGrant, RegisteredService};
use crate::ports::source::{Execution, Sources};
use crate::refusal::Refusal;
use crate::settings::Settings;

pub(super) use self::memory::Memory;
use self::memory::Unused;
use self::world::FixedSealer;
pub(super) use self::world::{Executed, FixedApprover, FixedGuardian, FixedSource, KeptTelemetry, SECRET};

mod memory;
mod world;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A clock that stands still.
pub(super) struct StillClock(Mutex<Timestamp>);

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// A pipeline with the ports that tests set and read.
pub(super) struct Bench {
    pub(super) memory: Arc<Memory>,
    pub(super) guardian: Arc<FixedGuardian>,
    pub(super) approver: Arc<FixedApprover>,
    pub(super) source: Arc<FixedSource>,
    pub(super) telemetry: Arc<KeptTelemetry>,
    pub(super) pipeline: Arc<Pipeline>,
}

impl Bench {
    /// With the service `crm`, whose tool `read` takes an id and whose tool `write` needs an approver, and without grants.
    pub(super) fn new() -> Self {
        let memory = Arc::new(Memory::default());
        memory.register(&json!({
            "service": "crm", "version": "1", "base_url": "https://crm.example",
            "tools": {
                "read": {
                    "http": {"method": "GET", "path": "/contacts/{id}"},
                    "parameters": {"type": "object", "properties": {"id": {"type": "string"}, "note": {"type": "string"}},
                        "required": ["id"], "additionalProperties": false},
                    "estimated_cost_usd": 0.5
                },
                "write": {"http": {"method": "POST", "path": "/contacts"}, "approval": "always"}
            }
        }));
        let (guardian, approver) = (Arc::<FixedGuardian>::default(), Arc::<FixedApprover>::default());
        let source = Arc::<FixedSource>::default();
        let telemetry = Arc::<KeptTelemetry>::default();
        let clock: Arc<dyn Clock> = Arc::new(StillClock(Mutex::new(now())));
        let settings = Arc::new(Settings::default());
        let unused = Arc::new(Unused);
        let pipeline = Pipeline {
            held_grants: memory.clone(),
            credentials: memory.clone(),
            calls: memory.clone(),
            invocations: unused.clone(),
            detached_calls: unused.clone(),
            tool_sessions: unused.clone(),
            agent_tasks: unused.clone(),
            approvals: unused.clone(),
            approval_sessions: memory.clone(),
            principals: unused.clone(),
            sealer: Arc::new(FixedSealer),
            stops: Stops::new(unused.clone()),
            sources: Sources::default().sharing(source.clone()),
            guardian: guardian.clone(),
            approver: approver.clone(),
            telemetry: telemetry.clone(),
            clock: Arc::clone(&clock),
            authenticator: Arc::new(Authenticator::new(unused.clone(), unused, Arc::clone(&clock))),
            catalogs: Arc::new(Catalogs::new(memory.clone(), clock)),
            builtins: Arc::new(Builtins::new(&settings.machine)),
            ids: Arc::new(Ids::default()),
            process: ProcessId::new(now(), [0; 10]),
            detached_runs: Runs::default(),
            pickups: Pickups::default(),
            renewals: Renewals::default(),
            turns: Turns::default(),
            in_flight: tokio_util::task::TaskTracker::new(),
            admitted: tokio_util::task::TaskTracker::new(),
            refused_calls: RefusedCalls::new(settings.refusals_per_second),
            tally: Tally::default(),
            stored_results: StoredResults::new(settings.stored_results),
            settings,
        };
        Self { memory, guardian, approver, source, telemetry, pipeline: Arc::new(pipeline) }
    }

    /// With a grant on all scopes of a credential of `crm`.
    pub(super) fn with_grant() -> Self {
        let bench = Self::new();
        bench.grant(&credential("crm", 1), |_| {});
        bench
    }

    /// Grants the agent this credential.
    pub(super) fn grant(&self, credential: &Credential, change: impl FnOnce(&mut Grant)) -> GrantId {
        let mut held_grants = self.memory.held_grants.lock().unwrap();
        let number = u8::try_from(held_grants.len()).unwrap();
        let mut grant = Grant {
            id: GrantId::new(now(), [number; 10]),
            tenant: TenantId::default_tenant(),
            credential: credential.id,
            service: credential.service.clone(),
            agent: agent(),
            granted_by: PrincipalId::administrator(),
            source: None,
            level: 0,
            authority: Authority {
                scopes: credential.scopes_available.clone(),
                constraints: Constraints::default(),
                context: GrantContext::default(),
                delegatable: false,
                delegation_depth: DelegationDepth::Unlimited,
                expires_at: None,
            },
            created_at: now(),
            suspended: None,
            revoked_at: None,
        };
        change(&mut grant);
        let id = grant.id;
        let lineage = Lineage::new(Vec::new(), grant).unwrap();
        held_grants.push(Arc::new(HeldGrant::new(lineage, credential.clone(), 0)));
        id
    }

    /// Makes a coordinator with these guardrails govern all grants.
    pub(super) fn govern(&self, guardrails: &Value) -> CoordinatorId {
        let coordinator = Arc::new(Coordinator {
            id: CoordinatorId::new(now(), [5; 10]),
            tenant: TenantId::default_tenant(),
            intent: IntentId::new(now(), [6; 10]),
            agent: agent(),
            supervisor: PrincipalId::administrator(),
            version: 1,
            status: CoordinatorStatus::Active,
            role: "coordinator".to_owned(),
            kind: CoordinatorKind::Llm,
            guardrails: Guardrails::from_json(guardrails.as_object().unwrap()).unwrap(),
            heartbeat_seconds: 60,
            last_heartbeat: None,
            granted_at: now(),
            expires_at: None,
            metadata: Map::new(),
        });
        for held_grant in self.memory.held_grants.lock().unwrap().iter_mut() {
            let HeldGrant { lineage, credential, generation, .. } = &**held_grant;
            let governed = HeldGrant::new(lineage.clone(), credential.clone(), *generation);
            *held_grant = Arc::new(HeldGrant { coordinators: vec![Arc::clone(&coordinator)], ..governed });
        }
        coordinator.id
    }

    pub(super) fn call(&self, tool: &str, parameters: Value) -> Call {
        let Value::Object(parameters) = parameters else { panic!("parameters are an object") };
        self.begin(CallRequest::new(tool.to_owned(), parameters, HERE))
    }

    pub(super) fn begin(&self, request: CallRequest) -> Call {
        let caller = Caller::of(self.memory.agent(), KeyId::new(now(), [0; 10]));
        let (call, permitted) = self.pipeline.begin(caller, request).unwrap();
        permitted.unwrap();
        call
    }

    /// Runs a call through the stages up to the constraints.
    pub(super) async fn constrain(&self, call: &Call) -> Result<Constrained, Refusal> {
        self.pipeline.check(call, Freshness::Newest, &mut RunState::default()).await
    }

    /// The preferred action of a call.
    pub(super) async fn preferred(&self, call: &Call) -> Alternative {
        self.constrain(call).await.ok().unwrap().into_alternatives().into_iter().next().unwrap()
    }

    /// Runs a call of `crm.read` through all stages; the source executes it in this way.
    pub(super) async fn execute_as(&self, execution: Execution) -> CallResult {
        self.source.executions.lock().unwrap().push_back(execution);
        match self.pipeline.run(self.call("crm.read", json!({"id": "7"})), Ok(())).await {
            RunOutcome::Done(outcome) => outcome.unwrap(),
            RunOutcome::Parked(_) => panic!("it does not wait"),
        }
    }

    /// Runs a call through the stages up to the guardians.
    pub(super) async fn guard(&self, call: &Call) -> Result<Guarded, Refusal> {
        let preferred = self.preferred(call).await;
        self.pipeline.guard(call, preferred, Freshness::Newest, &mut RunState::default()).await
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000).unwrap()
}

pub(super) fn agent() -> PrincipalId {
    PrincipalId::parse("clerk").unwrap()
}

fn principal() -> Principal {
    let permissions = PermissionSet::of_an_agent();
    Principal::new(TenantId::default_tenant(), agent(), PrincipalKind::Agent, permissions, now())
}

/// A credential of a service, with the scopes `read` and `write`.
pub(super) fn credential(service: &str, number: u8) -> Credential {
    Credential {
        id: CredentialId::new(now(), [number; 10]),
        tenant: TenantId::default_tenant(),
        vault: VaultId::new(now(), [0; 10]),
        service: ServiceName::parse(service).unwrap(),
        label: Line::parse("production").unwrap(),
        auth_type: AuthType::BearerToken,
        scopes_available: scopes(&["read", "write"]),
        metadata: Map::new(),
        version: 1,
        material_fields: vec!["token".to_owned()],
        created_at: now(),
        rotated_at: now(),
        expires_at: None,
        revoked_at: None,
    }
}

pub(super) fn scopes(names: &[&str]) -> ScopeSet {
    names.iter().map(|name| Scope::parse(name).unwrap()).collect()
}

fn registered(definition: &Value) -> RegisteredService {
    RegisteredService {
        tenant: TenantId::default_tenant(),
        definition: ServiceDefinition::from_json(definition).unwrap(),
        created_at: now(),
        updated_at: now(),
    }
}
