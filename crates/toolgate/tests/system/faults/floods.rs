//! One principal that does all it can: the others are served.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{Bystander, Engine, fault, within};
use crate::tool_user::{ToolUser, bearer};
use crate::world::{Actor, World, until};

fault! {
    a_flood_of_calls_by_one_agent_leaves_the_others_theirs,
    a_flood_of_refused_calls_leaves_the_others_theirs,
    a_flood_of_streams_by_one_agent_leaves_the_others_theirs,
}

/// So many clients of the one agent at a time.
const CLIENTS: usize = 32;
/// The default of `server.max_streams_per_principal`.
const STREAMS: usize = 64;
/// The bystander's calls meanwhile, and how long each may take: a debug build on a busy machine is slow, and not stuck.
const CALLS: usize = 20;
const LONGEST: Duration = Duration::from_secs(5);

fn a_flood_of_calls_by_one_agent_leaves_the_others_theirs(engine: Engine) {
    let world = engine.world(|setup| setup);
    let bystander = Bystander::of(&world);
    let flooder = ToolUser::of(&world, bearer(&bystander.service));
    floods(bystander, || flooder.calls("any", json!({})).status());
}

fn a_flood_of_refused_calls_leaves_the_others_theirs(engine: Engine) {
    let world = engine.world(|setup| setup.environment("TOOLGATE_AUDIT_REFUSALS_PER_SECOND", "1"));
    let agent = world.agent("without-any-grant", &["tools.invoke"]);
    let big = json!({"tool": "service.any", "parameters": {"text": "x".repeat(10_000)}});
    let refused = || {
        let status = agent.post("/api/v1/tools/invoke", &big).status();
        assert!([403, 404, 429].contains(&status), "{status}");
        status
    };
    let sent = floods(Bystander::of(&world), refused);
    // And the log is not filled by them either.
    let recorded = world.admin().events("&type=tool.denied").len();
    assert!(recorded > 0 && recorded < sent / 2, "of {sent} refusals {recorded} are events of their own");
}

fn a_flood_of_streams_by_one_agent_leaves_the_others_theirs(engine: Engine) {
    let world = engine.world(|setup| setup);
    let agent = world.agent("follower", &["tools.invoke"]);
    let mut open = Vec::new();
    for _ in 0..400 {
        open.extend(stream(&world, &agent));
    }
    assert_eq!(open.len(), STREAMS);
    let mut bystander = Bystander::of(&world);
    in_time(&mut bystander);
    bystander.has_lost_nothing();
    // What is closed can be opened again.
    open.clear();
    until("a place for a stream", || stream(&world, &agent));
}

/// Opens a stream of approvals; `None` where that is refused, which must be with 429.
fn stream(world: &World, agent: &Actor) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(world.gate.address()).unwrap();
    let request =
        format!("GET /api/v1/approvals/stream HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\r\n", agent.key);
    stream.write_all(request.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    match &status {
        b"HTTP/1.1 200" => Some(stream),
        b"HTTP/1.1 429" => None,
        other => panic!("{}", String::from_utf8_lossy(other)),
    }
}

/// Serves the bystander while many clients do this without a pause; returns how often they did.
fn floods(mut bystander: Bystander, flood: impl Fn() -> u16 + Sync) -> usize {
    let (ends, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    flood();
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while sent.load(Ordering::Relaxed) < CLIENTS {
            std::thread::yield_now();
        }
        let served = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| in_time(&mut bystander)));
        ends.store(true, Ordering::Relaxed);
        served.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    bystander.has_lost_nothing();
    sent.into_inner()
}

fn in_time(bystander: &mut Bystander) {
    for _ in 0..CALLS {
        let reply = within(LONGEST, "a call of another agent", || bystander.user.calls("any", json!({})));
        reply.ok();
        bystander.calls += 1;
    }
}
