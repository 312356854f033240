//! System tests: the real binary, in processes and homes of its own, spoken to over HTTP and by its command line.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is a test, and its helpers too"
)]

mod a2a;
mod access_tokens;
mod approvals;
mod approvals_terminal;
mod audit_log;
mod bad_input;
mod behind_nginx;
mod call_concurrency;
mod call_crash;
mod calls;
mod cli;
mod client_certificates;
mod configuration;
mod connect;
mod crash;
mod database_down;
mod decisions;
mod disk_full;
mod documentation;
mod drain;
mod egress;
mod faults;
mod first_start;
mod grants_and_delegation;
mod guardians;
mod host;
mod hostile_upstream;
mod keys_and_files;
mod mcp;
mod mcp_mounts;
mod models;
mod mounts;
mod network;
mod node;
mod oauth2;
mod openapi;
mod openintent_sdk;
mod openwop;
mod policies;
mod python_client;
mod rate_limit;
mod rekey;
mod replicas;
mod road;
mod rollback;
mod rolling_restart;
mod routes;
mod secrets;
mod stores;
mod telemetry;
mod tenants_and_keys;
mod tool_hooks;
mod tool_user;
mod unauthorized;
mod vaults_and_credentials;
mod webhook;
mod work;
mod workflows;
mod world;
