//! Tasks as rows.

use std::collections::BTreeMap;

use toolgate_gate::refusal::Refusal;
use toolgate_model::id::{IntentId, LeaseId, PlanId, TaskId};
use toolgate_model::principal::{PrincipalId, TenantId};
use toolgate_model::work::{Task, TaskStatus};

use crate::operation::listing::padded;
use crate::sql::{Failure, Row, SqlError, Value, json_text};
use crate::transaction::{Transaction, values};

pub const COLUMNS: &str = "id, tenant, intent, plan, version, status, assigned_agent, lease, attempt, max_attempts, \
     timeout_seconds, deadline, details, created_by, created_at, started_at, completed_at, due";

/// Reads a row of [`COLUMNS`], without the dependencies.
pub fn read(row: &Row) -> Result<Task, SqlError> {
    let seconds = row.optional_integer(10)?.map(u64::try_from).transpose();
    Ok(Task {
        id: row.parsed(0, TaskId::parse)?,
        tenant: row.parsed(1, TenantId::parse)?,
        intent: row.parsed(2, IntentId::parse)?,
        plan: row.optional_parsed(3, PlanId::parse)?,
        version: row.count(4)?,
        status: row.parsed(5, TaskStatus::parse)?,
        assigned_agent: row.optional_parsed(6, PrincipalId::parse)?,
        lease: row.optional_parsed(7, LeaseId::parse)?,
        depends_on: Vec::new(),
        blocks: Vec::new(),
        attempt: row.count(8)?,
        max_attempts: row.count(9)?,
        timeout_seconds: seconds.map_err(|error| SqlError::Corrupt(error.to_string()))?,
        deadline: row.optional_time(11)?,
        details: row.json(12)?,
        created_by: row.parsed(13, PrincipalId::parse)?,
        created_at: row.time(14)?,
        started_at: row.optional_time(15)?,
        completed_at: row.optional_time(16)?,
        due: row.optional_time(17)?,
    })
}

/// Stores a new task.
pub async fn insert<T: Transaction>(transaction: &mut T, task: &Task) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO tasks ({COLUMNS}) VALUES \
         ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)"
    );
    let parameters = values![
        task.id,
        &task.tenant,
        task.intent,
        task.plan,
        task.version,
        task.status.as_str(),
        task.assigned_agent.as_ref(),
        task.lease,
        task.attempt,
        task.max_attempts,
        task.timeout_seconds,
        task.deadline,
        json_text(&task.details)?,
        &task.created_by,
        task.created_at,
        task.started_at,
        task.completed_at,
        task.due,
    ];
    transaction.execute(&sql, parameters).await?;
    Ok(())
}

/// Stores a changed task under the next version.
pub async fn update<T: Transaction>(transaction: &mut T, task: &mut Task) -> Result<(), Failure> {
    task.version += 1;
    let sql = "UPDATE tasks SET plan = $1, version = $2, status = $3, assigned_agent = $4, lease = $5, attempt = $6, \
         deadline = $7, details = $8, started_at = $9, completed_at = $10, due = $11 WHERE id = $12";
    let parameters = values![
        task.plan,
        task.version,
        task.status.as_str(),
        task.assigned_agent.as_ref(),
        task.lease,
        task.attempt,
        task.deadline,
        json_text(&task.details)?,
        task.started_at,
        task.completed_at,
        task.due,
        task.id,
    ];
    transaction.execute(sql, parameters).await?;
    Ok(())
}

/// The intent of a task; a task that does not exist is refused.
pub async fn intent_of<T: Transaction>(
    transaction: &mut T,
    tenant: &TenantId,
    id: TaskId,
) -> Result<IntentId, Failure> {
    let sql = "SELECT intent FROM tasks WHERE id = $1 AND tenant = $2";
    let row = transaction.query_optional(sql, values![id, tenant]).await?;
    Ok(row.ok_or_else(|| Refusal::no_task(id))?.parsed(0, IntentId::parse)?)
}

/// Reads a task of an intent that the transaction holds.
pub async fn one<T: Transaction>(transaction: &mut T, intent: IntentId, id: TaskId) -> Result<Option<Task>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1 AND intent = $2");
    let rows = transaction.query(&sql, values![id, intent]).await?;
    let mut tasks = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    with_dependencies(transaction, &mut tasks).await?;
    Ok(tasks.pop())
}

/// Adds what the tasks depend on, and what depends on them.
pub async fn with_dependencies<T: Transaction>(transaction: &mut T, tasks: &mut [Task]) -> Result<(), Failure> {
    if tasks.is_empty() {
        return Ok(());
    }
    let (places, ids) = padded(tasks.iter().map(|task| Value::from(task.id)).collect());
    let mut above: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    let mut below: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for (column, found) in [("task", &mut above), ("depends_on", &mut below)] {
        let sql = format!(
            "SELECT task, depends_on FROM task_dependencies WHERE {column} IN ({places}) ORDER BY task, depends_on"
        );
        for row in &transaction.query(&sql, &ids).await? {
            let (task, depends_on) = (row.parsed(0, TaskId::parse)?, row.parsed(1, TaskId::parse)?);
            let (key, value) = if column == "task" { (task, depends_on) } else { (depends_on, task) };
            found.entry(key).or_default().push(value);
        }
    }
    for task in tasks {
        task.depends_on = above.remove(&task.id).unwrap_or_default();
        task.blocks = below.remove(&task.id).unwrap_or_default();
    }
    Ok(())
}

/// Tasks that match a condition, in the order of their ids.
pub async fn matching<T: Transaction>(
    transaction: &mut T,
    condition: &str,
    parameters: &[Value<'_>],
) -> Result<Vec<Task>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE {condition} ORDER BY id");
    let rows = transaction.query(&sql, parameters).await?;
    let mut tasks = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    with_dependencies(transaction, &mut tasks).await?;
    Ok(tasks)
}
