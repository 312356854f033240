//! Policies over HTTP: the active ones, their versions, changes, and evaluations of drafts and of the past.

use toolgate_api::policies::{ApplyPolicies, CheckPolicies, SimulatePolicies};

use crate::mount::{endpoint, special};
use crate::router::Route;

mod active;
mod changes;
mod files;
mod shown;
mod trials;
mod versions;

/// Every route of this surface.
pub fn routes() -> Vec<Route> {
    vec![
        endpoint(active::show),
        special::<ApplyPolicies, _, _>(changes::apply),
        special::<CheckPolicies, _, _>(trials::check),
        endpoint(changes::promote),
        endpoint(changes::roll_back),
        endpoint(active::schema),
        endpoint(trials::shadow),
        special::<SimulatePolicies, _, _>(trials::simulate),
        endpoint(versions::list),
        endpoint(versions::show),
        endpoint(trials::replay),
    ]
}
