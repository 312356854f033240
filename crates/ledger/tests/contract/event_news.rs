//! New events for streams: the sizes of the followed logs, and the events since the last poll.

use toolgate_gate::ports::ledger::{EventHeading, LogNews};
use toolgate_testkit::ledger_fixture::{LedgerFixture, TestTenant};

contract!(
    a_log_without_news_is_left_out,
    the_headings_since_the_last_look_are_told,
    a_first_look_and_a_long_absence_tell_only_that_there_is_something,
    one_look_reads_many_logs,
);

async fn look(tenant: &TestTenant, seen: Option<u64>) -> Vec<LogNews> {
    tenant.ledger.log_news(vec![(tenant.id.clone(), seen)]).await.unwrap()
}

async fn a_log_without_news_is_left_out(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    assert!(look(&tenant, Some(0)).await.is_empty(), "what is not integrated is not in the log");
    tenant.integrate().await;
    assert!(look(&tenant, Some(3)).await.is_empty());
}

async fn the_headings_since_the_last_look_are_told(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.integrate().await;
    tenant.agent("reader").await;
    tenant.integrate().await;

    let [news] = look(&tenant, Some(3)).await.try_into().unwrap();

    assert_eq!((&news.tenant, news.size), (&tenant.id, 4));
    let [EventHeading { kind, agent, .. }] = news.headings.unwrap().try_into().unwrap();
    assert_eq!((kind.as_str(), agent.as_deref()), ("agent.created", Some("reader")));
}

async fn a_first_look_and_a_long_absence_tell_only_that_there_is_something(fixture: &LedgerFixture) {
    let tenant = fixture.tenant().await;
    tenant.integrate().await;
    let news = |size| LogNews { tenant: tenant.id.clone(), size, headings: None };
    assert_eq!(look(&tenant, None).await, [news(3)]);
    // More than there are: another ledger than the polled one.
    assert_eq!(look(&tenant, Some(9)).await, [news(3)]);
    for number in 0..2049 {
        tenant.agent(&format!("agent-{number}")).await;
    }
    tenant.integrate().await;
    assert_eq!(look(&tenant, Some(3)).await, [news(2052)]);
}

async fn one_look_reads_many_logs(fixture: &LedgerFixture) {
    let (one, other) = (fixture.tenant().await, fixture.tenant().await);
    one.integrate().await;
    other.agent("late").await;
    other.integrate().await;

    let followed = vec![(one.id.clone(), Some(3)), (other.id.clone(), Some(3))];
    let [news] = one.ledger.log_news(followed).await.unwrap().try_into().unwrap();

    assert_eq!((news.tenant, news.size), (other.id, 4));
}
