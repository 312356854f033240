//! The stable codes of refusals. A code never changes its meaning; docs/errors.md says for each what to do.

/// How a refusal is to be understood, whatever the protocol: transports map this to their own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something behind Toolgate failed.
    BadGateway,
    /// The same request cannot be carried out in the present state.
    Conflict,
    /// There was such a thing, and its time is over.
    Gone,
    /// The caller is known and may not.
    Forbidden,
    /// The request itself is wrong.
    Invalid,
    /// Toolgate itself is at fault.
    Internal,
    /// There is no such thing, or the caller may not know of it.
    NotFound,
    /// Too much, too fast.
    TooMany,
    /// The caller did not show who it is.
    Unauthenticated,
    /// Something that Toolgate depends on is not there; try again later.
    Unavailable,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident, $kind:ident => $name:literal,)+) => {
        /// What is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)+
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The text that programs rely on.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// How it is to be understood.
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
    /// No such principal.
    AgentNotFound, NotFound => "AGENT_NOT_FOUND",
    /// Whoever waited for the answer is gone.
    ApprovalCancelled, Forbidden => "APPROVAL_CANCELLED",
    /// Somebody answered it before.
    ApprovalDecided, Conflict => "APPROVAL_DECIDED",
    /// A person said no.
    ApprovalDenied, Forbidden => "APPROVAL_DENIED",
    /// It can no longer be answered.
    ApprovalEnded, Gone => "APPROVAL_ENDED",
    /// No such approval.
    ApprovalNotFound, NotFound => "APPROVAL_NOT_FOUND",
    /// Nobody answered in time.
    ApprovalTimedOut, Forbidden => "APPROVAL_TIMED_OUT",
    /// A person must say yes, and nobody can be asked.
    ApprovalRequired, Forbidden => "APPROVAL_REQUIRED",
    /// The body is larger than is read.
    BodyTooLarge, Invalid => "BODY_TOO_LARGE",
    /// The caller disconnected before its call was admitted.
    CallCancelled, Conflict => "CALL_CANCELLED",
    /// Sealed material that does not open.
    CredentialDamaged, Conflict => "CREDENTIAL_DAMAGED",
    /// The credential's time is over.
    CredentialExpired, Forbidden => "CREDENTIAL_EXPIRED",
    /// No such credential.
    CredentialNotFound, NotFound => "CREDENTIAL_NOT_FOUND",
    /// The credential was ended for good.
    CredentialRevoked, Forbidden => "CREDENTIAL_REVOKED",
    /// A delegation with more levels than the source leaves.
    DelegationDepthExceeded, Forbidden => "DELEGATION_DEPTH_EXCEEDED",
    /// The agent's own scopes or its allowlist do not let it use the tool.
    Forbidden, Forbidden => "FORBIDDEN",
    /// A delegated constraint that is wider than the source's.
    GrantConstraintExceeded, Forbidden => "GRANT_CONSTRAINT_EXCEEDED",
    /// The call costs more than the grant allows for one.
    GrantCostExceeded, Forbidden => "GRANT_COST_EXCEEDED",
    /// A delegated context outside the source's, or a call outside the grant's.
    GrantContextMismatch, Forbidden => "GRANT_CONTEXT_MISMATCH",
    /// The grant's time is over.
    GrantExpired, Forbidden => "GRANT_EXPIRED",
    /// A delegation that would outlive its source.
    GrantExpiryExceeded, Forbidden => "GRANT_EXPIRY_EXCEEDED",
    /// The grant does not allow the host.
    GrantHostDenied, Forbidden => "GRANT_HOST_DENIED",
    /// The grant does not allow calls from this address.
    GrantNetworkDenied, Forbidden => "GRANT_NETWORK_DENIED",
    /// The grant may not be passed on.
    GrantNotDelegatable, Forbidden => "GRANT_NOT_DELEGATABLE",
    /// No such grant.
    GrantNotFound, NotFound => "GRANT_NOT_FOUND",
    /// Resume of a grant that is not suspended.
    GrantNotSuspended, Conflict => "GRANT_NOT_SUSPENDED",
    /// A parameter breaks a rule of the grant.
    GrantParameterDenied, Forbidden => "GRANT_PARAMETER_DENIED",
    /// The grant's calls of this hour are used up.
    GrantRateLimited, TooMany => "GRANT_RATE_LIMITED",
    /// The grant was taken back.
    GrantRevoked, Forbidden => "GRANT_REVOKED",
    /// The grant does not hold the scope.
    GrantScopeInsufficient, Forbidden => "GRANT_SCOPE_INSUFFICIENT",
    /// The grant, or one above it, is paused.
    GrantSuspended, Forbidden => "GRANT_SUSPENDED",
    /// A guardian says no.
    GuardianDenied, Forbidden => "GUARDIAN_DENIED",
    /// A guardian did not give a verdict that can be used.
    GuardianFailed, Unavailable => "GUARDIAN_FAILED",
    /// A guardian did not answer in time.
    GuardianTimedOut, Unavailable => "GUARDIAN_TIMED_OUT",
    /// The idempotency key was used for another request.
    IdempotencyConflict, Conflict => "IDEMPOTENCY_CONFLICT",
    /// The call with this idempotency key is still in flight.
    IdempotencyInProgress, Conflict => "IDEMPOTENCY_IN_PROGRESS",
    /// A fault of Toolgate.
    Internal, Internal => "INTERNAL_ERROR",
    /// A cursor that no answer gave.
    InvalidCursor, Invalid => "INVALID_CURSOR",
    /// A field that is missing, of the wrong type or out of range.
    InvalidField, Invalid => "INVALID_FIELD",
    /// No such invocation.
    InvocationNotFound, NotFound => "INVOCATION_NOT_FOUND",
    /// A body that is not JSON.
    MalformedJson, Invalid => "MALFORMED_JSON",
    /// The key's time is over.
    KeyExpired, Unauthenticated => "KEY_EXPIRED",
    /// No such key.
    KeyNotFound, NotFound => "KEY_NOT_FOUND",
    /// The key provider does not answer, or lacks the key.
    KeyProviderUnavailable, Unavailable => "KEY_PROVIDER_UNAVAILABLE",
    /// The key was revoked.
    KeyRevoked, Unauthenticated => "KEY_REVOKED",
    /// The ledger went back behind what this gate knows of it.
    LedgerRolledBack, Unavailable => "LEDGER_ROLLED_BACK",
    /// The ledger does not take writes or does not answer.
    LedgerUnavailable, Unavailable => "LEDGER_UNAVAILABLE",
    /// Sealed under a master key that was retired meanwhile; seal again.
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
    /// The call was cut off; the service may have carried it out or not.
    OutcomeUnknown, Conflict => "OUTCOME_UNKNOWN",
    /// The gate has as much to do as it takes on, or is about to stop.
    Overloaded, Unavailable => "OVERLOADED",
    /// Parameters that the tool does not take.
    ParametersInvalid, Invalid => "PARAMETERS_INVALID",
    /// The caller lacks a permission.
    PermissionDenied, Forbidden => "PERMISSION_DENIED",
    /// A rule of the policies says no.
    PolicyDenied, Forbidden => "POLICY_DENIED",
    /// The files are no policies that could be applied.
    PolicyInvalid, Invalid => "POLICY_INVALID",
    /// No such version of the policies, or no such rule in it.
    PolicyNotFound, NotFound => "POLICY_NOT_FOUND",
    /// The policies could not be evaluated for the call.
    PolicyUnevaluable, Forbidden => "POLICY_UNEVALUABLE",
    /// The way to the service failed.
    ProxyError, BadGateway => "PROXY_ERROR",
    /// More requests than one key or one address may send.
    RequestRateLimited, TooMany => "REQUEST_RATE_LIMITED",
    /// The result of a detached call is not kept, or not any more.
    ResultGone, Gone => "RESULT_GONE",
    /// The call of this idempotency key was made, and its result is not kept.
    ResultNotKept, Conflict => "RESULT_NOT_KEPT",
    /// No such path.
    RouteNotFound, NotFound => "ROUTE_NOT_FOUND",
    /// No such run, or none that the caller may see.
    RunNotFound, NotFound => "RUN_NOT_FOUND",
    /// A scope that the credential does not have.
    ScopeUnavailable, Invalid => "SCOPE_UNAVAILABLE",
    /// The service answered with an error.
    ServiceError, BadGateway => "SERVICE_ERROR",
    /// A service that is a mount, which is not changed by its definition.
    ServiceMounted, Conflict => "SERVICE_MOUNTED",
    /// No such service in the registry.
    ServiceNotFound, NotFound => "SERVICE_NOT_FOUND",
    /// No such tool session, or it has come to its end.
    SessionNotFound, NotFound => "SESSION_NOT_FOUND",
    /// No such standing approval.
    StandingApprovalNotFound, NotFound => "STANDING_APPROVAL_NOT_FOUND",
    /// No such tenant.
    TenantNotFound, NotFound => "TENANT_NOT_FOUND",
    /// More calls wait for an answer than may.
    TooManyApprovals, TooMany => "TOO_MANY_APPROVALS",
    /// More detached calls of one agent are stored than may be.
    TooManyDetached, TooMany => "TOO_MANY_DETACHED_CALLS",
    /// Too many wrong keys from one address.
    TooManyAttempts, TooMany => "TOO_MANY_ATTEMPTS",
    /// More requests of one key than may be in flight.
    TooManyInFlight, TooMany => "TOO_MANY_IN_FLIGHT",
    /// More mounts of one tenant than may be.
    TooManyMounts, TooMany => "TOO_MANY_MOUNTS",
    /// More policy simulations than may run at a time.
    TooManySimulations, TooMany => "TOO_MANY_SIMULATIONS",
    /// More tool sessions of one principal than may be open.
    TooManySessions, TooMany => "TOO_MANY_SESSIONS",
    /// More streams of events of one principal than may be open.
    TooManyStreams, TooMany => "TOO_MANY_STREAMS",
    /// A name that several tools have.
    ToolAmbiguous, Invalid => "TOOL_AMBIGUOUS",
    /// A tool that lacks something to be called.
    ToolNotExecutable, Conflict => "TOOL_NOT_EXECUTABLE",
    /// The server of the tool has changed it since it was accepted.
    ToolQuarantined, Conflict => "TOOL_QUARANTINED",
    /// No such tool, or none that the agent may use.
    ToolNotFound, NotFound => "TOOL_NOT_FOUND",
    /// The agent's calls of this tool are used up for now.
    ToolRateLimited, TooMany => "TOOL_RATE_LIMITED",
    /// No key, or one that is unknown.
    Unauthenticated, Unauthenticated => "UNAUTHENTICATED",
    /// A field that is not known.
    UnknownField, Invalid => "UNKNOWN_FIELD",
    /// A body that is not declared as JSON.
    UnsupportedMediaType, Invalid => "UNSUPPORTED_MEDIA_TYPE",
    /// No such vault.
    VaultNotFound, NotFound => "VAULT_NOT_FOUND",
    /// The state changed while it was being changed; try again.
    VersionConflict, Conflict => "VERSION_CONFLICT",
}
