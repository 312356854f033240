//! Which streams are woken, by what, and how many a principal may open.

use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::ports::ledger::EventHeading;

fn tenant(id: &str) -> TenantId {
    TenantId::parse(id).unwrap()
}

fn principal(id: &str) -> PrincipalId {
    PrincipalId::parse(id).unwrap()
}

fn of_agent(id: &str) -> EventFilter {
    EventFilter { agent: Some(principal(id)), ..EventFilter::default() }
}

fn heading(kind: &str, agent: Option<&str>) -> EventHeading {
    EventHeading { kind: kind.to_owned(), agent: agent.map(str::to_owned), run: None, tool: None }
}

fn news(of: &str, size: u64, headings: Option<Vec<EventHeading>>) -> Vec<LogNews> {
    vec![LogNews { tenant: tenant(of), size, headings }]
}

fn is_woken(follower: &Follower) -> bool {
    pin!(follower.news()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn news_wakes_those_that_it_may_be_for_and_nobody_else() {
    let followers = Arc::new(Followers::new(8));
    let follow =
        |tenant_id: &str, id: &str| followers.follow(&tenant(tenant_id), &principal(id), of_agent(id)).unwrap();
    let (one, two, elsewhere) = (follow("a", "one"), follow("a", "two"), follow("b", "one"));
    followers.deliver(news("a", 7, Some(vec![heading("tool.invoked", Some("one")), heading("key.created", None)])));
    assert!(is_woken(&one) && !is_woken(&two) && !is_woken(&elsewhere));
    assert!(!is_woken(&one), "it is told once");

    followers.deliver(news("a", 9000, None));
    assert!(is_woken(&one) && is_woken(&two) && !is_woken(&elsewhere), "too many to tell: whoever follows the log");
}

#[test]
fn news_that_comes_while_nobody_waits_is_not_lost() {
    let followers = Arc::new(Followers::new(8));
    let one = followers.follow(&tenant("a"), &principal("one"), of_agent("one")).unwrap();
    followers.deliver(news("a", 1, Some(vec![heading("tool.invoked", Some("one"))])));
    followers.deliver(news("a", 2, Some(vec![heading("tool.invoked", Some("two"))])));
    assert!(is_woken(&one));
}

#[test]
fn one_look_asks_for_each_log_once_from_where_the_last_one_ended() {
    let followers = Arc::new(Followers::new(1000));
    let streams: Vec<_> =
        (0..1000).map(|_| followers.follow(&tenant("a"), &principal("one"), EventFilter::default()).unwrap()).collect();
    let now = Timestamp::from_millis(1_000_000).unwrap();
    assert_eq!(followers.followed(now), [(tenant("a"), None)]);
    followers.deliver(news("a", 41, None));
    assert_eq!(followers.followed(now), [(tenant("a"), Some(41))]);
    drop(streams);
    assert!(followers.followed(now).is_empty(), "nobody follows, nothing is looked at");
}

#[test]
fn a_principal_has_so_many_streams_and_gives_them_back() {
    let followers = Arc::new(Followers::new(2));
    let follow = |of: &str, id: &str| followers.follow(&tenant(of), &principal(id), EventFilter::default());
    let first = follow("a", "one").unwrap();
    let _second = follow("a", "one").unwrap();
    let refused = follow("a", "one").err().unwrap();
    assert_eq!(refused.code(), Code::TooManyStreams);
    assert!(refused.reason().contains("server.max_streams_per_principal"));
    assert!(follow("a", "two").is_ok() && follow("b", "one").is_ok());
    drop(first);
    assert!(follow("a", "one").is_ok());
}

#[test]
fn a_filter_passes_what_it_cannot_rule_out() {
    let headings = |kind: &str| EventHeading {
        kind: kind.to_owned(),
        agent: Some("one".to_owned()),
        run: Some("r".to_owned()),
        tool: Some("s.t".to_owned()),
    };
    let filter = EventFilter { run: Some("r".to_owned()), tool: Some("s.t".to_owned()), ..of_agent("one") };
    assert!(filter.may_have(&headings("tool.invoked")));
    assert!(!EventFilter { run: Some("q".to_owned()), ..filter.clone() }.may_have(&headings("tool.invoked")));
    assert!(!EventFilter { tool: Some("s.u".to_owned()), ..filter.clone() }.may_have(&headings("tool.invoked")));
    let kinds = EventFilter { kinds: vec!["approval.requested".to_owned()], ..EventFilter::default() };
    assert!(kinds.may_have(&headings("approval.requested")) && !kinds.may_have(&headings("tool.invoked")));
    let by_actor = EventFilter { actor: Some(principal("somebody")), ..EventFilter::default() };
    assert!(by_actor.may_have(&headings("tool.invoked")), "a heading does not say who did it");
}
