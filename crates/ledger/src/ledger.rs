//! A ledger on an engine: the engine, and what one process keeps in memory. The ports are implemented in
//! [`crate::operation`], each with the SQL of its noun.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toolgate_gate::ports::ledger::{
    ActivePolicies, Admission, Admit, EngineStatistics, Generation, HeldGrants, Ledger, Registry, SealedVersion, Settle,
};
use toolgate_gate::refusal::Refusal;
use toolgate_model::id::CredentialId;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, TenantId};

use crate::cache::Cache;
use crate::known_heads::KnownHeads;
use crate::operation::Operation;
use crate::renewed::Renewed;

pub trait Engine: Send + Sync + 'static {
    /// Runs an operation in its own transaction; a success is durable when this returns.
    fn write<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Output, Refusal>> + Send;

    /// Whether [`Engine::generation`] changes with every change of authority by any process.
    const SEES_EVERY_CHANGE: bool;

    /// Whether other processes may work on the same ledger.
    const IS_SHARED: bool;

    /// The generation that a read from now on has reached.
    fn generation(&self) -> Generation;

    /// Admits a call, together with others that come at the same time.
    fn admit(&self, command: Arc<Admit>) -> impl Future<Output = Result<Admission, Refusal>> + Send;

    /// Settles a call, together with others that come at the same time.
    fn settle(&self, command: Arc<Settle>) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Overwrites what was deleted from these tables, wherever the engine still has it; false if it must be tried again
    /// because of a reader.
    fn erase(&self, tables: &[&str]) -> impl Future<Output = Result<bool, Refusal>> + Send;

    /// Returns figures of the engine.
    fn statistics(&self) -> impl Future<Output = Result<EngineStatistics, Refusal>> + Send;

    /// Runs an operation that only reads, on one consistent and current state.
    fn read<O: Operation>(&self, operation: O) -> impl Future<Output = Result<O::Output, Refusal>> + Send;
}

/// A ledger on an engine.
pub struct SqlLedger<E> {
    pub(crate) engine: E,
    pub(crate) callers: Cache<KeyDigest, (Arc<Principal>, KeyRecord)>,
    pub(crate) held_grants: Cache<(TenantId, PrincipalId), HeldGrants>,
    pub(crate) registries: Cache<TenantId, Registry>,
    pub(crate) policies: Cache<TenantId, ActivePolicies>,
    pub(crate) sealed: Cache<CredentialId, SealedVersion>,
    pub(crate) renewed: Renewed,
    pub(crate) heads: KnownHeads,
    /// Whether calls that an earlier process left running were closed.
    pub(crate) inherited_closed: AtomicBool,
    /// Whether sessions that an earlier process left open were closed.
    pub(crate) inherited_sessions_closed: AtomicBool,
    /// Whether approved calls that no process lived to end were ended.
    pub(crate) inherited_reaped: AtomicBool,
    /// Whether items of stores were deleted and not overwritten yet.
    pub(crate) has_deleted: AtomicBool,
}

impl<E: Engine> Ledger for SqlLedger<E> {}

impl<E: Engine> SqlLedger<E> {
    /// The ledger on this engine.
    pub fn new(engine: E) -> Self {
        let exact = E::SEES_EVERY_CHANGE;
        Self {
            engine,
            callers: Cache::new(exact),
            held_grants: Cache::new(exact),
            registries: Cache::new(exact),
            policies: Cache::new(exact),
            sealed: Cache::new(exact),
            renewed: Renewed::default(),
            heads: KnownHeads::default(),
            inherited_closed: AtomicBool::new(!exact),
            inherited_sessions_closed: AtomicBool::new(!exact),
            inherited_reaped: AtomicBool::new(false),
            // What an earlier process has deleted.
            has_deleted: AtomicBool::new(true),
        }
    }
}
