//! Approvals over HTTP: the inbox, the decisions, the standing approvals, and the stream of their events. Only POST
//! decides.

use toolgate_api::approvals::{AskForExternalCall, OpenApprovalLink};

use crate::mount::{endpoint, responding, special};
use crate::router::Route;

mod ask;
mod decide;
mod links;
mod page;
mod requests;
mod sessions;
pub(crate) mod shown;
mod standing;
mod stream;

/// The routes that need a key.
pub fn routes() -> Vec<Route> {
    vec![
        endpoint(requests::list),
        responding(stream::open),
        special::<AskForExternalCall, _, _>(ask::ask),
        endpoint(requests::show),
        endpoint(decide::decide),
        endpoint(links::redeem),
        endpoint(standing::list),
        endpoint(standing::explain),
        endpoint(standing::show),
        endpoint(standing::revoke),
        endpoint(sessions::show),
        endpoint(sessions::set),
    ]
}

/// The page of one-time links, which needs no key and reveals nothing.
pub fn open_routes() -> Vec<Route> {
    vec![special::<OpenApprovalLink, _, _>(page::show)]
}
