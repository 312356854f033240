//! Settings of the ledger itself.

use futures_util::future::try_join_all;
use toolgate_testkit::ledger_fixture::LedgerFixture;

use super::support::approvals::{ask, question};

contract!(
    a_setting_is_set_once,
    of_many_who_set_at_once_all_get_the_same_answer,
    a_working_ledger_says_so,
    the_figures_of_a_ledger_count_what_it_holds,
);

async fn a_setting_is_set_once(fixture: &LedgerFixture) {
    let ledger = fixture.ledger();
    assert_eq!(ledger.setting("audit_key").await.unwrap(), None);
    assert_eq!(ledger.set_setting_once("audit_key", "one").await.unwrap(), "one");
    assert_eq!(ledger.set_setting_once("audit_key", "two").await.unwrap(), "one");
    assert_eq!(ledger.setting("audit_key").await.unwrap().as_deref(), Some("one"));
    assert_eq!(ledger.setting("other").await.unwrap(), None);
}

async fn of_many_who_set_at_once_all_get_the_same_answer(fixture: &LedgerFixture) {
    let replica = fixture.replica().await;
    let attempts = (0..32).map(|number| {
        let ledger = if number % 2 == 0 { fixture.ledger() } else { &replica };
        async move { ledger.set_setting_once("audit_key", &number.to_string()).await }
    });
    let answers = try_join_all(attempts).await.unwrap();
    let held = fixture.ledger().setting("audit_key").await.unwrap().unwrap();
    assert!(answers.iter().all(|answer| *answer == held), "{answers:?}");
}

async fn a_working_ledger_says_so(fixture: &LedgerFixture) {
    fixture.ledger().check().await.unwrap();
    fixture.ledger().check().await.unwrap();
    assert_eq!(fixture.ledger().setting("audit_key").await.unwrap(), None);
}

async fn the_figures_of_a_ledger_count_what_it_holds(fixture: &LedgerFixture) {
    let fresh = fixture.ledger().statistics().await.unwrap();
    assert_eq!((fresh.open_approvals, fresh.oldest_open_approval), (0, None));
    assert!(fresh.engine.bytes > 0 && fresh.engine.pool_connections > 0, "{fresh:?}");

    let tenant = fixture.tenant().await;
    let first = ask(&tenant, question(&tenant)).await;
    tenant.wait(1);
    ask(&tenant, question(&tenant)).await;
    let asked = fixture.ledger().statistics().await.unwrap();
    assert_eq!((asked.open_approvals, asked.oldest_open_approval), (2, Some(first.created_at)));
}
