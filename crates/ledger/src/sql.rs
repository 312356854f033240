//! The values of statements and rows, the same for both engines, and their errors.

use std::borrow::Cow;

use thiserror::Error;
use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::id::IdText;
use toolgate_model::time::Timestamp;

/// One parameter or column. Parameters borrow their data.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value<'a> {
    Blob(Cow<'a, [u8]>),
    Id(IdText),
    /// Every number and time in the schema is one.
    Integer(i64),
    Null,
    /// Every JSON in the schema is one.
    Text(Cow<'a, str>),
}

/// A statement that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SqlError {
    /// Another transaction was in the way; running this one again may succeed.
    #[error("conflict with another transaction: {0}")]
    Busy(String),
    /// A row that this program cannot have written.
    #[error("the ledger holds a row that cannot be read: {0}")]
    Corrupt(String),
    /// A unique key that is taken.
    #[error("taken: {0}")]
    Taken(String),
    /// The database does not respond or rejects the write.
    #[error("{0}")]
    Unavailable(String),
}

/// Why an operation did not happen: refused by the domain, or failed in the database.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Sql(#[from] SqlError),
}

impl From<toolgate_gate::ports::entropy::EntropyError> for Failure {
    fn from(error: toolgate_gate::ports::entropy::EntropyError) -> Self {
        Self::Refused(error.into())
    }
}

impl Failure {
    /// The message for the caller. The database's own message goes to the log of the gate, not to the caller.
    pub fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Sql(SqlError::Corrupt(reason)) => {
                tracing::error!(%reason, "the ledger holds a row that cannot be read");
                Refusal::new(Code::Internal, "the ledger holds a row that cannot be read; see the gate's log")
            }
            Self::Sql(SqlError::Taken(reason)) => {
                tracing::warn!(%reason, "a unique constraint was violated");
                Refusal::new(Code::VersionConflict, "a concurrent change conflicts with this one; try again")
            }
            Self::Sql(SqlError::Busy(reason) | SqlError::Unavailable(reason)) => {
                crate::outage::failed(&reason);
                unavailable()
            }
        }
    }
}

/// The refusal for everything that the database cannot do just now.
pub fn unavailable() -> Refusal {
    Refusal::new(Code::LedgerUnavailable, "the ledger is not available, and nothing was changed; try again later")
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row(Vec<Value<'static>>);

impl Row {
    pub fn new(columns: Vec<Value<'static>>) -> Self {
        Self(columns)
    }

    /// Fails if it is NULL.
    pub fn text(&self, column: usize) -> Result<&str, SqlError> {
        self.optional_text(column)?.ok_or_else(|| self.unexpected(column))
    }

    /// A text or nothing.
    pub fn optional_text(&self, column: usize) -> Result<Option<&str>, SqlError> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.unexpected(column)),
        }
    }

    /// Fails if it is NULL.
    pub fn integer(&self, column: usize) -> Result<i64, SqlError> {
        self.optional_integer(column)?.ok_or_else(|| self.unexpected(column))
    }

    /// A number or nothing.
    pub fn optional_integer(&self, column: usize) -> Result<Option<i64>, SqlError> {
        match self.0.get(column) {
            Some(Value::Integer(integer)) => Ok(Some(*integer)),
            Some(Value::Null) => Ok(None),
            _ => Err(self.unexpected(column)),
        }
    }

    /// A number that is not negative, in the type that is wanted.
    pub fn count<T: TryFrom<i64>>(&self, column: usize) -> Result<T, SqlError> {
        T::try_from(self.integer(column)?).map_err(|_| self.unexpected(column))
    }

    /// Bytes that are there.
    pub fn blob(&self, column: usize) -> Result<&[u8], SqlError> {
        match self.0.get(column) {
            Some(Value::Blob(bytes)) => Ok(bytes),
            _ => Err(self.unexpected(column)),
        }
    }

    /// Fails if it is NULL.
    pub fn time(&self, column: usize) -> Result<Timestamp, SqlError> {
        self.optional_time(column)?.ok_or_else(|| self.unexpected(column))
    }

    /// A time or nothing.
    pub fn optional_time(&self, column: usize) -> Result<Option<Timestamp>, SqlError> {
        self.optional_integer(column)?.map(Timestamp::from_millis).transpose().map_err(|_| self.unexpected(column))
    }

    /// A text read as something else.
    pub fn parsed<T, E>(&self, column: usize, read: impl FnOnce(&str) -> Result<T, E>) -> Result<T, SqlError> {
        read(self.text(column)?).map_err(|_| self.unexpected(column))
    }

    /// A text or nothing, read as something else.
    pub fn optional_parsed<T, E>(
        &self,
        column: usize,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SqlError> {
        self.optional_text(column)?.map(read).transpose().map_err(|_| self.unexpected(column))
    }

    /// A text of JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: usize) -> Result<T, SqlError> {
        self.parsed(column, |text| serde_json::from_str(text))
    }

    fn unexpected(&self, column: usize) -> SqlError {
        // The first column is an id in every statement: it identifies the row without showing its contents.
        let row = match self.0.first() {
            Some(Value::Text(id)) => id.clone().into_owned(),
            Some(Value::Integer(id)) => id.to_string(),
            _ => "a row".to_owned(),
        };
        SqlError::Corrupt(format!("column {column} of {row}"))
    }
}

macro_rules! text_values {
    ($($name:ty),+ $(,)?) => {$(
        impl<'a> From<&'a $name> for Value<'a> {
            fn from(name: &'a $name) -> Self {
                Self::Text(Cow::Borrowed(name.as_str()))
            }
        }
    )+};
}

text_values!(
    toolgate_model::context::ContextId,
    toolgate_model::credential::ServiceName,
    toolgate_model::principal::PrincipalId,
    toolgate_model::principal::TenantId,
    toolgate_model::service::ServiceVersion,
    toolgate_model::text::Line,
);

macro_rules! id_values {
    ($($name:ty),+ $(,)?) => {$(
        impl From<&$name> for Value<'_> {
            fn from(id: &$name) -> Self {
                Self::from(*id)
            }
        }
        impl From<$name> for Value<'_> {
            fn from(id: $name) -> Self {
                Self::Id(IdText::from(id))
            }
        }
    )+};
}

id_values!(
    toolgate_model::id::ApprovalId,
    toolgate_model::id::CoordinatorId,
    toolgate_model::id::CostId,
    toolgate_model::id::CredentialId,
    toolgate_model::id::EventId,
    toolgate_model::id::GrantId,
    toolgate_model::id::IntentId,
    toolgate_model::id::InvocationId,
    toolgate_model::id::ItemId,
    toolgate_model::id::KeyId,
    toolgate_model::id::LeaseId,
    toolgate_model::id::PlanId,
    toolgate_model::id::ProcessId,
    toolgate_model::id::RevisionId,
    toolgate_model::id::SessionId,
    toolgate_model::id::StandingApprovalId,
    toolgate_model::id::StoreId,
    toolgate_model::id::TaskId,
    toolgate_model::id::VaultId,
);

impl From<Vec<u8>> for Value<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(Cow::Owned(bytes))
    }
}

/// PostgreSQL cannot store NUL in text. A caller's text may contain one, and recording it must not fail: the symbol for
/// NUL replaces it, on both engines.
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        if text.contains('\0') { Self::from(text.to_owned()) } else { Self::Text(Cow::Borrowed(text)) }
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(if text.contains('\0') { text.replace('\0', "\u{2400}") } else { text }))
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(time: Timestamp) -> Self {
        Self::Integer(time.as_millis())
    }
}

impl From<u32> for Value<'_> {
    fn from(count: u32) -> Self {
        Self::Integer(i64::from(count))
    }
}

impl From<u64> for Value<'_> {
    fn from(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Self::Integer(i64::from(truth))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}

impl<'a, T> From<Option<T>> for Value<'a>
where
    Value<'a>: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

/// JSON as it is stored.
pub fn json_text(value: &impl serde::Serialize) -> Result<Value<'static>, SqlError> {
    let text = serde_json::to_string(value).map_err(|error| SqlError::Corrupt(error.to_string()))?;
    Ok(Value::Text(Cow::Owned(text)))
}
