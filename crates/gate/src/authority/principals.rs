//! Principals and their keys.

use std::collections::BTreeSet;

use toolgate_model::descriptor::ToolId;
use toolgate_model::external_identity::ExternalIdentity;
use toolgate_model::id::KeyId;
use toolgate_model::key::{ApiKey, KeyDigest};
use toolgate_model::permission::{Permission, PermissionSet};
use toolgate_model::principal::{KeyRecord, Principal, PrincipalChanges, PrincipalId, PrincipalKind, TenantId};
use toolgate_model::text::{Label, Line};
use toolgate_model::time::Timestamp;

use crate::authority::Administration;
use crate::identify::Caller;
use crate::ids::Ids;
use crate::ports::entropy::random;
use crate::ports::ledger::{
    CreateKey, CreatePrincipal, NewKey, Page, PageRequest, RemovePrincipal, Removed, RevokeKey, UpdatePrincipal,
};
use crate::refusal::{Code, Refusal};

/// More labels than any principal needs.
const LABEL_LIMIT: usize = 32;

/// A principal to register.
pub struct NewPrincipal {
    pub id: PrincipalId,
    pub kind: PrincipalKind,
    /// Without permissions it may only use its grants.
    pub attributes: PrincipalChanges,
}

/// A principal that was just stored.
pub struct Stored {
    pub principal: Principal,
    /// Entries of the new allowlist that name no existing tool.
    pub unresolved_tools: Vec<ToolId>,
}

impl Administration {
    /// Registers a principal with at most the permissions and scopes of the caller.
    pub async fn create_principal(&self, caller: &Caller, new: NewPrincipal) -> Result<Stored, Refusal> {
        let command = self.principal_creation(caller, new).await?;
        let (principal, unresolved_tools) = (command.principal.clone(), command.unresolved.clone());
        self.principals.create_principal(command).await?;
        Ok(Stored { principal, unresolved_tools })
    }

    /// The command that registers a principal, if the caller may.
    pub(super) async fn principal_creation(
        &self,
        caller: &Caller,
        new: NewPrincipal,
    ) -> Result<CreatePrincipal, Refusal> {
        caller.require(Permission::ManageAgents)?;
        let NewPrincipal { id, kind, attributes } = new;
        let audit = caller.mandate(self.clock.now());
        let permissions = PermissionSet::of_an_agent();
        let mut principal = Principal::new(audit.tenant().clone(), id, kind, permissions, audit.time());
        require_within_own(caller, &principal, &attributes)?;
        attributes.apply(&mut principal);
        principal.revision = 1;
        caller.require_within_own(&principal.permissions)?;
        if principal.id == PrincipalId::system() {
            let reason = format!("`{}` is reserved for Toolgate; choose another id", principal.id);
            return Err(Refusal::new(Code::AlreadyExists, reason));
        }
        let unresolved = self.unresolved_tools(caller, principal.tool_allowlist.as_ref()).await?;
        Ok(CreatePrincipal { audit, principal, unresolved })
    }

    /// Changes a principal that the caller administers, to at most the permissions and scopes of the caller.
    pub async fn update_principal(
        &self,
        caller: &Caller,
        id: &PrincipalId,
        changes: PrincipalChanges,
    ) -> Result<Stored, Refusal> {
        let command = self.principal_update(caller, id, changes).await?;
        let unresolved_tools = command.unresolved.clone();
        let principal = self.principals.update_principal(command).await?;
        Ok(Stored { principal, unresolved_tools })
    }

    /// The command that changes a principal, if the caller may.
    pub(super) async fn principal_update(
        &self,
        caller: &Caller,
        id: &PrincipalId,
        changes: PrincipalChanges,
    ) -> Result<UpdatePrincipal, Refusal> {
        let before = self.administered(caller, id).await?;
        require_within_own(caller, &before, &changes)?;
        if let Some(what) = changes.denied_to(&before).filter(|_| id == caller.id()) {
            let reason = format!("you cannot {what} yourself; another administrator must");
            return Err(Refusal::new(Code::PermissionDenied, reason));
        }
        let unresolved = self.unresolved_tools(caller, changes.tool_allowlist.iter().flatten().next()).await?;
        Ok(UpdatePrincipal {
            audit: caller.mandate(self.clock.now()),
            id: id.clone(),
            expected_revision: before.revision,
            changes,
            unresolved,
        })
    }

    /// Returns a principal. Callers that manage agents can read any, others only themselves.
    pub async fn principal(&self, caller: &Caller, id: &PrincipalId) -> Result<Principal, Refusal> {
        let missing = || not_found(id);
        if id != caller.id() && !caller.may(Permission::ManageAgents) {
            return Err(missing());
        }
        let found = self.principals.principal(caller.tenant(), id).await?;
        found.filter(|principal| principal.removed_at.is_none()).ok_or_else(missing)
    }

    pub async fn principals(&self, caller: &Caller, page: PageRequest) -> Result<Page<Principal>, Refusal> {
        caller.require(Permission::ManageAgents)?;
        self.principals.principals(caller.tenant(), page).await
    }

    /// Removes a principal with its keys and grants.
    pub async fn remove_principal(&self, caller: &Caller, id: &PrincipalId) -> Result<Removed, Refusal> {
        let command = self.principal_removal(caller, id).await?;
        self.principals.remove_principal(command).await
    }

    /// The command that removes a principal, if the caller may.
    pub(super) async fn principal_removal(
        &self,
        caller: &Caller,
        id: &PrincipalId,
    ) -> Result<RemovePrincipal, Refusal> {
        self.administered(caller, id).await?;
        if id == caller.id() {
            let reason = "you cannot remove yourself; another administrator must";
            return Err(Refusal::new(Code::PermissionDenied, reason));
        }
        Ok(RemovePrincipal { audit: caller.mandate(self.clock.now()), id: id.clone() })
    }

    /// Creates a key for a principal. Only this result contains the key.
    pub async fn create_key(
        &self,
        caller: &Caller,
        principal: &PrincipalId,
        label: Option<Line>,
        expires_at: Option<Timestamp>,
    ) -> Result<(KeyRecord, ApiKey), Refusal> {
        let holder = self.administered(caller, principal).await?;
        caller.require_scopes_within_own(&holder.scopes)?;
        self.require_future(expires_at)?;
        let audit = caller.mandate(self.clock.now());
        let (key, secret) = new_key(&self.ids, principal.clone(), audit.time())?;
        let key = NewKey { label, expires_at, ..key };
        let record = self.keys.create_key(CreateKey { audit, key }).await?;
        Ok((record, secret))
    }

    /// Registers a client certificate, or the subject of access tokens, that identifies a principal as a key does:
    /// revocation or expiry of the key also ends its use.
    pub async fn register_identity(
        &self,
        caller: &Caller,
        principal: &PrincipalId,
        identity: ExternalIdentity,
        label: Option<Line>,
        expires_at: Option<Timestamp>,
    ) -> Result<KeyRecord, Refusal> {
        let holder = self.administered(caller, principal).await?;
        caller.require_scopes_within_own(&holder.scopes)?;
        self.require_future(expires_at)?;
        self.require_own_identities(caller, &identity)?;
        let audit = caller.mandate(self.clock.now());
        let key = stored_key(&self.ids, principal.clone(), audit.time(), identity.digest(), identity.to_string())?;
        let key = NewKey { label, expires_at, identity: Some(identity), ..key };
        self.keys.create_key(CreateKey { audit, key }).await
    }

    /// The CA and the issuers are shared by the whole gate. An administrator of another tenant could otherwise register
    /// a workload of other owners, whose requests would then arrive in that tenant.
    fn require_own_identities(&self, caller: &Caller, identity: &ExternalIdentity) -> Result<(), Refusal> {
        let refused = |path: &str, reason: String| Err(Refusal::new(Code::InvalidField, reason).with("path", path));
        match identity {
            ExternalIdentity::Certificate(_) if *caller.tenant() != TenantId::default_tenant() => {
                let reason = "client certificates identify principals of the tenant `default` only; use a key here";
                refused("certificate", reason.to_owned())
            }
            ExternalIdentity::Certificate(_) => Ok(()),
            ExternalIdentity::TokenSubject(subject) => {
                match self.tokens.as_ref().and_then(|tokens| tokens.tenant_of(&subject.issuer)) {
                    Some(tenant) if tenant == caller.tenant() => Ok(()),
                    // Another tenant's issuer is as unknown as any other.
                    _ => refused(
                        "token_subject.issuer",
                        "this issuer is not trusted in this tenant; the operator adds issuers to the file that \
                        identity.file names, spelled as in `iss` of their tokens"
                            .to_owned(),
                    ),
                }
            }
        }
    }

    pub async fn keys(&self, caller: &Caller, principal: &PrincipalId) -> Result<Vec<KeyRecord>, Refusal> {
        self.principal(caller, principal).await?;
        self.keys.keys(caller.tenant(), principal).await
    }

    pub async fn revoke_key(&self, caller: &Caller, id: KeyId) -> Result<KeyRecord, Refusal> {
        let missing = || Refusal::new(Code::KeyNotFound, format!("there is no key {id}"));
        if !caller.may(Permission::ManageAgents) {
            return Err(missing());
        }
        let key = self.keys.key(caller.tenant(), id).await?.ok_or_else(missing)?;
        if let Some(principal) = self.principals.principal(caller.tenant(), &key.principal).await? {
            caller.require_within_own(&principal.permissions)?;
        }
        self.keys.revoke_key(RevokeKey { audit: caller.mandate(self.clock.now()), id }).await
    }

    /// A principal that the caller administers: a caller that can create its key can act with its permissions.
    async fn administered(&self, caller: &Caller, id: &PrincipalId) -> Result<Principal, Refusal> {
        caller.require(Permission::ManageAgents)?;
        let principal = self.principal(caller, id).await?;
        caller.require_within_own(&principal.permissions)?;
        Ok(principal)
    }
}

/// Refuses to give a principal permissions or scopes that the caller does not have.
fn require_within_own(caller: &Caller, before: &Principal, changes: &PrincipalChanges) -> Result<(), Refusal> {
    if let Some(permissions) = &changes.permissions {
        caller.require_within_own(permissions)?;
    }
    if let Some(scopes) = &changes.scopes {
        caller.require_scopes_within_own(&scopes.beyond(&before.scopes))?;
    }
    match changes.labels.as_ref().filter(|labels| **labels != before.labels) {
        Some(labels) => require_labeller(caller, labels),
        None => Ok(()),
    }
}

/// Policies match labels: a caller that changes a label can exempt a principal from a rule.
fn require_labeller(caller: &Caller, labels: &BTreeSet<Label>) -> Result<(), Refusal> {
    caller.require(Permission::ManagePolicies)?;
    if labels.len() > LABEL_LIMIT {
        let reason = format!("a principal has at most {LABEL_LIMIT} labels");
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "labels"));
    }
    Ok(())
}

/// A new key, as stored and as shown, without label or expiry.
pub(crate) fn new_key(ids: &Ids, principal: PrincipalId, now: Timestamp) -> Result<(NewKey, ApiKey), Refusal> {
    let mut entropy = random()?;
    let secret = ApiKey::from_entropy(&entropy);
    zeroize::Zeroize::zeroize(&mut entropy);
    let secret =
        secret.ok_or_else(|| Refusal::new(Code::Internal, "the random generator returned too few bytes; try again"))?;
    Ok((stored_key(ids, principal, now, secret.digest(), secret.hint())?, secret))
}

pub(crate) fn stored_key(
    ids: &Ids,
    principal: PrincipalId,
    now: Timestamp,
    digest: KeyDigest,
    hint: String,
) -> Result<NewKey, Refusal> {
    Ok(NewKey {
        id: ids.make(now, KeyId::new)?,
        principal,
        digest,
        hint,
        identity: None,
        label: None,
        expires_at: None,
    })
}

fn not_found(id: &PrincipalId) -> Refusal {
    Refusal::new(Code::AgentNotFound, format!("there is no agent `{id}`")).with("agent_id", id)
}
