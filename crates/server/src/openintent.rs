//! OpenIntent RFC-0014 under `/api/v1`: vaults, credentials, grants and delegation in the RFC's shapes and in those of its
//! Python SDK, and the administration that both leave open (agents, keys, tenants, the audit log).

use toolgate_api::audit::ExportLog;
use toolgate_api::services::{CreateService, ReplaceService};
use toolgate_api::tools::{ExplainCall, InvokeTool};
use toolgate_api::workflows::ApplyWorkflow;

use crate::mount::{endpoint, responding, special};
use crate::router::Route;

mod agents;
mod audit;
mod credentials;
mod detached;
pub mod error;
mod grants;
mod invocations;
mod invoke;
mod master_keys;
mod mounts;
pub(crate) mod progress;
mod services;
mod spending;
mod stores;
mod tenants;
mod tools;
mod vaults;
mod why;
mod work;
mod workflows;

/// Every route of this protocol.
pub fn routes() -> Vec<Route> {
    let mut routes = vec![
        endpoint(tenants::create),
        endpoint(tenants::list),
        endpoint(tenants::show),
        endpoint(tenants::update),
        endpoint(spending::list),
        endpoint(spending::stop),
        endpoint(spending::resume),
        endpoint(agents::whoami),
        endpoint(agents::create),
        endpoint(agents::list),
        endpoint(agents::show),
        endpoint(agents::update),
        endpoint(agents::remove),
        endpoint(agents::create_key),
        endpoint(agents::list_keys),
        endpoint(grants::of_agent),
        endpoint(agents::revoke_key),
        endpoint(vaults::create),
        endpoint(vaults::list),
        endpoint(vaults::show),
        endpoint(vaults::delete),
        endpoint(credentials::create_in_vault),
        endpoint(credentials::list),
        endpoint(credentials::create),
        endpoint(credentials::show),
        endpoint(credentials::revoke),
        endpoint(credentials::rotate),
        endpoint(credentials::verify),
        endpoint(grants::create),
        endpoint(grants::list),
        endpoint(grants::show),
        endpoint(grants::revoke),
        endpoint(grants::tree),
        endpoint(grants::delegate),
        endpoint(grants::suspend),
        endpoint(grants::resume),
        special::<CreateService, _, _>(services::create),
        endpoint(services::list),
        endpoint(services::show),
        special::<ReplaceService, _, _>(services::replace),
        endpoint(services::remove),
        special::<ApplyWorkflow, _, _>(workflows::apply),
        endpoint(workflows::export),
        endpoint(mounts::create),
        endpoint(mounts::create_peer),
        endpoint(mounts::list),
        endpoint(mounts::show),
        endpoint(mounts::remove),
        endpoint(mounts::check),
        endpoint(mounts::review),
        endpoint(mounts::accept),
        endpoint(mounts::reject),
        endpoint(stores::create_memory),
        endpoint(stores::list_memories),
        endpoint(stores::show_memory),
        endpoint(stores::delete_memory),
        endpoint(stores::forget),
        endpoint(stores::create_collection),
        endpoint(stores::list_collections),
        endpoint(stores::show_collection),
        endpoint(stores::delete_collection),
        endpoint(stores::ingest),
        endpoint(stores::list_documents),
        endpoint(stores::remove_document),
        endpoint(tools::list),
        endpoint(tools::granted),
        special::<ExplainCall, _, _>(why::explain),
        endpoint(tools::of_service),
        special::<InvokeTool, _, _>(invoke::invoke),
        endpoint(invocations::report),
        endpoint(invocations::list),
        endpoint(invocations::show),
        responding(detached::result),
        endpoint(detached::forget),
        responding(detached::cancel),
        endpoint(detached::list),
        endpoint(invocations::of_grant),
        endpoint(invocations::of_intent),
        endpoint(invocations::of_task),
        endpoint(audit::events),
        endpoint(audit::head),
        endpoint(audit::proof),
        special::<ExportLog, _, _>(audit::export),
        endpoint(master_keys::status),
        endpoint(master_keys::rekey),
    ];
    routes.extend(work::routes());
    routes
}
