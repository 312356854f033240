//! credential
