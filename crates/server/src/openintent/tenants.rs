//! Tenants.

use toolgate_api::reply::{NextCursor, ShownKey};
use toolgate_api::tenants::{
    CreateTenant, ListTenants, NewAdministrator, NewTenant, ShowTenant, Tenant, TenantPage, UpdateTenant,
};

use super::error::Denied;
use crate::mount::TypedRequest;
use crate::parameters::page;

pub(super) async fn create(request: TypedRequest<CreateTenant>) -> Result<NewTenant, Denied> {
    let TypedRequest { app, caller, body, .. } = request;
    let (tenant, administrator, key) = app.gate.administration.create_tenant(&caller, body.id, body.name).await?;
    let administrator = NewAdministrator { id: administrator, key: ShownKey::new(key.expose()) };
    Ok(NewTenant { tenant: tenant.into(), administrator })
}

pub(super) async fn list(request: TypedRequest<ListTenants>) -> Result<TenantPage, Denied> {
    let TypedRequest { app, caller, query, .. } = request;
    let page = app.gate.administration.tenants(&caller, page(query.limit, query.cursor)?).await?;
    let tenants = page.items.into_iter().map(Tenant::from).collect();
    Ok(TenantPage { tenants, next_cursor: NextCursor(page.next) })
}

pub(super) async fn update(request: TypedRequest<UpdateTenant>) -> Result<Tenant, Denied> {
    let TypedRequest { app, caller, path, body, .. } = request;
    Ok(app.gate.administration.set_tenant_budget(&caller, &path, body.budget).await?.into())
}

pub(super) async fn show(request: TypedRequest<ShowTenant>) -> Result<Tenant, Denied> {
    let TypedRequest { app, caller, path, .. } = request;
    Ok(app.gate.administration.tenant(&caller, &path).await?.into())
}
