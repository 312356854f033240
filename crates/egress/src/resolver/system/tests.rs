//! Hanging lookups, controlled by the test.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use toolgate_model::principal::{PrincipalId, TenantId};

use super::*;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn agent(name: &str) -> PoolKey {
    PoolKey::of_agent(&TenantId::parse("default").unwrap(), &PrincipalId::parse(name).unwrap())
}

/// Names that begin with `hang` are resolved until the test drops this; it tells when a lookup has begun.
struct Hanging {
    resolver: SystemResolver,
    release: Option<mpsc::Sender<()>>,
    begun: tokio::sync::mpsc::UnboundedReceiver<String>,
    count: Arc<AtomicUsize>,
}

impl Hanging {
    fn new(lookups: usize) -> Self {
        let (release, held) = mpsc::channel::<()>();
        let (held, count) = (Mutex::new(held), Arc::new(AtomicUsize::new(0)));
        let (tell, begun) = tokio::sync::mpsc::unbounded_channel();
        let counted = Arc::clone(&count);
        let resolver = SystemResolver::asking(lookups, move |name| {
            counted.fetch_add(1, Ordering::SeqCst);
            tell.send(name.to_owned()).unwrap();
            if name.starts_with("hang") {
                // Each gets an error once the sender is dropped.
                let _ = held.lock().unwrap().recv();
            }
            Ok(vec![ADDRESS])
        });
        Self { resolver, release: Some(release), begun, count }
    }

    fn ask(&self, name: &str, holder: PoolKey) -> JoinHandle<Found> {
        let (resolver, name) = (self.resolver.clone(), name.to_owned());
        tokio::spawn(async move { resolver.resolve(&name, holder).await })
    }
}

/// Lets every spawned task reach its wait.
async fn all_wait() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_hanging_names_of_one_agent_leave_places_to_others() {
    let mut hanging = Hanging::new(8);
    let stuck: Vec<_> = (0..20).map(|number| hanging.ask(&format!("hang-{number}"), agent("one"))).collect();
    for _ in 0..2 {
        hanging.begun.recv().await.unwrap();
    }
    assert_eq!(hanging.resolver.resolve("works", agent("two")).await, Ok(vec![ADDRESS]));
    assert_eq!(hanging.count.load(Ordering::SeqCst), 3, "two of the first agent, one of the other");
    drop(hanging.release.take());
    for found in join_all(stuck).await {
        assert_eq!(found.unwrap(), Ok(vec![ADDRESS]), "those that waited had their turn");
    }
    // A thread publishes its result before it releases its slot.
    let is_left = || {
        let state = hanging.resolver.0.state();
        !state.in_flight.is_empty() || !state.shares.is_empty()
    };
    let ended = async {
        while is_left() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("nothing is left behind");
}

#[tokio::test]
async fn everybody_who_asks_for_a_name_waits_for_the_same_look_up() {
    let mut hanging = Hanging::new(4);
    let first = hanging.ask("hang", agent("one"));
    hanging.begun.recv().await.unwrap();
    let others: Vec<_> = (0..100).map(|number| hanging.ask("hang", agent(&format!("agent-{number}")))).collect();
    all_wait().await;
    drop(hanging.release.take());
    for found in join_all(others.into_iter().chain([first])).await {
        assert_eq!(found.unwrap(), Ok(vec![ADDRESS]));
    }
    assert_eq!(hanging.count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_place_is_busy_and_a_silent_name_server_is_a_timeout() {
    let mut hanging = Hanging::new(1);
    let silent = hanging.ask("hang", agent("one"));
    hanging.begun.recv().await.unwrap();
    tokio::time::pause();
    let busy = hanging.ask("works", agent("two"));
    all_wait().await;
    // Time does not pass by itself while a thread is running.
    tokio::time::advance(TIMEOUT * 2).await;
    assert_eq!(silent.await.unwrap(), Err(LookupError::TimedOut));
    assert_eq!(busy.await.unwrap(), Err(LookupError::Busy), "and not a name that does not exist");
    drop(hanging.release.take());
}
