//! The command line: its commands, the typed client of the HTTP API that they use, and the output for people and programs.
//!
//! Commands are clients of a gate over HTTP. Those that run a gate in this process are declared here, so that there is one
//! command tree, and implemented by the binary ([`LocalCommands`]). This crate knows neither the gate nor its ledger.

pub mod client;
mod clock;
mod command;
pub mod durations;
mod entropy;
pub mod environment;
mod hook;
mod logins;
mod openapi_import;
pub mod output;
pub mod private_file;
mod prompt;
mod siem;
pub mod starter_policies;

pub use self::command::config::{Config, ConfigAction};
pub use self::command::demo::Demo;
pub use self::command::host::{EmbeddedGate, EmbeddedGateOptions, EmbeddedPrincipal};
pub use self::command::local::LocalCommands;
pub use self::command::recover::Recover;
pub use self::command::serve::{Serve, ServeFlags};
pub use self::command::stop::stop_signals;
pub use self::command::values::typed;
pub use self::command::{CommandLine, Failure};
