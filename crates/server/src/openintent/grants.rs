//! Grants and delegation.

use toolgate_api::grants::{
    CreateGrant, DelegateGrant, Grant, GrantPage, GrantSource, GrantTree, ListGrants, ListGrantsOfAgent, ReadGrant,
    ResumeGrant, RevokeGrant, RevokedGrant, ShowGrant, ShowGrantTree, SuspendGrant,
};
use toolgate_api::reply::{NextCursor, Revision};
use toolgate_gate::authority::grants::{NewDelegation, NewGrant};
use toolgate_gate::ports::ledger::{self, GrantFilter, PageRequest};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::constraint::Constraints;
use toolgate_model::grant::{DelegationDepth, DelegationRequest};
use toolgate_model::id::{CredentialId, GrantId};

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::{id, page};

/// The maximum number of grants of one agent in the SDK's unpaged list.
const UNPAGED_LIMIT: usize = 10_000;

pub(super) async fn create(request: TypedRequest<CreateGrant>) -> Result<Grant, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let new = NewGrant {
        credential: id(&body.credential_id)?,
        agent: body.agent_id,
        granted_by: body.granted_by,
        scopes: body.scopes,
        constraints: Constraints::from_json(&body.constraints).map_err(Refusal::from)?,
        context: body.context.unwrap_or_default(),
        delegatable: body.delegatable.unwrap_or(false),
        delegation_depth: body.delegation_depth.map(DelegationDepth::from_option),
        expires_at: body.expires_at,
        allow_indefinite: body.allow_indefinite,
    };
    let lineage = app.gate.administration.create_grant(&caller, new).await?;
    Ok(Grant::new(&lineage, app.gate.clock.now()))
}

pub(super) async fn delegate(request: TypedRequest<DelegateGrant>) -> Result<Grant, Denied> {
    let TypedRequest { app, caller, path: source, body, .. } = request;
    let invalid = |path: &str, reason: &str| Refusal::new(Code::InvalidField, reason).with("path", path);
    if body.action.as_deref().is_some_and(|action| action != "delegate_grant") {
        return Err(invalid("action", "`action` must be delegate_grant, or be omitted").into());
    }
    if body.source_grant_id.as_ref().is_some_and(|named| *named != source.to_string()) {
        return Err(invalid("source_grant_id", "`source_grant_id` differs from the grant in the path; omit it").into());
    }
    let target = match (body.target_agent_id, body.agent_id) {
        (Some(target), None) | (None, Some(target)) => target,
        (Some(target), Some(agent)) if target == agent => target,
        (Some(_), Some(_)) => {
            return Err(invalid("agent_id", "`agent_id` and `target_agent_id` differ; send one").into());
        }
        (None, None) => return Err(invalid("target_agent_id", "`target_agent_id` is missing").into()),
    };
    let request = DelegationRequest {
        scopes: body.scopes,
        constraints: Constraints::from_json(&body.constraints).map_err(Refusal::from)?,
        context: body.context.unwrap_or_default(),
        delegatable: body.delegatable,
        delegation_depth: body.delegation_depth.map(DelegationDepth::from_option),
        expires_at: body.expires_at,
    };
    let new = NewDelegation { source, target, request, allow_indefinite: body.allow_indefinite };
    let lineage = app.gate.administration.delegate_grant(&caller, new).await?;
    Ok(Grant::new(&lineage, app.gate.clock.now()))
}

pub(super) async fn list(request: TypedRequest<ListGrants>) -> Result<GrantPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let request = page(query.limit, query.cursor)?;
    let now = app.gate.clock.now();
    // A text that is not an id matches no grant.
    let nothing = || GrantPage { grants: Vec::new(), next_cursor: NextCursor(None) };
    let Ok(credential) = query.credential_id.as_deref().map(CredentialId::parse).transpose() else {
        return Ok(nothing());
    };
    let Ok(source_grant) = query.source_grant_id.as_deref().map(GrantId::parse).transpose() else {
        return Ok(nothing());
    };
    let filter = GrantFilter {
        agent: query.agent_id,
        service: query.service,
        credential,
        status: query.status,
        source: query.source.map(|source| match source {
            GrantSource::Delegated => ledger::GrantSource::Delegated,
            GrantSource::Direct => ledger::GrantSource::Direct,
        }),
        source_grant,
        ..GrantFilter::all(now)
    };
    let found = app.gate.administration.grants(&caller, filter, request).await?;
    let grants = found.items.iter().map(|lineage| Grant::new(lineage, now)).collect();
    Ok(GrantPage { grants, next_cursor: NextCursor(found.next) })
}

/// The SDK's list: all grants of an agent, ended ones included, as a bare array.
pub(super) async fn of_agent(request: TypedRequest<ListGrantsOfAgent>) -> Result<Vec<Grant>, Denied> {
    let TypedRequest { app, caller, path: agent, .. } = request;
    let now = app.gate.clock.now();
    let mut grants: Vec<Grant> = Vec::new();
    let mut request = PageRequest::first(PageRequest::LIMIT);
    loop {
        let filter = GrantFilter { agent: Some(agent.clone()), ..GrantFilter::all(now) };
        let found = app.gate.administration.grants(&caller, filter, request.clone()).await?;
        grants.extend(found.items.iter().map(|lineage| Grant::new(lineage, now)));
        match found.next {
            Some(next) if grants.len() < UNPAGED_LIMIT => request.after = Some(next),
            Some(_) => {
                let reason = format!("`{agent}` has more than {UNPAGED_LIMIT} grants; page through GET /api/v1/grants");
                return Err(Refusal::new(Code::InvalidField, reason).into());
            }
            None => return Ok(grants),
        }
    }
}

pub(super) async fn show(request: TypedRequest<ShowGrant>) -> Result<ReadGrant, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let (lineage, revision) = app.gate.administration.grant(&caller, path).await?;
    Ok(ReadGrant { grant: Grant::new(&lineage, app.gate.clock.now()), revision: Revision(revision) })
}

pub(super) async fn tree(request: TypedRequest<ShowGrantTree>) -> Result<GrantTree, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let tree = app.gate.administration.grant_tree(&caller, path).await?;
    Ok(GrantTree::new(&tree.root, &tree.below, tree.truncated, app.gate.clock.now()))
}

pub(super) async fn revoke(request: TypedRequest<RevokeGrant>) -> Result<RevokedGrant, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let (revoked, lineage) = app.gate.administration.revoke_grant(&caller, path, body.reason).await?;
    Ok(RevokedGrant {
        status: lineage.grant().status(app.gate.clock.now()),
        grant_id: path,
        revoked_count: revoked.grants,
        cascade_count: revoked.grants.saturating_sub(1),
        revoked_at: lineage.grant().revoked_at,
        revision: Revision(revoked.revision),
    })
}

pub(super) async fn suspend(request: TypedRequest<SuspendGrant>) -> Result<Grant, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let lineage = app.gate.administration.suspend_grant(&caller, path, body.reason).await?;
    Ok(Grant::new(&lineage, app.gate.clock.now()))
}

pub(super) async fn resume(request: TypedRequest<ResumeGrant>) -> Result<Grant, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let lineage = app.gate.administration.resume_grant(&caller, path).await?;
    Ok(Grant::new(&lineage, app.gate.clock.now()))
}
