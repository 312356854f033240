//! The settings of a connection, and the meaning of its errors.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::sql::SqlError;

/// Opens the database in an existing file: durable, strict, and overwriting deleted data.
pub(super) fn connect(path: &Path) -> Result<Connection, SqlError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| sql_error(&error))?;
    let statements = "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA trusted_schema = OFF;
         PRAGMA cell_size_check = ON;
         PRAGMA secure_delete = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA mmap_size = 0;
         PRAGMA busy_timeout = 10000;
         PRAGMA cache_size = -8192;
         PRAGMA wal_autocheckpoint = 2000;
         PRAGMA journal_size_limit = 33554432;";
    connection.execute_batch(statements).map_err(|error| sql_error(&error))?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// Sorts an error of SQLite.
pub(super) fn sql_error(error: &rusqlite::Error) -> SqlError {
    match error.sqlite_error() {
        Some(code) if code.code == ErrorCode::ConstraintViolation => SqlError::Taken(error.to_string()),
        Some(code) if matches!(code.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            SqlError::Busy(error.to_string())
        }
        _ => SqlError::Unavailable(error.to_string()),
    }
}
