//! The approval settings of sessions. A session without settings has no row.

use std::time::Duration;

use async_trait::async_trait;
use toolgate_gate::ports::ledger::{ApprovalSessions, Mandate, SessionTerms, SetSessionTerms};
use toolgate_gate::refusal::Refusal;
use toolgate_model::approval::{Attendance, Mode, SessionName};
use toolgate_model::event::{ApprovalModeChanged, EventPayload};
use toolgate_model::principal::{PrincipalId, TenantId};

use super::Operation;
use super::administration::{Administration, Entitled};
use super::record::{Entry, record};
use crate::ledger::{Engine, SqlLedger};
use crate::sql::{Failure, Value};
use crate::transaction::{Transaction, values};

#[async_trait]
impl<E: Engine> ApprovalSessions for SqlLedger<E> {
    async fn session_terms(
        &self,
        tenant: &TenantId,
        owner: &PrincipalId,
        name: &SessionName,
    ) -> Result<SessionTerms, Refusal> {
        let read = ReadSessionTerms { tenant: tenant.clone(), owner: owner.clone(), name: name.clone() };
        self.engine.read(read).await
    }

    async fn set_session_terms(&self, command: SetSessionTerms) -> Result<(), Refusal> {
        self.engine.write(command).await
    }
}

impl Administration for SetSessionTerms {
    type Output = ();

    const CHANGES_AUTHORITY: bool = false;

    fn mandate(&self) -> &Mandate {
        &self.audit
    }

    async fn perform<T: Transaction>(&self, transaction: &mut T, by: &Entitled<'_>) -> Result<(), Failure> {
        let (tenant, name) = (&by.tenant, self.name.as_str());
        if self.terms == SessionTerms::default() {
            let sql = "DELETE FROM approval_sessions WHERE tenant = $1 AND owner = $2 AND name = $3";
            transaction.execute(sql, values![tenant, &self.owner, name]).await?;
        } else {
            let sql = "INSERT INTO approval_sessions (tenant, owner, name, mode, wait_ms, attendance) \
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, owner, name) DO UPDATE \
                 SET mode = excluded.mode, wait_ms = excluded.wait_ms, attendance = excluded.attendance";
            let wait = self.terms.wait.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            let parameters = values![
                tenant,
                &self.owner,
                name,
                self.terms.mode.map(Mode::as_str),
                wait.map_or(Value::Null, Value::Integer),
                self.terms.attendance.map(Attendance::as_str),
            ];
            transaction.execute(sql, parameters).await?;
        }
        let Some((from, to)) = self.mode_change else { return Ok(()) };
        let changed = ApprovalModeChanged { from, owner: self.owner.clone(), session: self.name.clone(), to };
        let entry = Entry::about(EventPayload::ApprovalModeChanged(changed), &self.owner);
        record(transaction, by, entry).await
    }
}

pub struct ReadSessionTerms {
    pub tenant: TenantId,
    pub owner: PrincipalId,
    pub name: SessionName,
}

impl Operation for ReadSessionTerms {
    type Output = SessionTerms;

    async fn run<T: Transaction>(&self, transaction: &mut T) -> Result<SessionTerms, Failure> {
        let sql = "SELECT name, mode, wait_ms, attendance FROM approval_sessions \
             WHERE tenant = $1 AND owner = $2 AND name = $3";
        let name = values![&self.tenant, &self.owner, self.name.as_str()];
        let Some(row) = transaction.query_optional(sql, name).await? else { return Ok(SessionTerms::default()) };
        let wait = match row.optional_integer(2)? {
            Some(_) => Some(Duration::from_millis(row.count(2)?)),
            None => None,
        };
        Ok(SessionTerms {
            mode: row.optional_parsed(1, Mode::parse)?,
            wait,
            attendance: row.optional_parsed(3, |text| Attendance::parse(text).ok_or(()))?,
        })
    }
}
