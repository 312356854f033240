//! Credentials.

use toolgate_api::credentials::{
    CreateCredential, CreateCredentialInVault, Credential, CredentialPage, CredentialRequest, ListCredentials,
    MaterialState, RevokeCredential, RevokedCredential, RotateCredential, ShowCredential, VerifiedCredential,
    VerifyCredential,
};
use toolgate_api::reply::{NextCursor, Revision, Revoked};
use toolgate_gate::Caller;
use toolgate_gate::authority::credentials::{self as authority, NewCredential, NewMaterial};
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::credential::material_from_json;

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::{id, page};
use crate::router::App;

pub(super) async fn create(request: TypedRequest<CreateCredential>) -> Result<Credential, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    create_credential(&app, &caller, body).await
}

pub(super) async fn create_in_vault(request: TypedRequest<CreateCredentialInVault>) -> Result<Credential, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    if body.vault_id.as_ref().is_some_and(|named| *named != path.to_string()) {
        let reason = "`vault_id` differs from the vault in the path; omit it";
        return Err(Refusal::new(Code::InvalidField, reason).with("path", "vault_id").into());
    }
    create_credential(&app, &caller, body.in_vault(path)).await
}

async fn create_credential(app: &App, caller: &Caller, body: CredentialRequest) -> Result<Credential, Denied> {
    let new = NewCredential {
        vault: id(&body.vault_id)?,
        service: body.service,
        label: body.label,
        auth_type: body.auth_type,
        scopes_available: body.scopes_available,
        metadata: body.metadata.map(|metadata| metadata.0).unwrap_or_default(),
        material: material_from_json(body.material).map_err(Refusal::from)?,
        expires_at: body.expires_at,
    };
    let credential = app.gate.administration.create_credential(caller, new).await?;
    Ok(Credential::new(credential, app.gate.clock.now()))
}

pub(super) async fn list(request: TypedRequest<ListCredentials>) -> Result<CredentialPage, Denied> {
    let TypedRequest { app, caller, path, query, .. } = request;
    let page = app.gate.administration.credentials(&caller, path, page(query.limit, query.cursor)?).await?;
    let now = app.gate.clock.now();
    let credentials = page.items.into_iter().map(|credential| Credential::new(credential, now)).collect();
    Ok(CredentialPage { credentials, next_cursor: NextCursor(page.next) })
}

pub(super) async fn show(request: TypedRequest<ShowCredential>) -> Result<Credential, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let credential = app.gate.administration.credential(&caller, path).await?;
    Ok(Credential::new(credential, app.gate.clock.now()))
}

pub(super) async fn rotate(request: TypedRequest<RotateCredential>) -> Result<Credential, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let new = NewMaterial {
        material: material_from_json(body.material).map_err(Refusal::from)?,
        metadata: body.metadata.map(|metadata| metadata.0),
        expires_at: body.expires_at,
    };
    let credential = app.gate.administration.rotate_credential(&caller, path, new).await?;
    Ok(Credential::new(credential, app.gate.clock.now()))
}

pub(super) async fn verify(request: TypedRequest<VerifyCredential>) -> Result<VerifiedCredential, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let (credential, material) = app.gate.administration.verify_credential(&caller, path).await?;
    let material = match material {
        authority::MaterialState::Destroyed => MaterialState::Destroyed,
        authority::MaterialState::Intact => MaterialState::Intact,
        authority::MaterialState::None => MaterialState::None,
    };
    let status = credential.status(app.gate.clock.now());
    Ok(VerifiedCredential { credential_id: path, version: credential.version, status, material })
}

pub(super) async fn revoke(request: TypedRequest<RevokeCredential>) -> Result<RevokedCredential, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    let revoked = app.gate.administration.revoke_credential(&caller, path, body.reason).await?;
    Ok(RevokedCredential {
        status: Revoked::Value,
        credential_id: path,
        affected_grants_count: revoked.grants,
        revision: Revision(revoked.revision),
    })
}
