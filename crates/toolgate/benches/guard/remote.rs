//! A guardian on the other side of a socket: what asking it costs beside what it takes itself, and how long one and three
//! that take their time keep a call waiting.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_egress::address::AddressPolicy;
use toolgate_egress::client::GuardedClient;
use toolgate_egress::guardian_link::{GuardianLink, LinkAuthentication};
use toolgate_egress::resolver::SystemResolver;
use toolgate_gate::ports::guardian::Hooked;
use toolgate_guardian::composition::{Guardians, LogAlarm};
use toolgate_guardian::policy::PolicyEngine;
use toolgate_guardian::remote::{RemoteGuardian, RemoteSettings};
use toolgate_model::guard::Dialect;
use toolgate_testkit::ledger_fixture::LedgerFixture;
use toolgate_testkit::upstream::{Received, Reply, Upstream};

use crate::figures::{Times, at_most, fine, in_micros, of_this_thread};
use crate::scene::Scene;
use crate::table::{print, ratio};
use crate::verdict::timed;

const ROUNDS: usize = 10;
const SAMPLES: usize = 200;
/// Fewer where each takes long.
const SLOW_SAMPLES: usize = 50;
/// What a slow guardian takes.
const THINKING: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(10);

pub async fn run() -> Vec<String> {
    let fixture = LedgerFixture::sqlite().await;
    let tenant = fixture.tenant().await;
    let scene = Scene::new(&tenant);
    let event = scene.event(&tenant);
    let hooked = scene.hooked(&event);
    let mut targets = added(&fixture, &hooked).await;
    targets.extend(together(&fixture, &hooked).await);
    targets
}

/// What a guardian that answers at once adds.
async fn added(fixture: &LedgerFixture, hooked: &Hooked<'_>) -> Vec<String> {
    let upstream = Upstream::start(allow);
    let (without, with) = (guardians(fixture, &[]), guardians(fixture, &[&upstream]));
    timed(&with, hooked).await;
    let mut plain = PlainClient::asking(&upstream);
    let mut exchanges = Vec::new();
    let (mut alone, mut asking) = (Asking::default(), Asking::default());
    for _ in 0..ROUNDS {
        exchanges.extend((0..SAMPLES).map(|_| plain.exchange()));
        alone.sample(&without, hooked, SAMPLES).await;
        asking.sample(&with, hooked, SAMPLES).await;
    }
    let own = Times::of(exchanges);
    let (alone, asking) = (alone.figures(), asking.figures());
    let processor = asking.processor.saturating_sub(alone.processor);
    let latency = asking.times.median().saturating_sub(own.median());
    let row = |what: &str, times: &Times, processor: Option<Duration>| {
        let processor = processor.map_or_else(|| "-".to_owned(), fine);
        vec![what.to_owned(), fine(times.median()), fine(times.percentile(99)), processor]
    };
    let rows = [
        row("a verdict without it", &alone.times, Some(alone.processor)),
        row("the guardian itself, asked by a plain client", &own, None),
        row("a verdict with it", &asking.times, Some(asking.processor)),
    ];
    let head = ["", "median", "p99", "processor time of the gate"];
    print("A guardian over HTTP on loopback that answers at once", &head, &rows);
    println!("It adds {} to what it takes itself, and {} of processor time.", fine(latency), fine(processor));
    vec![at_most("processor time of asking a guardian, microseconds", in_micros(processor), 150.0)]
}

/// Guardians that take their time, one and three at once.
async fn together(fixture: &LedgerFixture, hooked: &Hooked<'_>) -> Vec<String> {
    let upstreams = [(); 3].map(|()| Upstream::start(allow_slowly));
    let [first, second, third] = &upstreams;
    let (one, three) = (guardians(fixture, &[first]), guardians(fixture, &[first, second, third]));
    let (mut of_one, mut of_three) = (Asking::default(), Asking::default());
    for _ in 0..SLOW_SAMPLES {
        of_one.sample(&one, hooked, 1).await;
        of_three.sample(&three, hooked, 1).await;
    }
    let (of_one, of_three) = (of_one.figures(), of_three.figures());
    let (one, three) = (of_one.times.median(), of_three.times.median());
    let row = |what: &str, figures: &Figures| {
        let [median, late] = [figures.times.median(), figures.times.percentile(99)];
        vec![what.to_owned(), fine(median), fine(late), ratio(median, one)]
    };
    let rows = [row("one", &of_one), row("three", &of_three)];
    print("Guardians that take 20 ms each and may change nothing", &["", "median", "p99", "beside one"], &rows);
    vec![at_most("three guardians beside one, times", three.as_secs_f64() / one.as_secs_f64(), 1.1)]
}

/// Verdicts with the same guardians.
#[derive(Default)]
struct Asking {
    times: Vec<Duration>,
    processor: Duration,
}

struct Figures {
    times: Times,
    /// Of one verdict.
    processor: Duration,
}

impl Asking {
    async fn sample(&mut self, guardians: &Guardians, hooked: &Hooked<'_>, count: usize) {
        let before = of_this_thread();
        for _ in 0..count {
            self.times.push(timed(guardians, hooked).await);
        }
        self.processor += of_this_thread() - before;
    }

    fn figures(self) -> Figures {
        let processor = self.processor.div_f64(self.times.len() as f64);
        Figures { processor, times: Times::of(self.times) }
    }
}

/// Guardians of a gate without policies.
fn guardians(fixture: &LedgerFixture, upstreams: &[&Upstream]) -> Guardians {
    let engine = PolicyEngine::new(fixture.ledger().clone(), Arc::new(fixture.clock().clone()));
    let remote = upstreams.iter().enumerate().map(|(number, upstream)| guardian(number, upstream)).collect();
    Guardians::new(Arc::new(engine), remote, Arc::new(LogAlarm::default())).with_budget(TIMEOUT)
}

fn guardian(number: usize, upstream: &Upstream) -> RemoteGuardian {
    let policy = AddressPolicy::new(vec!["127.0.0.1/32".parse().unwrap()]);
    let client = GuardedClient::new(policy, Arc::new(SystemResolver::default()));
    let url = format!("{}/hooks", upstream.url()).parse().unwrap();
    let link = GuardianLink::new(client, url, LinkAuthentication::None, 1 << 20, None).unwrap();
    let settings =
        RemoteSettings { timeout: TIMEOUT, ..RemoteSettings::new(format!("guardian-{number}"), Dialect::Aos) };
    RemoteGuardian::new(settings, Arc::new(link)).unwrap()
}

fn allow(request: &Received) -> Reply {
    let result = json!({"decision": "allow", "message": "fine"});
    Reply::json(200, json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
}

#[expect(clippy::disallowed_methods, reason = "it takes its time")]
fn allow_slowly(request: &Received) -> Reply {
    thread::sleep(THINKING);
    allow(request)
}

/// Asks what the gate asked, as fast as a socket can.
struct PlainClient {
    connection: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl PlainClient {
    /// Repeats the last question that came.
    fn asking(upstream: &Upstream) -> Self {
        let question = upstream.received().pop().unwrap().body;
        let head = format!(
            "POST /hooks HTTP/1.1\r\nHost: guardian\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            question.len()
        );
        let stream = TcpStream::connect(upstream.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { connection: BufReader::new(stream), request: [head.into_bytes(), question].concat() }
    }

    fn exchange(&mut self) -> Duration {
        let begun = Instant::now();
        self.connection.get_mut().write_all(&self.request).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
                _ if line == "\r\n" => break,
                _ => {}
            }
        }
        self.connection.read_exact(&mut vec![0; length]).unwrap();
        begun.elapsed()
    }
}
