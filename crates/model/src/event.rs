//! Events: what happened, in the words of RFC-0014 where it has them, and written so that it can be hashed.

use serde_json::{Value, json};

use crate::approval::ApprovalEvent;
use crate::canonical::ObjectWriter;
use crate::certificate::CertificateName;
use crate::context::{ContextId, GrantContext};
use crate::credential::{AuthType, ServiceName};
use crate::descriptor::ToolId;
use crate::grant::DelegationDepth;
use crate::guard::HookDecision;
use crate::hook::{CALLED, NO_AGENT, RETURNED, ReturnStatus, ToolCalled, ToolReturned, agent_label};
use crate::id::{CredentialId, EventId, GrantId, InvocationId, KeyId, SessionId, VaultId};
use crate::merkle::{Hash, leaf_hash, sha256};
use crate::permission::PermissionSet;
use crate::principal::{PrincipalId, PrincipalKind, TenantId};
use crate::principal_scope::HeldScopes;
use crate::scope::ScopeSet;
use crate::service::ServiceVersion;
use crate::time::Timestamp;

pub use self::ledger_rollback::LedgerRollback;
pub use self::tool_denials::ToolDenials;
pub use self::tool_invoked::ToolInvoked;

mod ledger_rollback;
#[cfg(test)]
mod tests;
mod tool_denials;
mod tool_invoked;

/// What happened, with the data that the protocol names for it.
#[derive(Debug, Clone, PartialEq)]
pub enum EventPayload {
    /// A principal was registered.
    AgentCreated {
        /// Who.
        principal: PrincipalId,
        /// Its kind.
        kind: PrincipalKind,
        /// What it may do.
        permissions: PermissionSet,
    },
    /// A principal was removed; its keys and grants ended with it.
    AgentRemoved {
        /// Who.
        principal: PrincipalId,
        /// How many keys were revoked.
        revoked_keys: u64,
        /// How many grants were revoked.
        revoked_grants: u64,
    },
    /// A principal was changed.
    AgentUpdated {
        /// Who.
        principal: PrincipalId,
        /// The count of its changes, with this one.
        revision: u64,
        /// What of it, by the names of the fields.
        changed: Vec<&'static str>,
        /// The scopes that it holds now, where they changed.
        scopes: Option<HeldScopes>,
        /// What it may do now, where that changed.
        permissions: Option<PermissionSet>,
    },
    /// Something that happened to an approval.
    Approval(Box<ApprovalEvent>),
    /// A call was accepted that outlives its connection.
    CallDetached {
        /// The call.
        invocation: InvocationId,
        /// The tool, as the caller names it.
        tool: String,
        /// SHA-256 of the canonical parameters.
        arguments_hash: String,
    },
    /// RFC-0014.
    CredentialCreated {
        /// Which.
        credential: CredentialId,
        /// Its vault.
        vault: VaultId,
        /// Its service.
        service: ServiceName,
        /// How it authenticates.
        auth_type: AuthType,
    },
    /// RFC-0014.
    CredentialExpired {
        /// Which.
        credential: CredentialId,
    },
    /// RFC-0014.
    CredentialRevoked {
        /// Which.
        credential: CredentialId,
        /// Why.
        reason: String,
        /// How many grants ended with it.
        affected_grants: u64,
    },
    /// RFC-0014.
    CredentialRotated {
        /// Which.
        credential: CredentialId,
        /// By whom.
        rotated_by: PrincipalId,
    },
    /// RFC-0014.
    GrantCreated {
        /// Which.
        grant: GrantId,
        /// On which credential.
        credential: CredentialId,
        /// For whom.
        agent: PrincipalId,
        /// What.
        scopes: ScopeSet,
        /// Until when.
        expires_at: Option<Timestamp>,
    },
    /// RFC-0014.
    GrantDelegated {
        /// The new grant.
        grant: GrantId,
        /// The grant it comes from.
        source: GrantId,
        /// For whom.
        target: PrincipalId,
        /// What.
        scopes: ScopeSet,
        /// How much further.
        delegation_depth: DelegationDepth,
    },
    /// RFC-0014.
    GrantExpired {
        /// Which.
        grant: GrantId,
    },
    /// RFC-0014.
    GrantResumed {
        /// Which.
        grant: GrantId,
    },
    /// RFC-0014.
    GrantRevoked {
        /// Which.
        grant: GrantId,
        /// Why.
        reason: String,
        /// How many grants below it ended with it.
        cascade_count: u64,
    },
    /// RFC-0014.
    GrantSuspended {
        /// Which.
        grant: GrantId,
        /// Why.
        reason: String,
    },
    /// What guardians said at one point.
    HookDecided(Box<HookDecision>),
    /// A key was made.
    KeyCreated {
        /// Its name.
        key: KeyId,
        /// Whose.
        principal: PrincipalId,
        /// Until when.
        expires_at: Option<Timestamp>,
        /// The client certificate that it stands for.
        certificate: Option<CertificateName>,
    },
    /// A key was revoked.
    KeyRevoked {
        /// Its name.
        key: KeyId,
        /// Whose.
        principal: PrincipalId,
    },
    /// Other policies are active.
    PoliciesChanged {
        /// The version that is active now.
        version: u64,
        /// How it came: applied, rolled_back, promoted.
        change: &'static str,
        /// The version or the rule that the change is about.
        subject: Option<String>,
        /// How many rules there are.
        rules: u64,
        /// How many of them are in shadow.
        shadowed: u64,
        /// SHA-256 of the canonical files.
        digest: String,
        /// What is said about it.
        note: Option<String>,
    },
    /// A version of a service's definition was registered or replaced.
    ServiceApplied {
        /// Which service.
        service: ServiceName,
        /// Which version.
        version: ServiceVersion,
        /// How many tools it has.
        tools: u64,
        /// SHA-256 of the canonical definition.
        digest: String,
    },
    /// A version of a service's definition was removed.
    ServiceRemoved {
        /// Which service.
        service: ServiceName,
        /// Which version.
        version: ServiceVersion,
    },
    /// RFC 0064: a call is about to be made.
    AgentToolCalled(Box<ToolCalled>),
    /// RFC 0049: somebody was refused something.
    AuthorizationDecided {
        /// Who.
        principal: PrincipalId,
        /// What was to be done.
        action: &'static str,
        /// To what.
        resource: String,
        /// Why not, as a code.
        reason: String,
    },
    /// A tenant was made.
    TenantCreated {
        /// Which.
        tenant: TenantId,
    },
    /// RFC-0014.
    ToolDenied {
        /// The record of the refused call.
        invocation: InvocationId,
        /// The grant that it would have used, where it came so far.
        grant: Option<GrantId>,
        /// The service, where the tool was found.
        service: Option<ServiceName>,
        /// The tool, or what the caller called it.
        tool: String,
        /// SHA-256 of the canonical parameters.
        arguments_hash: String,
        /// At which stage of the path.
        stage: &'static str,
        /// The code of the refusal.
        error_code: String,
        /// Its sentence.
        reason: String,
        /// The same in the words of RFC 0064.
        returned: Box<ToolReturned>,
    },
    /// Many refused calls of one principal.
    ToolDenialsCounted(Box<ToolDenials>),
    /// RFC 0064: an allowlist names a tool that there is not, so that no call of it will ever be made.
    ToolForbiddenAtLoad {
        /// Whose allowlist; `None` where it is no agent's.
        agent: Option<PrincipalId>,
        /// What it names.
        tool: ToolId,
    },
    /// RFC 0078: a multi-step use of a tool came to its end.
    ToolSessionClosed {
        /// Which.
        session: SessionId,
        /// Of which tool.
        tool: String,
        /// Whether it was brought to its end.
        completed: bool,
    },
    /// RFC 0078: a multi-step use of a tool begins.
    ToolSessionOpened {
        /// Which.
        session: SessionId,
        /// Of which tool.
        tool: String,
    },
    /// RFC-0014. Also for a call that was cut off (`unknown`) and for one that its caller reports.
    ToolInvoked(Box<ToolInvoked>),
    /// A vault was made.
    VaultCreated {
        /// Which.
        vault: VaultId,
        /// Whose.
        owner: PrincipalId,
    },
    /// A vault was deleted with all that it held.
    VaultDeleted {
        /// Which.
        vault: VaultId,
        /// How many credentials ended with it.
        revoked_credentials: u64,
        /// How many grants ended with it.
        revoked_grants: u64,
    },
    /// An operator let the gate start on a ledger that went back behind what was known of it.
    LedgerRollbackAccepted(LedgerRollback),
    /// All material is wrapped by another master key now.
    VaultRekeyed {
        /// The master key in use.
        key: String,
        /// How many data keys were wrapped anew.
        rewrapped: u64,
    },
}

impl EventPayload {
    /// The event's type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AgentCreated { .. } => "agent.created",
            Self::AgentRemoved { .. } => "agent.removed",
            Self::AgentUpdated { .. } => "agent.updated",
            Self::Approval(payload) => payload.name(),
            Self::CallDetached { .. } => "call.detached",
            Self::CredentialCreated { .. } => "credential.created",
            Self::CredentialExpired { .. } => "credential.expired",
            Self::CredentialRevoked { .. } => "credential.revoked",
            Self::CredentialRotated { .. } => "credential.rotated",
            Self::GrantCreated { .. } => "grant.created",
            Self::GrantDelegated { .. } => "grant.delegated",
            Self::GrantExpired { .. } => "grant.expired",
            Self::GrantResumed { .. } => "grant.resumed",
            Self::GrantRevoked { .. } => "grant.revoked",
            Self::GrantSuspended { .. } => "grant.suspended",
            Self::HookDecided(_) => "hook.decided",
            Self::KeyCreated { .. } => "key.created",
            Self::KeyRevoked { .. } => "key.revoked",
            Self::LedgerRollbackAccepted(_) => "ledger.rollback_accepted",
            Self::PoliciesChanged { .. } => "policies.changed",
            Self::ServiceApplied { .. } => "service.applied",
            Self::ServiceRemoved { .. } => "service.removed",
            Self::AgentToolCalled(_) => CALLED,
            Self::AuthorizationDecided { .. } => "authorization.decided",
            Self::TenantCreated { .. } => "tenant.created",
            Self::ToolDenied { .. } => "tool.denied",
            Self::ToolDenialsCounted(_) => "tool.denials.counted",
            Self::ToolForbiddenAtLoad { .. } => RETURNED,
            Self::ToolInvoked(_) => "tool.invoked",
            Self::ToolSessionClosed { .. } => "tool.session.closed",
            Self::ToolSessionOpened { .. } => "tool.session.opened",
            Self::VaultCreated { .. } => "vault.created",
            Self::VaultDeleted { .. } => "vault.deleted",
            Self::VaultRekeyed { .. } => "vault.rekeyed",
        }
    }

    fn data(&self) -> Value {
        match self {
            Self::AgentCreated { principal, kind, permissions } => {
                json!({"agent_id": principal, "kind": kind, "permissions": permissions})
            }
            Self::AgentRemoved { principal, revoked_keys, revoked_grants } => {
                json!({"agent_id": principal, "revoked_keys": revoked_keys, "revoked_grants": revoked_grants})
            }
            Self::AgentUpdated { principal, revision, changed, scopes, permissions } => {
                let mut data = json!({"agent_id": principal, "revision": revision, "changed": changed});
                for (name, value) in [("scopes", json!(scopes)), ("permissions", json!(permissions))] {
                    if let (Value::Object(members), false) = (&mut data, value.is_null()) {
                        members.insert(name.to_owned(), value);
                    }
                }
                data
            }
            Self::Approval(payload) => payload.data(),
            Self::ToolDenialsCounted(denials) => denials.data(),
            Self::HookDecided(decision) => decision.data(),
            Self::PoliciesChanged { version, change, subject, rules, shadowed, digest, note } => json!({
                "version": version, "change": change, "subject": subject, "rules": rules, "shadowed": shadowed,
                "digest": digest, "note": note,
            }),
            Self::CallDetached { invocation, tool, arguments_hash } => {
                json!({"invocation_id": invocation, "tool": tool, "arguments_hash": arguments_hash})
            }
            Self::CredentialCreated { credential, vault, service, auth_type } => {
                json!({"credential_id": credential, "vault_id": vault, "service": service, "auth_type": auth_type})
            }
            Self::CredentialExpired { credential } => json!({"credential_id": credential}),
            Self::CredentialRevoked { credential, reason, affected_grants } => {
                json!({"credential_id": credential, "reason": reason, "affected_grants_count": affected_grants})
            }
            Self::CredentialRotated { credential, rotated_by } => {
                json!({"credential_id": credential, "rotated_by": rotated_by})
            }
            Self::GrantCreated { grant, credential, agent, scopes, expires_at } => json!({
                "grant_id": grant, "credential_id": credential, "agent_id": agent, "scopes": scopes, "expires_at": expires_at
            }),
            Self::GrantDelegated { grant, source, target, scopes, delegation_depth } => json!({
                "grant_id": grant, "source_grant_id": source, "target_agent_id": target, "scopes": scopes,
                "delegation_depth": delegation_depth.to_option()
            }),
            Self::GrantExpired { grant } | Self::GrantResumed { grant } => json!({"grant_id": grant}),
            Self::GrantRevoked { grant, reason, cascade_count } => {
                json!({"grant_id": grant, "reason": reason, "cascade_count": cascade_count})
            }
            Self::GrantSuspended { grant, reason } => json!({"grant_id": grant, "reason": reason}),
            Self::KeyCreated { key, principal, expires_at, certificate } => {
                let mut data = json!({"key_id": key, "principal_id": principal, "expires_at": expires_at});
                if let (Some(certificate), Some(data)) = (certificate, data.as_object_mut()) {
                    data.insert("certificate".to_owned(), json!(certificate.to_string()));
                }
                data
            }
            Self::KeyRevoked { key, principal } => json!({"key_id": key, "principal_id": principal}),
            Self::ServiceApplied { service, version, tools, digest } => {
                json!({"service": service, "version": version, "tools": tools, "digest": digest})
            }
            Self::ServiceRemoved { service, version } => json!({"service": service, "version": version}),
            Self::TenantCreated { tenant } => json!({"tenant_id": tenant}),
            Self::ToolDenied {
                invocation,
                grant,
                service,
                tool,
                arguments_hash,
                stage,
                error_code,
                reason,
                returned,
            } => {
                json!({
                    "invocation_id": invocation, "grant_id": grant, "service": service, "tool": tool,
                    "arguments_hash": arguments_hash, "stage": stage, "error_code": error_code, "reason": reason,
                    "returned": written(|data| returned.write(data))
                })
            }
            // Written by themselves, member by member.
            Self::AgentToolCalled(_) | Self::ToolInvoked(_) => Value::Null,
            Self::AuthorizationDecided { principal, action, resource, reason } => json!({
                "principal": principal, "action": action, "resource": resource, "allowed": false, "reason": reason
            }),
            Self::ToolForbiddenAtLoad { agent, tool } => json!({
                "agentId": agent.as_ref().map_or(NO_AGENT.into(), agent_label),
                // The same reference has the same id wherever and whenever it is met.
                "callId": format!("forbidden:{}", sha256(tool.as_str().as_bytes()).to_hex()),
                "status": ReturnStatus::Forbidden.as_str(), "toolName": tool
            }),
            Self::ToolSessionClosed { session, tool, completed } => json!({
                "sessionId": session, "toolId": tool, "outcome": if *completed { "completed" } else { "failed" }
            }),
            Self::ToolSessionOpened { session, tool } => json!({"sessionId": session, "toolId": tool}),
            Self::VaultCreated { vault, owner } => json!({"vault_id": vault, "owner_id": owner}),
            Self::VaultDeleted { vault, revoked_credentials, revoked_grants } => json!({
                "vault_id": vault, "revoked_credentials": revoked_credentials, "revoked_grants": revoked_grants
            }),
            Self::LedgerRollbackAccepted(rollback) => rollback.data(),
            Self::VaultRekeyed { key, rewrapped } => json!({"key_id": key, "rewrapped": rewrapped}),
        }
    }
}

/// One line of the audit log, before it has its place in the sequence.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Whose log it is in.
    pub tenant: TenantId,
    /// Who did it.
    pub actor: PrincipalId,
    /// The agent it concerns, where it concerns one.
    pub agent: Option<PrincipalId>,
    /// The intent, plan and task it belongs to, where known.
    pub context: GrantContext,
    /// The execution it belongs to, where it belongs to one.
    pub run: Option<String>,
    /// When.
    pub time: Timestamp,
    /// What.
    pub payload: EventPayload,
}

impl Event {
    /// The event as it is hashed, stored and shown: canonical JSON without the sequence, which is its place in the log.
    pub fn to_canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(768);
        let mut event = ObjectWriter::begin(&mut out);
        event.text("actor", self.actor.as_str());
        if let Some(agent) = &self.agent {
            event.text("agent_id", agent.as_str());
        }
        match &self.payload {
            EventPayload::AgentToolCalled(called) => event.object("data", |data| called.write(data)),
            EventPayload::ToolInvoked(invoked) => event.object("data", |data| invoked.write(data)),
            other => event.value("data", &other.data()),
        }
        event.shown("id", self.id);
        let context = &self.context;
        for (name, part) in [
            ("intent_id", context.intent_id.as_ref().map(ContextId::as_str)),
            ("plan_id", context.plan_id.as_ref().map(ContextId::as_str)),
            ("run_id", self.run.as_deref()),
            ("task_id", context.task_id.as_ref().map(ContextId::as_str)),
        ] {
            if let Some(id) = part {
                event.text(name, id);
            }
        }
        event.text("tenant", self.tenant.as_str());
        event.shown("timestamp", self.time);
        event.text("type", self.payload.name());
        event.end();
        out
    }
}

/// What is written member by member, as a value.
fn written(write: impl FnOnce(&mut ObjectWriter<'_>)) -> Value {
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    write(&mut object);
    object.end();
    // INVARIANT: canonical JSON is JSON.
    serde_json::from_slice(&out).unwrap_or_default()
}

/// The leaf of an event's canonical JSON in the log's tree.
pub fn event_leaf(canonical: &[u8]) -> Hash {
    leaf_hash(canonical)
}
