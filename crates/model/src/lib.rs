//! The domain types of Toolgate and their pure rules: narrowing of grants, parameter constraints, canonical JSON,
//! hashing of the audit log.
//!
//! No I/O, no async and no clock: time and randomness are parameters.

pub mod approval;
pub mod arguments;
pub mod audit_export;
pub mod blinding;
pub mod canonical;
pub mod certificate;
pub mod checkpoint;
pub mod client_input;
pub mod connection;
pub mod constraint;
pub mod context;
pub mod continuation;
pub mod credential;
pub mod descriptor;
pub mod event;
pub mod external_identity;
pub mod fetch;
pub mod grant;
pub mod guard;
pub mod hidden_text;
pub mod hook;
pub mod id;
pub mod invocation;
pub mod json_schema;
pub mod key;
pub mod merkle;
pub mod mirrored;
pub mod mount;
pub mod openwop_event;
mod parameter_name;
pub mod permission;
pub mod principal;
pub mod principal_scope;
pub mod rate_limit;
pub mod redaction;
pub mod schema;
pub mod scope;
pub mod secret;
mod secret_name;
pub mod service;
pub mod source_network;
pub mod spending;
pub mod strict_json;
pub mod strict_yaml;
pub mod text;
pub mod time;
pub mod token_subject;
pub mod tool_alias;
pub mod tool_listing;
pub mod trace_context;
pub mod uri_template;
pub mod visible;
pub mod work;
pub mod workflow;
