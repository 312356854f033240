//! Principals and their keys.

use toolgate_api::agents::{
    Agent, AgentPage, CreateAgent, CreateKey, KeyRecord, Keys, ListAgents, ListKeys, NewKey, RemoveAgent, RemovedAgent,
    RevokeKey, RevokedKey, ShowAgent, StoredAgent, UpdateAgent, Whoami,
};
use toolgate_api::reply::{NextCursor, Removed, Revision, Revoked, ShownKey};
use toolgate_gate::authority::principals::{NewPrincipal, Stored};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::external_identity::ExternalIdentity;
use toolgate_model::principal::PrincipalKind;

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::page;

pub(super) async fn whoami(request: TypedRequest<Whoami>) -> Result<Agent, Denied> {
    Ok(request.caller.principal().clone().into())
}

pub(super) async fn create(request: TypedRequest<CreateAgent>) -> Result<StoredAgent, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let (id, kind) = (body.id.clone(), body.kind.unwrap_or(PrincipalKind::Agent));
    let new = NewPrincipal { id, kind, attributes: body.into() };
    Ok(stored(app.gate.administration.create_principal(&caller, new).await?))
}

pub(super) async fn update(request: TypedRequest<UpdateAgent>) -> Result<StoredAgent, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    Ok(stored(app.gate.administration.update_principal(&caller, &path, body.into()).await?))
}

pub(super) async fn list(request: TypedRequest<ListAgents>) -> Result<AgentPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let page = app.gate.administration.principals(&caller, page(query.limit, query.cursor)?).await?;
    let agents = page.items.into_iter().map(Agent::from).collect();
    Ok(AgentPage { agents, next_cursor: NextCursor(page.next) })
}

pub(super) async fn show(request: TypedRequest<ShowAgent>) -> Result<Agent, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(app.gate.administration.principal(&caller, &path).await?.into())
}

pub(super) async fn remove(request: TypedRequest<RemoveAgent>) -> Result<RemovedAgent, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let removed = app.gate.administration.remove_principal(&caller, &path).await?;
    Ok(RemovedAgent {
        status: Removed::Value,
        agent_id: path,
        revoked_keys: removed.keys,
        revoked_grants: removed.grants,
        revision: Revision(removed.revision),
    })
}

pub(super) async fn create_key(request: TypedRequest<CreateKey>) -> Result<NewKey, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let identity = match (body.certificate, body.token_subject) {
        (Some(_), Some(_)) => {
            let reason = "a key represents a certificate or a token subject; create one key for each";
            return Err(Refusal::new(Code::InvalidField, reason).with("path", "token_subject").into());
        }
        (Some(certificate), None) => Some(ExternalIdentity::Certificate(certificate)),
        (None, subject) => subject.map(ExternalIdentity::TokenSubject),
    };
    match identity {
        // The certificate, or the token of the issuer, is the proof: there is nothing to return.
        Some(identity) => {
            let registered =
                app.gate.administration.register_identity(&caller, &path, identity, body.label, body.expires_at);
            Ok(NewKey { record: registered.await?.into(), key: None })
        }
        None => {
            let (record, key) = app.gate.administration.create_key(&caller, &path, body.label, body.expires_at).await?;
            Ok(NewKey { record: record.into(), key: Some(ShownKey::new(key.expose())) })
        }
    }
}

pub(super) async fn list_keys(request: TypedRequest<ListKeys>) -> Result<Keys, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let keys = app.gate.administration.keys(&caller, &path).await?;
    Ok(Keys { keys: keys.into_iter().map(KeyRecord::from).collect() })
}

pub(super) async fn revoke_key(request: TypedRequest<RevokeKey>) -> Result<RevokedKey, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let record = app.gate.administration.revoke_key(&caller, path).await?;
    Ok(RevokedKey { record: record.into(), status: Revoked::Value })
}

fn stored(stored: Stored) -> StoredAgent {
    StoredAgent { agent: stored.principal.into(), unresolved_tools: stored.unresolved_tools }
}
