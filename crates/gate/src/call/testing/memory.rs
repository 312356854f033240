//! The ledger ports in memory, as far as the stages of a call use them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use toolgate_model::a2a::Named;
use toolgate_model::approval::{Approval, SessionName};
use toolgate_model::context::GrantContext;
use toolgate_model::credential::Credential;
use toolgate_model::id::{ApprovalId, CredentialId, GrantId, InvocationId, KeyId, ProcessId, SessionId, VaultId};
use toolgate_model::invocation::Invocation;
use toolgate_model::key::KeyDigest;
use toolgate_model::principal::{KeyRecord, Principal, PrincipalId, Tenant, TenantId};
use toolgate_model::time::Timestamp;
use toolgate_model::work::AgentWork;

use super::{principal, registered};
use crate::ports::ledger::*;
use crate::ports::sealer::{MasterKeyId, SealBinding, SealedMaterial};
use crate::refusal::{Code, Refusal};

/// Implements a port: the given methods, and refusals for those that no stage uses.
macro_rules! port {
    (impl $port:ident for $own:ident { $($given:tt)* } unused { $(fn $name:ident($($argument:ident: $kind:ty),*) -> $output:ty;)* }) => {
        #[async_trait]
        impl $port for $own {
            $($given)*
            $(
                async fn $name(&self, $($argument: $kind),*) -> Result<$output, Refusal> {
                    $(let _ = &$argument;)*
                    Err(Refusal::new(Code::Internal, concat!("no stage should use ", stringify!($name))))
                }
            )*
        }
    };
}

/// Grants and services to call with, and the recorded calls.
#[derive(Default)]
pub(in crate::call) struct Memory {
    pub(in crate::call) held_grants: Mutex<Vec<Arc<HeldGrant>>>,
    /// The work of the agent.
    pub(in crate::call) work: Mutex<Option<Arc<AgentWork>>>,
    /// What is found by its id alone.
    pub(in crate::call) named_work: Mutex<AgentWork>,
    services: Mutex<Vec<RegisteredService>>,
    /// The outcomes of the next admissions; without any, a call is admitted.
    pub(in crate::call) admissions: Mutex<VecDeque<Admission>>,
    pub(in crate::call) admitted: Mutex<Vec<Arc<Admit>>>,
    pub(in crate::call) settled: Mutex<Vec<Arc<Settle>>>,
    pub(in crate::call) denied: Mutex<Vec<RecordDenial>>,
    pub(in crate::call) counted: Mutex<Vec<DenialCount>>,
    /// Whether writes fail.
    pub(in crate::call) down: AtomicBool,
}

/// The ports that the stages under test do not use.
pub(super) struct Unused;

impl Memory {
    pub(super) fn agent(&self) -> Arc<Principal> {
        Arc::new(principal())
    }

    pub(in crate::call) fn register(&self, definition: &Value) {
        self.services.lock().unwrap().push(registered(definition));
    }

    fn require_writable(&self) -> Result<(), Refusal> {
        match self.down.load(Ordering::SeqCst) {
            true => Err(Refusal::new(Code::LedgerUnavailable, "the ledger cannot be written")),
            false => Ok(()),
        }
    }
}

port! {
    impl GrantLookup for Memory {
        async fn held_grants(
            &self,
            _: &TenantId,
            _: &PrincipalId,
            _: Timestamp,
            _: Freshness,
        ) -> Result<Arc<HeldGrants>, Refusal> {
            let held = self.held_grants.lock().unwrap().clone();
            Ok(Arc::new(HeldGrants {
                agent: Some(self.agent()),
                limits: Arc::default(),
                generation: 0,
                held,
                truncated: false,
                work: self.work.lock().unwrap().clone(),
                work_revision: 0,
            }))
        }

        async fn named_work(&self, _: &TenantId, _: &PrincipalId, _: &GrantContext) -> Result<AgentWork, Refusal> {
            Ok(self.named_work.lock().unwrap().clone())
        }

        async fn held_grant(&self, _: &TenantId, grant: GrantId) -> Result<Option<Arc<HeldGrant>>, Refusal> {
            Ok(self.held_grants.lock().unwrap().iter().find(|held_grant| held_grant.grant() == grant).cloned())
        }

        async fn ended_grants(
            &self,
            _: &TenantId,
            _: &PrincipalId,
            _: Timestamp,
        ) -> Result<Vec<Arc<HeldGrant>>, Refusal> {
            Ok(Vec::new())
        }
    }
    unused {
    }
}

port! {
    impl Services for Memory {
        async fn registry(&self, _: &TenantId, _: Timestamp, _: Freshness) -> Result<Arc<Registry>, Refusal> {
            let services = self.services.lock().unwrap().clone();
            Ok(Arc::new(Registry { revision: u64::try_from(services.len()).unwrap(), services }))
        }
    }
    unused {
        fn apply_service(command: ApplyService) -> bool;
        fn remove_service(command: RemoveService) -> u64;
    }
}

port! {
    impl Credentials for Memory {
        async fn sealed_material(
            &self,
            tenant: &TenantId,
            id: CredentialId,
            _: Timestamp,
            _: Freshness,
        ) -> Result<Option<Arc<SealedVersion>>, Refusal> {
            let key = MasterKeyId("first".to_owned());
            let sealed = SealedMaterial { ciphertext: Vec::new(), wrapped_key: Vec::new(), key };
            Ok(Some(Arc::new(SealedVersion { binding: SealBinding::of_credential(tenant, id, 1), sealed })))
        }
    }
    unused {
        fn create_credential(command: CreateCredential) -> ();
        fn credential(tenant: &TenantId, id: CredentialId) -> Option<Credential>;
        fn credentials(tenant: &TenantId, vault: Option<VaultId>, page: PageRequest) -> Page<Credential>;
        fn credentials_naming(tenant: &TenantId, name: &str) -> Vec<Credential>;
        fn rotate_credential(command: RotateCredential) -> Credential;
        fn revoke_credential(command: RevokeCredential) -> Revoked;
        fn destroy_retired(now: Timestamp) -> u64;
    }
}

port! {
    impl Calls for Memory {
        async fn admit(&self, command: Arc<Admit>) -> Result<Admission, Refusal> {
            self.require_writable()?;
            self.admitted.lock().unwrap().push(command);
            Ok(self.admissions.lock().unwrap().pop_front().unwrap_or(Admission::Admitted))
        }

        async fn settle(&self, command: Arc<Settle>) -> Result<(), Refusal> {
            self.require_writable()?;
            self.settled.lock().unwrap().push(command);
            Ok(())
        }

        async fn record_denial(&self, command: RecordDenial) -> Result<(), Refusal> {
            self.require_writable()?;
            self.denied.lock().unwrap().push(command);
            Ok(())
        }

        async fn count_denials(&self, counts: Vec<DenialCount>) -> Result<(), Refusal> {
            self.require_writable()?;
            self.counted.lock().unwrap().extend(counts);
            Ok(())
        }
    }
    unused {
        fn sum_up_denials(before: Timestamp, now: Timestamp) -> u64;
        fn record_decision(command: RecordDecision) -> ();
        fn close_calls(now: Timestamp) -> u64;
    }
}

port! {
    impl ApprovalSessions for Memory {
        async fn session_terms(
            &self,
            _: &TenantId,
            _: &PrincipalId,
            _: &SessionName,
        ) -> Result<SessionTerms, Refusal> {
            Ok(SessionTerms::default())
        }
    }
    unused {
        fn set_session_terms(command: SetSessionTerms) -> ();
    }
}

port! {
    impl Invocations for Unused {
    }
    unused {
        fn report_invocation(command: ReportInvocation) -> ();
        fn invocation(tenant: &TenantId, id: InvocationId) -> Option<Invocation>;
        fn invocations(tenant: &TenantId, filter: InvocationFilter, page: PageRequest) -> Page<Invocation>;
    }
}

port! {
    impl AgentTasks for Unused {} unused {
        fn owned_tasks(query: OwnedTasks) -> Named;
        fn own_tasks(command: OwnTasks) -> ();
    }
}

port! {
    impl DetachedCalls for Unused {
    }
    unused {
        fn detach_call(command: DetachCall) -> Detached;
        fn claim_detached(command: ClaimDetached) -> Vec<ClaimedCall>;
        fn has_overdue_detached(now: Timestamp) -> bool;
        fn release_detached(tenant: &TenantId, id: InvocationId, process: ProcessId) -> ();
        fn detached_call(tenant: &TenantId, id: InvocationId) -> Option<StoredCall>;
        fn detached_calls(tenant: &TenantId, agent: Option<&PrincipalId>, page: PageRequest) -> Page<DetachedCall>;
        fn detached_states(calls: &[InvocationId]) -> Vec<(InvocationId, DetachedState)>;
        fn cancel_detached(tenant: &TenantId, id: InvocationId) -> Option<DetachedCall>;
        fn finish_detached(tenant: &TenantId, id: InvocationId, command: FinishDetached) -> ();
        fn forget_outcome(tenant: &TenantId, id: InvocationId) -> bool;
        fn note_fetched(tenant: &TenantId, id: InvocationId) -> ();
        fn sweep_detached(now: Timestamp, kept_until: Timestamp) -> u64;
    }
}

port! {
    impl ToolSessions for Unused {
    }
    unused {
        fn open_session(command: OpenSession) -> ();
        fn close_session(command: CloseSession) -> ();
        fn session(tenant: &TenantId, id: SessionId) -> Option<ToolSession>;
        fn close_sessions(now: Timestamp) -> u64;
    }
}

port! {
    impl Principals for Unused {
    }
    unused {
        fn create_principal(command: CreatePrincipal) -> ();
        fn principal(tenant: &TenantId, id: &PrincipalId) -> Option<Principal>;
        fn principals(tenant: &TenantId, page: PageRequest) -> Page<Principal>;
        fn update_principal(command: UpdatePrincipal) -> Principal;
        fn remove_principal(command: RemovePrincipal) -> Removed;
    }
}

port! {
    impl Approvals for Unused {
        fn shares_approvals(&self) -> bool {
            false
        }
    }
    unused {
        fn request_approval(command: RequestApproval) -> ();
        fn decide_approval(command: DecideApproval) -> Approval;
        fn end_approval(command: EndApproval) -> Approval;
        fn approval(tenant: &TenantId, id: ApprovalId) -> Option<Approval>;
        fn approvals(tenant: &TenantId, filter: ApprovalFilter, page: PageRequest) -> Page<Approval>;
        fn collect_approvals(process: ProcessId) -> Vec<Approval>;
        fn reap_approvals(process: ProcessId, now: Timestamp) -> u64;
        fn heartbeat(command: Heartbeat) -> ();
        fn is_attended(tenant: &TenantId, now: Timestamp) -> bool;
    }
}

port! {
    impl Keys for Unused {
        fn generation(&self) -> Generation {
            0
        }
    }
    unused {
        fn create_key(command: CreateKey) -> KeyRecord;
        fn keys(tenant: &TenantId, principal: &PrincipalId) -> Vec<KeyRecord>;
        fn key(tenant: &TenantId, id: KeyId) -> Option<KeyRecord>;
        fn revoke_key(command: RevokeKey) -> KeyRecord;
        fn identify(digest: &KeyDigest, now: Timestamp, freshness: Freshness) -> Option<Arc<(Arc<Principal>, KeyRecord)>>;
        fn note_key_use(uses: BTreeMap<KeyId, Timestamp>) -> ();
    }
}

port! {
    impl Spending for Unused {
    }
    unused {
        fn set_tenant_budget(command: SetTenantBudget) -> Tenant;
        fn stop_calls(command: StopCalls) -> StopOutcome;
        fn stopped(tenant: &TenantId, agent: &PrincipalId) -> Option<StoppedBy>;
        fn limits_state() -> u64;
        fn budgets(tenant: &TenantId, agent: Option<&PrincipalId>, now: Timestamp, page: PageRequest) -> Page<BudgetUse>;
    }
}
