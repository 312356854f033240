//! A border between two chunks hides nothing, wherever it lies.

use serde_json::json;
use toolgate_testkit::upstream::{Reply, Upstream};

use super::{assert_kept, echoing, kinds, talkative_world};
use crate::tool_user::{TOKEN, ToolUser, bearer};

#[test]
fn a_secret_is_found_across_the_borders_of_chunks_of_every_size() {
    let world = talkative_world();
    let kinds: Vec<_> = kinds::all().into_iter().filter(|kind| kind.name == "a bearer token").collect();
    let upstream = echoing(&kinds[0]);
    let user = ToolUser::of(&world, kinds[0].credential(&upstream));
    let mut answers = Vec::new();
    for size in (1..=80).chain([127, 128, 1000, 4096, 16_384]) {
        let reply = user.calls("any", json!({"size": size}));
        assert!(reply.ok()["result"].to_string().contains("[REDACTED]"), "chunks of {size}");
        answers.push(reply);
        if size % 8 == 1 {
            answers.push(user.calls("any", json!({"size": size, "gzip": true})));
            answers.push(user.calls("any", json!({"size": size, "status": 500})));
            answers.push(user.calls("any", json!({"size": size, "content_type": "text/plain"})));
        }
    }
    assert!(answers.iter().all(|reply| reply.json()["result"].to_string().contains("[REDACTED]")));
    assert_kept(world, &kinds, &answers);
}

#[test]
fn a_secret_cut_in_two_at_every_place_is_found() {
    let world = talkative_world();
    let (length, quoted) = (TOKEN.len(), json!(format!("<{TOKEN}>")).to_string());
    let upstream = Upstream::start(move |request| {
        let cut = usize::try_from(request.json()["cut"].as_u64().unwrap()).unwrap();
        let (one, other) = quoted.split_at(cut);
        Reply::chunks(200, [one, other])
    });
    let user = ToolUser::of(&world, bearer(&upstream));
    for cut in 1..length + 4 {
        let answer = user.calls("any", json!({"cut": cut})).ok();
        assert_eq!(answer["result"], "<[REDACTED]>", "cut at {cut}");
    }
}
