//! OpenWOP, major 1, under `/v1`: the capabilities of this host, the catalog of RFC 0078, and the content-free trail of
//! RFC 0064 as events, of the whole log or of one run. Toolgate runs no workflows; a run groups calls of its callers.

use toolgate_api::openwop::discovery::{ShowCapabilities, ShowOpenWopOpenApi};

use crate::mount::{endpoint, responding, special};
use crate::openapi;
use crate::router::Route;

mod approval_gate;
mod caller;
mod conformance;
mod discovery;
pub mod error;
mod events;
mod reading;
mod runs;
mod sessions;
mod stream;
mod tools;

/// The operator's settings for this protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settings {
    pub tool_list: ToolList,
    /// Whether the conformance endpoints are served.
    pub conformance: bool,
}

/// The form of the tool list: the protocol's texts contradict each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolList {
    /// A bare array, as the conformance suite wants it.
    #[default]
    Array,
    /// An object with `tools`, as the prose of RFC 0078 §B says.
    Object,
}

/// The routes that need a key.
pub fn routes() -> Vec<Route> {
    vec![
        endpoint(tools::list),
        endpoint(tools::show),
        responding(runs::create),
        endpoint(runs::show),
        responding(runs::events),
        endpoint(runs::poll),
        responding(events::list),
        endpoint(sessions::open),
        endpoint(sessions::show),
        endpoint(sessions::close),
    ]
}

/// The routes of the conformance suite, which exist only if the operator enables them.
pub fn conformance_routes() -> Vec<Route> {
    conformance::routes()
}

/// The routes that need no key: they reveal nothing about tenants.
pub fn open_routes() -> Vec<Route> {
    vec![special::<ShowCapabilities, _, _>(discovery::show), special::<ShowOpenWopOpenApi, _, _>(openapi::show_openwop)]
}
