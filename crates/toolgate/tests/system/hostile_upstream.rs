//! Services that give away what they are told: the secret comes back in every encoding, in every kind of answer, cut at
//! every place. None of it reaches the agent, the history, the log or the ledger.

mod borders;
mod chunks;
mod encodings;
pub mod kinds;
mod ordinary;

use toolgate_testkit::upstream::{Body, Received, Reply, Upstream};

use crate::secrets::needles::Needles;
use crate::secrets::scan::assert_found_nowhere;
use crate::world::{Reply as Answer, World, setup};

use self::kinds::Kind;

/// A gate that logs all that it can.
fn talkative_world() -> World {
    World::of(&setup().reaching_loopback().environment("TOOLGATE_LOG", "trace"), None)
}

/// A service that echoes the request and all that it knows of the credential, in the way that the parameters ask for:
/// with a `status`, a `content_type`, `gzip`, as `binary`, in chunks of a `size`.
pub fn echoing(kind: &Kind) -> Upstream {
    let known: Vec<String> = kind.secrets.iter().map(|(_, secret)| secret.clone()).collect();
    Upstream::start(move |request| echo(request, &known))
}

fn echo(request: &Received, known: &[String]) -> Reply {
    let sent = request.json();
    let asked = sent.get("parameters").unwrap_or(&sent);
    let mut told = request.clone();
    for secret in known {
        let encoded: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
        told.target.push_str(if told.target.contains('?') { "&known=" } else { "?known=" });
        told.target.push_str(&encoded);
    }
    let Reply::Answer { mut status, mut headers, body: Body::Whole(mut body) } = Reply::echo(&told) else {
        panic!("an echo is an answer in one piece")
    };
    if let Some(asked) = asked["status"].as_u64() {
        status = u16::try_from(asked).unwrap();
        let target = told.target.clone();
        headers.push(("Location".to_owned(), target));
    }
    if let Some(content_type) = asked["content_type"].as_str() {
        headers.retain(|(name, _)| name != "Content-Type");
        headers.push(("Content-Type".to_owned(), format!("{content_type}; note={}", known[0].replace('\n', " "))));
    }
    if asked["binary"] == true {
        body.splice(..0, [0xff, 0xfe, 0x00]);
    }
    let reply = Reply::Answer { status, headers, body: Body::Whole(body) };
    let reply = if asked["gzip"] == true { reply.gzip() } else { reply };
    match asked["size"].as_u64() {
        Some(size) => reply.in_chunks_of(usize::try_from(size).unwrap()),
        None => reply,
    }
}

/// Ends the gate; nothing of these credentials is anywhere.
fn assert_kept(world: World, kinds: &[Kind], answers: &[Answer]) {
    let secrets = kinds.iter().flat_map(|kind| &kind.secrets);
    let needles = Needles::of(secrets.map(|(name, secret)| (name.as_str(), secret.as_str())));
    assert_found_nowhere(world, answers, &[&needles]);
}
