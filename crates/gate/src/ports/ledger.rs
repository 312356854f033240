//! ledger port
