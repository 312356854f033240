//! The errors that keep the gate from starting, each with what to do about it.

use std::net::SocketAddr;

use thiserror::Error;
use toolgate_cli::private_file::PrivateFileError;
use toolgate_egress::collector::CollectorError;
use toolgate_gate::Refusal;
use toolgate_server::listener::TlsError;
use toolgate_vault::KeyError;
use toolgate_workspace::WorkspaceError;

use crate::audit_key::AuditKeyError;
use crate::heads_file::HeadsFileError;

/// Why the gate did not start.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    AuditKey(#[from] AuditKeyError),
    /// The audit key is lost.
    #[error(
        "the audit key file {path} is missing, and the log of this ledger is signed by {public_key}; restore the file \
        from a copy"
    )]
    AuditKeyLost {
        /// Where it should be.
        path: String,
        public_key: String,
    },
    /// The audit key is lost, and the ledger does not say which key it was.
    #[error(
        "the audit key file {path} is missing, and {heads} has heads that it signed; restore it from a copy, or also \
        remove {heads} to start a new log"
    )]
    AuditKeyMissing {
        /// Where it should be.
        path: String,
        /// The file with the heads.
        heads: String,
    },
    #[error(transparent)]
    Heads(#[from] HeadsFileError),
    #[error(
        "there is no ledger at {path}, but {heads} has signed heads of one; restore its newest copy, or start once \
        with --accept-ledger-rollback if it is lost"
    )]
    LedgerMissing {
        /// Where it should be.
        path: String,
        /// The file with the heads.
        heads: String,
    },
    /// The ledger is an older or another one.
    #[error(
        "the ledger is older than the signed heads in {heads}: {details}; restore the newest copy of the ledger, or, \
        if there is none, start once with --accept-ledger-rollback and revoke again what was revoked since"
    )]
    LedgerRolledBack {
        /// The file with the heads.
        heads: String,
        /// The tenants, with the expected and the found heads.
        details: String,
    },
    /// The master key is lost.
    #[error(
        "the master key file {path} is missing, and credentials are sealed under {keys}; restore the file from a \
        copy, or, if no copy is left, start once with --accept-lost-master-key and enter the credentials again"
    )]
    MasterKeyLost {
        /// Where it should be.
        path: String,
        /// Which keys seal something.
        keys: String,
    },
    #[error("could not create the data directory {path}: {reason}; pass another one with --data")]
    Data { path: String, reason: std::io::Error },
    /// A collector that cannot be exported to.
    #[error("telemetry: {0}")]
    Collector(#[from] CollectorError),
    #[error("guardian `{name}`: {reason}")]
    Guardian { name: String, reason: String },
    /// Other users can change files that the gate relies on.
    #[error(transparent)]
    Exposed(#[from] PrivateFileError),
    #[error("{0}")]
    Keys(#[from] KeyError),
    #[error("cannot listen on {address}: {reason}; choose another with --listen")]
    Listen { address: SocketAddr, reason: std::io::Error },
    #[error("cannot listen on {path}: {reason}; choose another path with server.unix_socket")]
    Socket { path: String, reason: std::io::Error },
    #[error("server.tls: {0}")]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Gate(#[from] Refusal),
    #[error(transparent)]
    Postgres(#[from] toolgate_ledger::postgres::OpenError),
    #[error(transparent)]
    Sqlite(#[from] toolgate_ledger::sqlite::OpenError),
    /// A mounted server that cannot be started.
    #[error("mount `{name}`: {reason}")]
    Mount { name: String, reason: WorkspaceError },
    /// A mount that cannot be declared as the configuration has it.
    #[error("mounts.file: mount `{name}`: {reason}")]
    Declared { name: String, reason: Refusal },
    #[error("workspace.root: {0}")]
    Workspace(#[from] WorkspaceError),
    /// The system refuses something basic.
    #[error("system error: {0}")]
    System(#[from] std::io::Error),
}
