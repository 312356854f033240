//! How many intents of one creator are kept, ended ones included.

use toolgate_gate::refusal::{Code, Refusal};
use toolgate_model::event::{EventPayload, WorkIntentChanged};
use toolgate_model::id::IntentId;
use toolgate_model::principal::PrincipalId;
use toolgate_model::work::IntentStatus;
use toolgate_model::work::limits::{INTENTS, KEPT_AFTER_END};

use super::{intents, number};
use crate::operation::administration::Entitled;
use crate::operation::record::{Entry, record};
use crate::sql::Failure;
use crate::transaction::{Transaction, values};

/// What is below an intent, in an order in which nothing refers to what is gone.
const BELOW: [&str; 8] = [
    "DELETE FROM task_dependencies WHERE task IN (SELECT id FROM tasks WHERE intent = $1)",
    "DELETE FROM tasks WHERE intent = $1",
    "DELETE FROM plans WHERE intent = $1",
    "DELETE FROM participants WHERE intent = $1",
    "DELETE FROM leases WHERE intent = $1",
    "DELETE FROM coordinators WHERE intent = $1",
    "DELETE FROM intent_events WHERE intent = $1",
    "DELETE FROM costs WHERE intent = $1",
];

/// Makes room for one more intent of this creator: the oldest one that ended long enough ago is deleted with everything
/// below it. Its events stay in the audit log, and its calls in their history.
pub async fn make_room<T: Transaction>(
    transaction: &mut T,
    by: &Entitled<'_>,
    creator: &PrincipalId,
) -> Result<(), Failure> {
    let count = "SELECT COUNT(*) FROM intents WHERE tenant = $1 AND created_by = $2";
    let count = number(transaction, count, values![&by.tenant, creator]).await?;
    if count < u64::from(INTENTS) {
        return Ok(());
    }
    let before = by.time.minus(KEPT_AFTER_END);
    let oldest = format!(
        "SELECT {} FROM intents WHERE tenant = $1 AND created_by = $2 \
         AND status IN ('completed', 'abandoned') AND updated_at < $3 ORDER BY id LIMIT 1{}",
        intents::COLUMNS,
        T::FOR_UPDATE
    );
    let found = transaction.query_optional(&oldest, values![&by.tenant, creator, before]).await?;
    let Some(row) = found else {
        let days = KEPT_AFTER_END.as_secs() / (24 * 60 * 60);
        let reason = format!(
            "`{creator}` has created {count} intents, and at most {INTENTS} are kept, ended ones for {days} days; create \
             fewer, or as another principal"
        );
        return Err(Refusal::new(Code::WorkLimitReached, reason).with("limit", INTENTS).into());
    };
    let intent = intents::read(&row)?;
    delete(transaction, intent.id).await?;
    let payload = EventPayload::WorkIntentChanged(WorkIntentChanged {
        intent_id: intent.id,
        reason: Some("deleted to make room for a new intent of its creator".to_owned()),
        status: None::<IntentStatus>,
        version: intent.version + 1,
    });
    record(transaction, by, Entry::new(payload)).await
}

async fn delete<T: Transaction>(transaction: &mut T, intent: IntentId) -> Result<(), Failure> {
    for sql in BELOW {
        transaction.execute(sql, values![intent]).await?;
    }
    transaction.execute("DELETE FROM intents WHERE id = $1", values![intent]).await?;
    Ok(())
}
