//! Filling a ledger with the calls that an agent made today, by the statements of the engine itself.

use rusqlite::params;
use toolgate_gate::ports::entropy::random;
use toolgate_model::id::InvocationId;
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

use crate::scene::AGENT;

/// Stores so many calls of this minute.
pub fn fill(fixture: &LedgerFixture, tenant: &TestTenant, calls: usize) {
    let mut connection = rusqlite::Connection::open(fixture.home().file().unwrap()).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    let transaction = connection.transaction().unwrap();
    {
        let sql = "INSERT INTO invocations (tenant, id, agent, actor, service, tool, status, parameters, \
             arguments_hash, cost, duration_ms, reported, created_at) \
             VALUES (?1, ?2, ?3, ?3, 'bank', 'pay', 'success', '{}', 'sha256:none', 20000, 12, 0, ?4)";
        let mut statement = transaction.prepare(sql).unwrap();
        for _ in 0..calls {
            let id = InvocationId::new(tenant.now(), random().unwrap());
            statement.execute(params![tenant.id.as_str(), id.to_string(), AGENT, tenant.now().as_millis()]).unwrap();
        }
    }
    transaction.commit().unwrap();
}
