//! The dependencies of the stages.

use std::sync::Arc;

use tokio_util::task::TaskTracker;
use toolgate_model::id::ProcessId;

use super::detached::Runs;
use super::detached::pickup::Pickups;
use super::refused::RefusedCalls;
use super::renewals::Renewals;
use super::stops::Stops;
use super::stored::StoredResults;
use super::stores::StoreSource;
use super::tally::Tally;
use super::turns::Turns;
use crate::builtin::Builtins;
use crate::catalog::Catalogs;
use crate::gate::{Ports, Shared};
use crate::identify::{Authenticator, Caller};
use crate::ids::Ids;
use crate::ports::approver::Approver;
use crate::ports::clock::Clock;
use crate::ports::guardian::Guardian;
use crate::ports::ledger::{
    AgentTasks, ApprovalSessions, Approvals, AuditContext, Calls, Credentials, DetachedCalls, GrantLookup, Invocations,
    Principals, ToolSessions,
};
use crate::ports::sealer::Sealer;
use crate::ports::source::Sources;
use crate::ports::telemetry::Telemetry;
use crate::settings::Settings;

/// The pipeline that every call runs through.
pub struct Pipeline {
    pub(super) held_grants: Arc<dyn GrantLookup>,
    pub(super) credentials: Arc<dyn Credentials>,
    pub(super) calls: Arc<dyn Calls>,
    pub(super) invocations: Arc<dyn Invocations>,
    pub(super) detached_calls: Arc<dyn DetachedCalls>,
    pub(super) tool_sessions: Arc<dyn ToolSessions>,
    pub(super) agent_tasks: Arc<dyn AgentTasks>,
    pub(super) approvals: Arc<dyn Approvals>,
    pub(super) approval_sessions: Arc<dyn ApprovalSessions>,
    pub(super) principals: Arc<dyn Principals>,
    pub(super) sealer: Arc<dyn Sealer>,
    pub(super) sources: Sources,
    pub(super) guardian: Arc<dyn Guardian>,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) telemetry: Arc<dyn Telemetry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) authenticator: Arc<Authenticator>,
    pub(super) catalogs: Arc<Catalogs>,
    pub(super) builtins: Arc<Builtins>,
    pub(super) ids: Arc<Ids>,
    pub(super) settings: Arc<Settings>,
    pub(super) process: ProcessId,
    pub(super) detached_runs: Runs,
    pub(super) pickups: Pickups,
    pub(super) renewals: Renewals,
    pub(super) turns: Turns,
    pub(super) stops: Stops,
    /// Calls that have started and not ended: shutdown waits for them.
    pub(super) in_flight: TaskTracker,
    /// Those of them that are admitted and not settled, for metrics.
    pub(super) admitted: TaskTracker,
    pub(super) refused_calls: RefusedCalls,
    pub(super) tally: Tally,
    pub(super) stored_results: StoredResults,
}

impl Pipeline {
    pub(crate) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            held_grants: ports.ledger.clone(),
            credentials: ports.ledger.clone(),
            calls: ports.ledger.clone(),
            invocations: ports.ledger.clone(),
            detached_calls: ports.ledger.clone(),
            tool_sessions: ports.ledger.clone(),
            agent_tasks: ports.ledger.clone(),
            approvals: ports.ledger.clone(),
            approval_sessions: ports.ledger.clone(),
            principals: ports.ledger.clone(),
            sealer: Arc::clone(&ports.sealer),
            sources: ports.sources.clone().with(StoreSource::new(ports, shared)),
            guardian: Arc::clone(&ports.guardian),
            approver: Arc::clone(&ports.approver),
            telemetry: Arc::clone(&ports.telemetry),
            clock: Arc::clone(&ports.clock),
            authenticator: Arc::clone(&shared.authenticator),
            catalogs: Arc::clone(&shared.catalogs),
            builtins: Arc::clone(&shared.builtins),
            ids: Arc::clone(&shared.ids),
            process: ports.process,
            detached_runs: shared.detached_runs.clone(),
            pickups: Pickups::default(),
            renewals: Renewals::default(),
            turns: Turns::default(),
            stops: shared.stops.clone(),
            in_flight: TaskTracker::new(),
            admitted: TaskTracker::new(),
            refused_calls: RefusedCalls::new(shared.settings.refusals_per_second),
            tally: Tally::default(),
            stored_results: StoredResults::new(shared.settings.stored_results),
            settings: Arc::clone(&shared.settings),
        }
    }

    /// Ends every wait for an approver.
    pub async fn close_approvals(&self) {
        self.approver.close().await;
    }

    /// The number of calls that this process has admitted and not settled.
    pub fn in_flight(&self) -> usize {
        self.admitted.len()
    }

    /// Waits until every admitted call is settled.
    pub async fn finish_calls(&self) {
        self.in_flight.close();
        self.in_flight.wait().await;
    }

    /// The audit context of a call, whatever happens to its caller in the meantime.
    pub(super) fn audit(&self, caller: &Caller) -> AuditContext {
        caller.audit(self.clock.now())
    }
}
