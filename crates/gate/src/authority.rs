//! Administration of authority: tenants, principals, keys, vaults, credentials, grants, services, policies, approvals,
//! the audit log. Each use case takes the [`crate::Caller`], checks what it may see and do, and sends one command to
//! the ledger.
//!
//! An object that a caller may not see is reported as not existing.

use std::sync::Arc;

use crate::builtin::Builtins;
use crate::call::detached::Runs;
use crate::call::stops::Stops;
use crate::catalog::Catalogs;
use crate::gate::{Ports, Shared};
use crate::ids::Ids;
use crate::ports::clock::Clock;
use crate::ports::ledger::{
    AuditLog, Credentials, GrantLookup, Grants, Invocations, Keys, LedgerState, Principals, Services, Spending,
    Tenants, ToolSessions, Vaults,
};
use crate::ports::sealer::Sealer;
use crate::ports::tokens::TokenVerifier;
use crate::settings::Settings;

pub use self::approvals::ApprovalAdministration;
pub use self::audit::AuditReader;
pub use self::mounts::MountAdministration;
pub use self::policies::PolicyAdministration;
pub use self::stores::StoreAdministration;
pub use self::work::WorkAdministration;
pub use self::workflows::WorkflowAdministration;

pub mod access;
mod allowlists;
mod approval_links;
pub mod approvals;
pub mod audit;
pub mod callable;
pub mod credentials;
pub mod descriptors;
pub mod discovery;
pub mod grants;
pub mod invocations;
pub mod models;
pub mod mounts;
pub mod policies;
pub mod principals;
pub mod services;
pub mod sessions;
pub mod spending;
pub mod stores;
pub mod tenants;
pub mod vaults;
pub mod work;
pub mod workflows;

/// The administration of a tenant: principals, keys, vaults, credentials, grants, services, tools, and the records of calls.
pub struct Administration {
    tenants: Arc<dyn Tenants>,
    principals: Arc<dyn Principals>,
    keys: Arc<dyn Keys>,
    vaults: Arc<dyn Vaults>,
    credentials: Arc<dyn Credentials>,
    grants: Arc<dyn Grants>,
    held_grants: Arc<dyn GrantLookup>,
    services: Arc<dyn Services>,
    invocations: Arc<dyn Invocations>,
    tool_sessions: Arc<dyn ToolSessions>,
    spending: Arc<dyn Spending>,
    stops: Stops,
    detached_runs: Runs,
    log: Arc<dyn AuditLog>,
    state: Arc<dyn LedgerState>,
    sealer: Arc<dyn Sealer>,
    clock: Arc<dyn Clock>,
    tokens: Option<Arc<dyn TokenVerifier>>,
    audit: Arc<AuditReader>,
    catalogs: Arc<Catalogs>,
    builtins: Arc<Builtins>,
    ids: Arc<Ids>,
    settings: Arc<Settings>,
}

impl Administration {
    pub(crate) fn new(ports: &Ports, shared: &Shared) -> Self {
        Self {
            tenants: ports.ledger.clone(),
            principals: ports.ledger.clone(),
            keys: ports.ledger.clone(),
            vaults: ports.ledger.clone(),
            credentials: ports.ledger.clone(),
            grants: ports.ledger.clone(),
            held_grants: ports.ledger.clone(),
            services: ports.ledger.clone(),
            invocations: ports.ledger.clone(),
            tool_sessions: ports.ledger.clone(),
            spending: ports.ledger.clone(),
            stops: shared.stops.clone(),
            detached_runs: shared.detached_runs.clone(),
            log: ports.ledger.clone(),
            state: ports.ledger.clone(),
            sealer: Arc::clone(&ports.sealer),
            clock: Arc::clone(&ports.clock),
            tokens: ports.tokens.clone(),
            audit: Arc::clone(&shared.audit),
            catalogs: Arc::clone(&shared.catalogs),
            builtins: Arc::clone(&shared.builtins),
            ids: Arc::clone(&shared.ids),
            settings: Arc::clone(&shared.settings),
        }
    }

    /// How long a grant is valid if nobody says otherwise.
    pub(crate) fn default_grant_lifetime(&self) -> std::time::Duration {
        self.settings.default_grant_lifetime
    }
}
