//! The HTTP API as types: one declaration per endpoint with its method, path, parameters, body and reply. The server's
//! routes, the typed client and the OpenAPI documents are derived from these declarations.
//!
//! Depends on the model only; contains no handlers, no IO and no decisions.

pub mod document;
pub mod endpoint;
pub mod json_text;
pub mod parameters;
pub mod reading;
pub mod reply;
mod schemas;

pub mod agents;
pub mod audit;
pub mod credentials;
pub mod detached;
pub mod grants;
pub mod invocations;
pub mod master_keys;
pub mod operations;
pub mod policies;
pub mod services;
pub mod tenants;
pub mod tools;
pub mod vaults;

pub use self::document::{DocumentError, document};
pub use self::endpoint::{Authentication, Endpoint, ErrorStatus, Group, Operation, RequestBody};
pub use self::parameters::{Nothing, PathParameter};

/// All endpoints under `/api/v1` and those for operators, in the order of the document's tags.
pub fn groups() -> Vec<Group> {
    vec![
        tenants::group(),
        agents::group(),
        vaults::group(),
        credentials::group(),
        grants::group(),
        services::group(),
        tools::group(),
        policies::group(),
        invocations::group(),
        detached::group(),
        audit::group(),
        master_keys::group(),
        operations::group(),
    ]
}
