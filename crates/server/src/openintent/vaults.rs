//! Vaults.

use toolgate_api::reply::{Deleted, NextCursor, Revision};
use toolgate_api::vaults::{CreateVault, DeleteVault, DeletedVault, ListVaults, ShowVault, Vault, VaultPage};

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::page;

pub(super) async fn create(request: TypedRequest<CreateVault>) -> Result<Vault, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let vault = app.gate.administration.create_vault(&caller, body.owner_id, body.name).await?;
    Ok(Vault::new(vault, Vec::new()))
}

pub(super) async fn list(request: TypedRequest<ListVaults>) -> Result<VaultPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let page = app.gate.administration.vaults(&caller, page(query.limit, query.cursor)?).await?;
    let vaults = page.items.into_iter().map(|(vault, credentials)| Vault::new(vault, credentials)).collect();
    Ok(VaultPage { vaults, next_cursor: NextCursor(page.next) })
}

pub(super) async fn show(request: TypedRequest<ShowVault>) -> Result<Vault, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let (vault, credentials) = app.gate.administration.vault(&caller, path).await?;
    Ok(Vault::new(vault, credentials))
}

pub(super) async fn delete(request: TypedRequest<DeleteVault>) -> Result<DeletedVault, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    let deleted = app.gate.administration.delete_vault(&caller, path).await?;
    Ok(DeletedVault {
        status: Deleted::Value,
        vault_id: path,
        revoked_credentials: deleted.credentials,
        revoked_grants: deleted.grants,
        revision: Revision(deleted.revision),
    })
}
