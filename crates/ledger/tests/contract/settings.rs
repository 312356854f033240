//! What belongs to the ledger itself.

use futures_util::future::try_join_all;
use toolgate_testkit::ledger_fixture::LedgerFixture;

contract!(a_setting_is_set_once, of_many_who_set_at_once_all_get_the_same_answer, a_working_ledger_says_so);

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
