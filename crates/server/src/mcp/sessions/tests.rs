//! Sessions without a server: whose they are, when they end, and how many there are.

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;

use super::*;

/// A clock that the test moves.
#[derive(Default)]
struct StillClock(AtomicI64);

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000 + self.0.load(Ordering::SeqCst)).unwrap()
    }
}

struct Fixture {
    clock: Arc<StillClock>,
    sessions: Sessions,
}

impl Fixture {
    fn new(sessions: usize, sessions_of_principal: usize) -> Self {
        let clock = Arc::new(StillClock::default());
        let session_idle = Duration::from_secs(60);
        let settings = Settings { sessions, sessions_of_principal, session_idle, ..Settings::default() };
        Self { sessions: Sessions::new(&settings, clock.clone()), clock }
    }

    fn pass(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    fn open(&self, owner: &Owner) -> SessionId {
        self.pass(1);
        let known = Known { version: LegacyVersion::NEWEST, capabilities: Capabilities::default(), log_level: None };
        self.sessions.open(owner, known).unwrap()
    }

    fn is_open(&self, owner: &Owner, id: SessionId) -> bool {
        self.sessions.find(owner, id).is_some()
    }
}

fn owner(name: &str) -> Owner {
    (TenantId::default_tenant(), PrincipalId::parse(name).unwrap())
}

#[test]
fn a_session_exists_for_the_principal_that_opened_it_and_until_it_is_closed() {
    let fixture = Fixture::new(10, 10);
    let (one, other) = (owner("one"), owner("other"));
    let elsewhere = (TenantId::parse("acme").unwrap(), one.1.clone());
    let id = fixture.open(&one);
    assert_eq!(SessionId::parse(&id.to_string()), Some(id));
    assert!(fixture.is_open(&one, id) && !fixture.is_open(&other, id) && !fixture.is_open(&elsewhere, id));
    assert!(!fixture.sessions.close(&other, id) && fixture.sessions.close(&one, id));
    assert!(!fixture.is_open(&one, id) && fixture.sessions.state().of_principal.is_empty());
}

#[test]
fn an_idle_session_ends_and_one_with_a_call_or_a_stream_does_not() {
    let fixture = Fixture::new(10, 10);
    let one = owner("one");
    let (idle, used, calling, streaming) =
        (fixture.open(&one), fixture.open(&one), fixture.open(&one), fixture.open(&one));
    let request = RequestId(json!(1));
    let call = fixture.sessions.begin_call(calling, &request).unwrap();
    let stream = fixture.sessions.open_stream(&one, streaming).unwrap();
    fixture.pass(40);
    assert!(fixture.is_open(&one, used));
    fixture.pass(40);
    assert!(!fixture.is_open(&one, idle) && fixture.is_open(&one, used));
    assert!(fixture.is_open(&one, calling) && fixture.is_open(&one, streaming));
    fixture.sessions.cancel_call(calling, &request);
    fixture.pass(60);
    assert!(fixture.is_open(&one, calling), "its response has not been sent");
    drop((call, stream));
    fixture.pass(60);
    assert!(!fixture.is_open(&one, calling) && !fixture.is_open(&one, streaming));
}

#[test]
fn where_there_is_no_room_the_own_oldest_ends_first() {
    let fixture = Fixture::new(4, 2);
    let (one, other) = (owner("one"), owner("other"));
    let kept = fixture.open(&other);
    let first = fixture.open(&one);
    let ids: Vec<SessionId> = (0..100).map(|_| fixture.open(&one)).collect();
    assert!(!fixture.is_open(&one, first));
    assert_eq!(ids.iter().filter(|id| fixture.is_open(&one, **id)).count(), 2);
    fixture.sessions.state().open.get_mut(&kept).unwrap().used = fixture.clock.now();
    assert!(fixture.is_open(&other, kept), "those of others stay");
    assert_eq!(fixture.sessions.state().open.len(), 3);
}

#[tokio::test]
async fn a_request_is_cancelled_by_its_id_which_no_other_one_has_meanwhile() {
    let fixture = Fixture::new(4, 4);
    let one = owner("one");
    let id = fixture.open(&one);
    let begin = |request: Value| fixture.sessions.begin_call(id, &RequestId(request));
    let (_waiting, connection) = Presence::new();
    let (first, second) = (begin(json!(1)).unwrap(), begin(json!("1")).unwrap());
    assert!(begin(json!(1)).is_none() && begin(json!("1")).is_none());
    let foreign = fixture.open(&owner("other"));
    assert!(fixture.sessions.begin_call(foreign, &RequestId(json!(1))).is_some(), "another session has ids of its own");
    let (other, call) = (first.cancellable(&connection), second.cancellable(&connection));
    // What the response is sent on may be another connection than that of the request.
    let stream = second.cancellable(&Presence::default());
    fixture.sessions.cancel_call(id, &RequestId(json!("1")));
    call.gone().await;
    stream.gone().await;
    second.cancellable(&Presence::default()).gone().await;
    assert!(futures_util::FutureExt::now_or_never(other.clone().gone()).is_none());
    assert!(begin(json!("1")).is_none(), "its response has not been sent");
    drop(second);
    assert!(begin(json!("1")).is_some());
    fixture.sessions.close(&one, id);
    other.gone().await;
}

#[tokio::test]
async fn a_client_responds_in_its_own_session_once_and_has_only_so_much_to_respond_to() {
    let fixture = Fixture::new(4, 4);
    let (one, other) = (owner("one"), owner("other"));
    let (id, foreign) = (fixture.open(&one), fixture.open(&other));
    let Asked { id: request, response } = fixture.sessions.ask(id).unwrap();
    fixture.sessions.respond(foreign, &request, Err(-1));
    fixture.sessions.respond(id, "toolgate-0", Err(-1));
    fixture.sessions.respond(id, &request, Ok(Map::new()));
    fixture.sessions.respond(id, &request, Err(-1));
    assert_eq!(response.await.unwrap(), Ok(Map::new()));

    let mut open: Vec<Asked> = (0..ASKED_LIMIT).map(|_| fixture.sessions.ask(id).unwrap()).collect();
    assert!(fixture.sessions.ask(id).is_none());
    assert!(fixture.sessions.ask(foreign).is_some(), "others are not concerned");
    drop(open.pop());
    assert!(fixture.sessions.ask(id).is_some(), "one that nobody waits for is forgotten");
    let last = open.pop().unwrap();
    fixture.sessions.close(&one, id);
    assert!(last.response.await.is_err());
    assert!(fixture.sessions.ask(id).is_none());
}
