//! The HTTP API as types: one declaration per endpoint with its method, path, parameters, body and reply. The server's
//! routes, the typed client and the OpenAPI documents are derived from these declarations.
//!
//! Depends on the model only; contains no handlers, no IO and no decisions.

use serde_json::Value;

pub mod document;
pub mod endpoint;
pub mod error;
pub mod json_text;
pub mod parameters;
pub mod reading;
pub mod reply;
mod schemas;

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod credentials;
pub mod detached;
pub mod grants;
pub mod invocations;
pub mod master_keys;
pub mod mounts;
pub mod openwop;
pub mod operations;
pub mod policies;
pub mod protected_resource;
pub mod services;
pub mod spending;
pub mod stores;
pub mod tenants;
pub mod tools;
pub mod vaults;
pub mod work;
pub mod workflows;

pub use self::document::{DocumentError, ErrorFormat, Heading, document};
pub use self::endpoint::{Authentication, Endpoint, ErrorResponse, ErrorStatus, Group, Operation, RequestBody};
pub use self::parameters::{Nothing, PathParameter};

/// All endpoints under `/api/v1` and those for operators, in the order of the document's tags.
pub fn groups() -> Vec<Group> {
    let mut groups = vec![
        tenants::group(),
        agents::group(),
        spending::group(),
        vaults::group(),
        credentials::group(),
        grants::group(),
        services::group(),
        mounts::group(),
        stores::group(),
        workflows::group(),
        tools::group(),
        policies::group(),
        approvals::group(),
        invocations::group(),
        detached::group(),
    ];
    groups.extend(work::groups());
    groups.extend([audit::group(), master_keys::group(), protected_resource::group(), operations::group()]);
    groups
}

/// The document of the API under `/api/v1` and for operators.
pub fn toolgate_document(version: &str, codes: &[&str]) -> Result<Value, DocumentError> {
    let heading = Heading {
        title: "Toolgate",
        summary: "The gateway between AI agents and the tools that they call.",
        description: "OpenIntent RFC-0014, the registry and administration. What is not described here is refused, not \
            ignored.",
        version,
        codes,
        errors: ErrorFormat::OpenIntent,
    };
    document(&heading, &groups())
}

/// The document of the API under `/v1`.
pub fn openwop_document(version: &str, codes: &[&str]) -> Result<Value, DocumentError> {
    let heading = Heading {
        title: "Toolgate, OpenWOP",
        summary: "The catalog of tools and the content-free trail of calls.",
        description: "OpenWOP major 1: RFC 0078 (tool catalog) and RFC 0064 (tool hooks). What is not described here is \
            refused, not ignored.",
        version,
        codes,
        errors: ErrorFormat::OpenWop,
    };
    document(&heading, &openwop::groups())
}
