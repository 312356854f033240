//! The approval settings of sessions: as set, for this session only, and every change of the mode recorded.

use std::time::Duration;

use serde_json::json;
use toolgate_gate::ports::ledger::{SessionTerms, SetSessionTerms};
use toolgate_model::approval::{Attendance, Mode, SessionName};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant, principal};

use super::support::number;

contract!(
    what_was_set_for_a_session_holds_until_it_is_set_again,
    a_session_belongs_to_its_owner_and_its_tenant,
    a_change_of_mode_is_recorded_and_nothing_else,
);

fn setting(tenant: &TestTenant, owner: &str, terms: SessionTerms) -> SetSessionTerms {
    let name = SessionName::parse("s-1").unwrap();
    SetSessionTerms { audit: tenant.audit(), owner: principal(owner), name, terms, mode_change: None }
}

async fn set(tenant: &TestTenant, command: SetSessionTerms) {
    tenant.ledger.set_session_terms(command).await.unwrap();
}

async fn terms(tenant: &TestTenant, owner: &str) -> SessionTerms {
    let name = SessionName::parse("s-1").unwrap();
    tenant.ledger.session_terms(&tenant.id, &principal(owner), &name).await.unwrap()
}

async fn what_was_set_for_a_session_holds_until_it_is_set_again(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    assert_eq!(terms(&tenant, "host").await, SessionTerms::default());
    let all = SessionTerms {
        mode: Some(Mode::AutoEdit),
        wait: Some(Duration::from_millis(1_500)),
        attendance: Some(Attendance::Required),
    };
    let some = SessionTerms { mode: Some(Mode::Force), ..SessionTerms::default() };
    for next in [all, some] {
        set(&tenant, setting(&tenant, "host", next.clone())).await;
        assert_eq!(terms(&tenant, "host").await, next);
    }
    set(&tenant, setting(&tenant, "host", SessionTerms::default())).await;
    assert_eq!(terms(&tenant, "host").await, SessionTerms::default());
    assert_eq!(number(fixture, "SELECT COUNT(*) FROM approval_sessions").await, 0);
}

async fn a_session_belongs_to_its_owner_and_its_tenant(fixture: &LedgerFixture) {
    let (tenant, other) = (fixture.tenant().await, fixture.tenant().await);
    let force = SessionTerms { mode: Some(Mode::Force), ..SessionTerms::default() };
    set(&tenant, setting(&tenant, "host", force)).await;
    assert_eq!(terms(&tenant, "another-host").await, SessionTerms::default());
    assert_eq!(terms(&other, "host").await, SessionTerms::default());
}

async fn a_change_of_mode_is_recorded_and_nothing_else(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    let before = tenant.events().await.len();
    let waits = SessionTerms { wait: Some(Duration::from_secs(9)), ..SessionTerms::default() };
    set(&tenant, setting(&tenant, "host", waits.clone())).await;
    assert_eq!(tenant.events().await.len(), before);

    let mut command = setting(&tenant, "host", SessionTerms { mode: Some(Mode::Force), ..waits });
    command.mode_change = Some((Mode::Default, Mode::Force));
    set(&tenant, command).await;

    let event = tenant.events().await.pop().unwrap();
    assert_eq!((&event["type"], &event["agent_id"]), (&json!("approval_session.mode_changed"), &json!("host")));
    assert_eq!(event["actor"], json!(tenant.administrator));
    let told = json!({"owner": "host", "session": "s-1", "from": "default", "to": "force"});
    assert_eq!(event["data"], told);
}
