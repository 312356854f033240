//! The stable codes of refusals. A code never changes its meaning; docs/errors.md explains how to handle each.

/// The kind of a refusal, independent of the protocol: transports map it to their own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A service behind Toolgate failed.
    BadGateway,
    /// The request is not possible in the present state.
    Conflict,
    /// The object existed, and has expired.
    Gone,
    /// The caller is known, but not allowed.
    Forbidden,
    Invalid,
    Internal,
    /// The object does not exist, or the caller may not know of it.
    NotFound,
    TooMany,
    /// The caller did not identify itself.
    Unauthenticated,
    /// A dependency of Toolgate is unavailable; try again later.
    Unavailable,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident, $kind:ident => $name:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)+
        }

        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text that programs rely on.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            pub fn kind(self) -> Kind {
                match self {
                    $(Self::$variant => Kind::$kind,)+
                }
            }
        }
    };
}

codes! {
    /// An id or name that is taken.
    AlreadyExists, Conflict => "ALREADY_EXISTS",
    AgentNotFound, NotFound => "AGENT_NOT_FOUND",
    /// The caller that waited for the decision has disconnected.
    ApprovalCancelled, Forbidden => "APPROVAL_CANCELLED",
    /// Already decided.
    ApprovalDecided, Conflict => "APPROVAL_DECIDED",
    /// An approver denied it.
    ApprovalDenied, Forbidden => "APPROVAL_DENIED",
    /// It can no longer be decided.
    ApprovalEnded, Gone => "APPROVAL_ENDED",
    ApprovalNotFound, NotFound => "APPROVAL_NOT_FOUND",
    /// No decision in time.
    ApprovalTimedOut, Forbidden => "APPROVAL_TIMED_OUT",
    /// An approval is required, and nobody can be asked.
    ApprovalRequired, Forbidden => "APPROVAL_REQUIRED",
    BodyTooLarge, Invalid => "BODY_TOO_LARGE",
    /// A budget has no room for the call.
    BudgetExceeded, TooMany => "BUDGET_EXCEEDED",
    /// The caller disconnected or cancelled its call while a mounted server executed it.
    CallAbandoned, Conflict => "CALL_ABANDONED",
    /// The caller disconnected before its call was admitted.
    CallCancelled, Conflict => "CALL_CANCELLED",
    CoordinatorNotFound, NotFound => "COORDINATOR_NOT_FOUND",
    /// A coordinator that has ended.
    CoordinatorStateInvalid, Conflict => "COORDINATOR_STATE_INVALID",
    /// Sealed material that cannot be unsealed.
    CredentialDamaged, Conflict => "CREDENTIAL_DAMAGED",
    CredentialExpired, Forbidden => "CREDENTIAL_EXPIRED",
    CredentialNotFound, NotFound => "CREDENTIAL_NOT_FOUND",
    CredentialRevoked, Forbidden => "CREDENTIAL_REVOKED",
    /// A delegation with more levels than the source allows.
    DelegationDepthExceeded, Forbidden => "DELEGATION_DEPTH_EXCEEDED",
    DocumentNotFound, NotFound => "DOCUMENT_NOT_FOUND",
    /// The agent's own scopes or its allowlist do not allow the tool.
    Forbidden, Forbidden => "FORBIDDEN",
    /// A delegated constraint that is wider than the source's.
    GrantConstraintExceeded, Forbidden => "GRANT_CONSTRAINT_EXCEEDED",
    /// The call costs more than the grant allows for a single call.
    GrantCostExceeded, Forbidden => "GRANT_COST_EXCEEDED",
    /// A delegated context outside the source's, or a call outside the grant's.
    GrantContextMismatch, Forbidden => "GRANT_CONTEXT_MISMATCH",
    GrantExpired, Forbidden => "GRANT_EXPIRED",
    /// A delegation that would outlive its source.
    GrantExpiryExceeded, Forbidden => "GRANT_EXPIRY_EXCEEDED",
    /// The grant does not allow the host.
    GrantHostDenied, Forbidden => "GRANT_HOST_DENIED",
    /// The grant does not allow calls from this address.
    GrantNetworkDenied, Forbidden => "GRANT_NETWORK_DENIED",
    GrantNotDelegatable, Forbidden => "GRANT_NOT_DELEGATABLE",
    GrantNotFound, NotFound => "GRANT_NOT_FOUND",
    /// Resume of a grant that is not suspended.
    GrantNotSuspended, Conflict => "GRANT_NOT_SUSPENDED",
    /// A parameter breaks a rule of the grant.
    GrantParameterDenied, Forbidden => "GRANT_PARAMETER_DENIED",
    /// The hourly limit of the grant is exhausted.
    GrantRateLimited, TooMany => "GRANT_RATE_LIMITED",
    GrantRevoked, Forbidden => "GRANT_REVOKED",
    /// The grant does not include the scope.
    GrantScopeInsufficient, Forbidden => "GRANT_SCOPE_INSUFFICIENT",
    /// The grant, or one that it was delegated from, is suspended.
    GrantSuspended, Forbidden => "GRANT_SUSPENDED",
    /// A guardrail of a coordinator does not allow it.
    GuardrailDenied, Forbidden => "GUARDRAIL_DENIED",
    GuardianDenied, Forbidden => "GUARDIAN_DENIED",
    /// A guardian returned no usable verdict.
    GuardianFailed, Unavailable => "GUARDIAN_FAILED",
    /// A guardian did not respond in time.
    GuardianTimedOut, Unavailable => "GUARDIAN_TIMED_OUT",
    /// The idempotency key was used for another request.
    IdempotencyConflict, Conflict => "IDEMPOTENCY_CONFLICT",
    /// The call with this idempotency key is still in flight.
    IdempotencyInProgress, Conflict => "IDEMPOTENCY_IN_PROGRESS",
    /// The server behind the tool asks for input that the client of the call cannot be asked for.
    InputRequired, BadGateway => "INPUT_REQUIRED",
    /// Input for a server that would not get it: another one, or through another credential.
    InputStateInvalid, Invalid => "INPUT_STATE_INVALID",
    /// The agent does not hold the access that the task requires.
    InsufficientToolAccess, Forbidden => "INSUFFICIENT_TOOL_ACCESS",
    Internal, Internal => "INTERNAL_ERROR",
    IntentNotFound, NotFound => "INTENT_NOT_FOUND",
    /// An intent that has ended.
    IntentStateInvalid, Conflict => "INTENT_STATE_INVALID",
    /// A cursor that does not come from an earlier response.
    InvalidCursor, Invalid => "INVALID_CURSOR",
    /// A field that is missing, of the wrong type or out of range.
    InvalidField, Invalid => "INVALID_FIELD",
    /// The keys of the issuer of an access token cannot be fetched.
    IssuerUnavailable, Unavailable => "ISSUER_UNAVAILABLE",
    InvocationNotFound, NotFound => "INVOCATION_NOT_FOUND",
    /// A body that is not JSON.
    MalformedJson, Invalid => "MALFORMED_JSON",
    KeyExpired, Unauthenticated => "KEY_EXPIRED",
    KeyNotFound, NotFound => "KEY_NOT_FOUND",
    /// The key provider does not respond, or does not have the key.
    KeyProviderUnavailable, Unavailable => "KEY_PROVIDER_UNAVAILABLE",
    KeyRevoked, Unauthenticated => "KEY_REVOKED",
    /// Another agent has a lease on the scope.
    LeaseHeld, Conflict => "LEASE_HELD",
    /// No such lease, or it has ended.
    LeaseNotFound, NotFound => "LEASE_NOT_FOUND",
    /// The ledger is older than the heads that this gate knows.
    LedgerRolledBack, Unavailable => "LEDGER_ROLLED_BACK",
    /// The ledger does not respond, or accepts no writes.
    LedgerUnavailable, Unavailable => "LEDGER_UNAVAILABLE",
    /// Sealed under a master key that has been retired; seal again.
    MasterKeyRetired, Conflict => "MASTER_KEY_RETIRED",
    /// The path exists, the method does not.
    MethodNotAllowed, Invalid => "METHOD_NOT_ALLOWED",
    /// Definitions with blocking findings, without an override.
    MountBlocked, Conflict => "MOUNT_BLOCKED",
    /// Something else is there than what the person was shown.
    MountChanged, Conflict => "MOUNT_CHANGED",
    /// The server cannot be reached, or does not speak the protocol.
    MountFailed, BadGateway => "MOUNT_FAILED",
    /// No such mount.
    MountNotFound, NotFound => "MOUNT_NOT_FOUND",
    /// The call was cut off; the service may or may not have executed it.
    OutcomeUnknown, Conflict => "OUTCOME_UNKNOWN",
    /// The gate is at its limits, or is shutting down.
    Overloaded, Unavailable => "OVERLOADED",
    /// Parameters that do not match the tool's schema.
    ParametersInvalid, Invalid => "PARAMETERS_INVALID",
    /// The caller lacks a permission.
    PermissionDenied, Forbidden => "PERMISSION_DENIED",
    /// A peer agent returned something that is no response of its protocol, or not one to this caller.
    PeerResponseInvalid, BadGateway => "PEER_RESPONSE_INVALID",
    /// A task or context of a peer agent that does not exist, or that is not the caller's.
    PeerTaskNotFound, NotFound => "PEER_TASK_NOT_FOUND",
    PlanNotFound, NotFound => "PLAN_NOT_FOUND",
    /// A plan that cannot become what was asked for, or that has ended.
    PlanStateInvalid, Conflict => "PLAN_STATE_INVALID",
    /// A policy rule denies it.
    PolicyDenied, Forbidden => "POLICY_DENIED",
    /// The files are not valid policies.
    PolicyInvalid, Invalid => "POLICY_INVALID",
    /// No such version of the policies, or no such rule in it.
    PolicyNotFound, NotFound => "POLICY_NOT_FOUND",
    /// The policies could not be evaluated for the call.
    PolicyUnevaluable, Forbidden => "POLICY_UNEVALUABLE",
    /// The connection to the service failed.
    ProxyError, BadGateway => "PROXY_ERROR",
    /// The rate limit of a key or an address.
    RequestRateLimited, TooMany => "REQUEST_RATE_LIMITED",
    /// The result of a detached call is not stored, or has expired.
    ResultGone, Gone => "RESULT_GONE",
    /// The call with this idempotency key was made, and its result is not stored.
    ResultNotKept, Conflict => "RESULT_NOT_KEPT",
    RouteNotFound, NotFound => "ROUTE_NOT_FOUND",
    /// No such run, or the caller may not see it.
    RunNotFound, NotFound => "RUN_NOT_FOUND",
    /// A scope that the credential does not have.
    ScopeUnavailable, Invalid => "SCOPE_UNAVAILABLE",
    /// The service returned an error.
    ServiceError, BadGateway => "SERVICE_ERROR",
    /// A service that is a mount, which is not changed by its definition.
    ServiceMounted, Conflict => "SERVICE_MOUNTED",
    /// The service is a store, which is not changed by its definition.
    ServiceIsStore, Conflict => "SERVICE_IS_STORE",
    /// A store has as many texts as it may have.
    StoreFull, Conflict => "STORE_FULL",
    StoreNotFound, NotFound => "STORE_NOT_FOUND",
    ServiceNotFound, NotFound => "SERVICE_NOT_FOUND",
    /// No such tool session, or it has ended.
    SessionNotFound, NotFound => "SESSION_NOT_FOUND",
    StandingApprovalNotFound, NotFound => "STANDING_APPROVAL_NOT_FOUND",
    /// The calls of the agent, of its tenant or of the gate are stopped.
    Stopped, Forbidden => "STOPPED",
    TaskNotFound, NotFound => "TASK_NOT_FOUND",
    /// A task that cannot become what was asked for.
    TaskStateInvalid, Conflict => "TASK_STATE_INVALID",
    TenantNotFound, NotFound => "TENANT_NOT_FOUND",
    TokenExpired, Unauthenticated => "TOKEN_EXPIRED",
    /// An access token that is not valid here.
    TokenInvalid, Unauthenticated => "TOKEN_INVALID",
    /// The access token lacks a scope that the operator requires.
    TokenScopeInsufficient, Forbidden => "TOKEN_SCOPE_INSUFFICIENT",
    /// Too many calls wait for a decision.
    TooManyApprovals, TooMany => "TOO_MANY_APPROVALS",
    /// Too many stored detached calls of one agent.
    TooManyDetached, TooMany => "TOO_MANY_DETACHED_CALLS",
    /// Too many invalid keys from one address.
    TooManyAttempts, TooMany => "TOO_MANY_ATTEMPTS",
    /// Too many requests of one key in flight.
    TooManyInFlight, TooMany => "TOO_MANY_IN_FLIGHT",
    /// More mounts of one tenant than may be.
    TooManyMounts, TooMany => "TOO_MANY_MOUNTS",
    TooManyStores, TooMany => "TOO_MANY_STORES",
    /// Too many concurrent policy simulations.
    TooManySimulations, TooMany => "TOO_MANY_SIMULATIONS",
    /// Too many open tool sessions of one principal.
    TooManySessions, TooMany => "TOO_MANY_SESSIONS",
    /// Too many open event streams of one principal.
    TooManyStreams, TooMany => "TOO_MANY_STREAMS",
    /// A name that several tools have.
    ToolAmbiguous, Invalid => "TOOL_AMBIGUOUS",
    /// A tool that lacks something it needs to be called.
    ToolNotExecutable, Conflict => "TOOL_NOT_EXECUTABLE",
    /// The server of the tool has changed it since it was accepted.
    ToolQuarantined, Conflict => "TOOL_QUARANTINED",
    /// No such tool, or the agent may not use it.
    ToolNotFound, NotFound => "TOOL_NOT_FOUND",
    /// The agent's rate limit for this tool is exhausted.
    ToolRateLimited, TooMany => "TOOL_RATE_LIMITED",
    /// No key, or an unknown one.
    Unauthenticated, Unauthenticated => "UNAUTHENTICATED",
    UnknownField, Invalid => "UNKNOWN_FIELD",
    /// A body that is not declared as JSON.
    UnsupportedMediaType, Invalid => "UNSUPPORTED_MEDIA_TYPE",
    VaultNotFound, NotFound => "VAULT_NOT_FOUND",
    /// The state changed concurrently; try again.
    VersionConflict, Conflict => "VERSION_CONFLICT",
    /// A change that does not name the version that it was decided on.
    VersionRequired, Invalid => "VERSION_REQUIRED",
    /// A file that would widen access, without the confirmation that it may.
    WideningNotAllowed, Conflict => "WIDENING_NOT_ALLOWED",
    /// A file with problems.
    WorkflowInvalid, Invalid => "WORKFLOW_INVALID",
    /// No such workflow, or the caller may not see it.
    WorkflowNotFound, NotFound => "WORKFLOW_NOT_FOUND",
    /// As many intents, tasks, leases or other objects of coordinated work as may be kept.
    WorkLimitReached, TooMany => "WORK_LIMIT_REACHED",
}
