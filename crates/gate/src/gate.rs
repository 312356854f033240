//! The gate, assembled from its ports: the call pipeline, administration, hooks and background tasks, each with only
//! the ports that it needs.

use std::sync::Arc;

use toolgate_model::checkpoint::SigningKey;
use toolgate_model::continuation::Continuations;
use toolgate_model::id::ProcessId;

use crate::authority::{
    Administration, ApprovalAdministration, AuditReader, MountAdministration, PolicyAdministration,
    StoreAdministration, WorkAdministration, WorkflowAdministration,
};
use crate::builtin::Builtins;
use crate::call::detached::Runs;
use crate::call::stops::Stops;
use crate::call::{Conformance, DetachedReader, Hooks, Pipeline};
use crate::catalog::Catalogs;
use crate::followers::EventStreams;
use crate::identify::Authenticator;
use crate::ids::Ids;
use crate::maintenance::Maintenance;
use crate::ports::approver::Approver;
use crate::ports::clock::Clock;
use crate::ports::guardian::Guardian;
use crate::ports::ledger::Ledger;
use crate::ports::mount::MountLink;
use crate::ports::policy_book::PolicyBook;
use crate::ports::sealer::Sealer;
use crate::ports::source::Sources;
use crate::ports::telemetry::Telemetry;
use crate::ports::tokens::TokenVerifier;
use crate::settings::Settings;

/// The dependencies of the gate.
pub struct Ports {
    pub ledger: Arc<dyn Ledger>,
    pub sealer: Arc<dyn Sealer>,
    pub clock: Arc<dyn Clock>,
    pub sources: Sources,
    /// Looks at mounted MCP servers.
    pub mounts: Arc<dyn MountLink>,
    pub guardian: Arc<dyn Guardian>,
    pub policy_book: Arc<dyn PolicyBook>,
    pub approver: Arc<dyn Approver>,
    pub telemetry: Arc<dyn Telemetry>,
    /// Set if an issuer of access tokens is configured.
    pub tokens: Option<Arc<dyn TokenVerifier>>,
    /// This process among those that share the ledger.
    pub process: ProcessId,
}

/// Used by several parts of the gate.
pub(crate) struct Shared {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) audit: Arc<AuditReader>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) builtins: Arc<Builtins>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) detached_runs: Runs,
    pub(crate) stops: Stops,
}

/// The parts of the gate, for transports and for background tasks.
pub struct Gate {
    pub authenticator: Arc<Authenticator>,
    pub pipeline: Arc<Pipeline>,
    pub detached: Arc<DetachedReader>,
    pub hooks: Arc<Hooks>,
    pub administration: Arc<Administration>,
    pub approvals: Arc<ApprovalAdministration>,
    pub policies: Arc<PolicyAdministration>,
    pub mounts: Arc<MountAdministration>,
    pub stores: Arc<StoreAdministration>,
    pub work: Arc<WorkAdministration>,
    pub workflows: Arc<WorkflowAdministration>,
    pub audit: Arc<AuditReader>,
    pub streams: Arc<EventStreams>,
    pub maintenance: Arc<Maintenance>,
    pub conformance: Arc<Conformance>,
    pub continuations: Continuations,
    pub clock: Arc<dyn Clock>,
}

impl Gate {
    pub fn new(ports: Ports, audit_key: Arc<SigningKey>, settings: Settings) -> Self {
        let authenticator = Authenticator::new(ports.ledger.clone(), ports.ledger.clone(), Arc::clone(&ports.clock));
        let authenticator = Arc::new(authenticator.with_tokens(ports.tokens.clone()));
        let shared = Shared {
            audit: Arc::new(AuditReader::new(&ports, Arc::clone(&audit_key), Arc::clone(&authenticator))),
            catalogs: Arc::new(Catalogs::new(ports.ledger.clone(), Arc::clone(&ports.clock))),
            builtins: Arc::new(Builtins::new(&settings.machine)),
            ids: Arc::default(),
            settings: Arc::new(settings),
            detached_runs: Runs::default(),
            stops: Stops::new(ports.ledger.clone()),
            authenticator,
        };
        let continuations = Continuations::new(&audit_key);
        let pipeline = Arc::new(Pipeline::new(&ports, &shared));
        let administration = Arc::new(Administration::new(&ports, &shared));
        let policies = Arc::new(PolicyAdministration::new(&ports, &shared));
        let (to_apply, rules) = (Arc::clone(&administration), Arc::clone(&policies));
        let workflows = WorkflowAdministration::new(&ports, &shared, to_apply, rules);
        let detached = DetachedReader::new(&ports, &shared, Arc::clone(&administration));
        let conformance = Conformance::new(&ports, &shared, Arc::clone(&administration), Arc::clone(&pipeline));
        Self {
            detached: Arc::new(detached),
            workflows: Arc::new(workflows),
            hooks: Arc::new(Hooks::new(&ports, &shared, Arc::clone(&pipeline))),
            approvals: Arc::new(ApprovalAdministration::new(&ports, &shared)),
            policies: Arc::clone(&policies),
            mounts: Arc::new(MountAdministration::new(&ports, Arc::clone(&pipeline), Arc::clone(&administration))),
            stores: Arc::new(StoreAdministration::new(&ports, &shared, Arc::clone(&administration))),
            work: Arc::new(WorkAdministration::new(&ports, &shared)),
            streams: Arc::new(EventStreams::new(&ports, &shared)),
            maintenance: Arc::new(Maintenance::new(&ports, &shared, audit_key)),
            conformance: Arc::new(conformance),
            continuations,
            clock: Arc::clone(&ports.clock),
            authenticator: shared.authenticator,
            audit: shared.audit,
            pipeline,
            administration,
        }
    }
}
