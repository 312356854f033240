//! OAuth2 through the real binary: tokens are renewed when they must be, once for everybody, and kept in the vault.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::postgres::TestDatabase;
use toolgate_testkit::upstream::{CLIENT_ID, CLIENT_SECRET, Reply, TokenServer, Upstream};

use crate::secrets::needles::Needles;
use crate::secrets::scan::assert_found_nowhere;
use crate::tool_user::{ToolUser, failure};
use crate::world::{World, block_on, merged, on_both_engines, setup};

on_both_engines! {
    a_refused_token_is_renewed_and_the_call_made_again,
    a_token_is_renewed_before_it_expires,
    client_credentials_obtain_a_token_by_themselves,
    many_calls_at_once_make_one_exchange,
}

fn a_refused_token_is_renewed_and_the_call_made_again(world: &World) {
    let server = TokenServer::start();
    let user = ToolUser::of(world, tokens(&server, json!({})));
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 0);
    for round in 1..=3 {
        server.expire_access_token();
        let reply = user.calls("any", json!({"round": round}));
        assert_eq!(reply.ok()["result"], json!({"method": "POST", "path": "/any"}));
        assert_eq!((server.exchanges(), user.record(&reply)["http_status"].as_u64()), (round, Some(200)));
        user.calls("any", json!({})).ok();
        assert_eq!(server.exchanges(), round, "the new token is used from then on");
    }
}

#[test]
fn a_renewed_token_is_sealed_and_survives_a_restart() {
    let setup = setup().reaching_loopback();
    let server = TokenServer::start();
    let world = World::of(&setup, None);
    let user = ToolUser::of(&world, tokens(&server, json!({})));
    server.expire_access_token();
    user.calls("any", json!({})).ok();
    // Killed, not ended: what was renewed was kept before it was used.
    world.gate.kill();
    let world = World::of(&setup, None);
    let user = user.at(&world);
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 1);
    let events = user.admin.events("&type=credential.rotated");
    assert_eq!(events.len(), 1, "{events:?}");
    // Also the refresh token is the new one: the old was good for one use.
    server.expire_access_token();
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 2);
}

fn a_token_is_renewed_before_it_expires(world: &World) {
    let server = TokenServer::start();
    let soon = world.admin().time().plus(Duration::from_secs(10));
    let user = ToolUser::of(world, tokens(&server, json!({"access_token_expires_at": soon.to_string()})));
    let stale = server.access_token();
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 1);
    assert!(server.upstream().received().iter().all(|request| request.bearer() != Some(stale.as_str())));
    // What lives an hour is good for many calls; what lives for less than the margin, for one.
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 1);
    server.announce_lifetime(20);
    server.expire_access_token();
    for exchanges in 2..5 {
        user.calls("any", json!({})).ok();
        assert_eq!(server.exchanges(), exchanges);
    }
}

fn client_credentials_obtain_a_token_by_themselves(world: &World) {
    let server = TokenServer::start();
    let metadata = json!({"base_url": server.upstream().url(), "token_url": server.token_url()});
    let material = json!({"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET});
    let credential = json!({"auth_type": "oauth2_client_credentials", "material": material, "metadata": metadata});
    let user = ToolUser::of(world, credential);
    user.calls("any", json!({})).ok();
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 1);
    server.expire_access_token();
    user.calls("any", json!({})).ok();
    assert_eq!(server.exchanges(), 2);
}

fn many_calls_at_once_make_one_exchange(world: &World) {
    let server = TokenServer::start();
    let user = ToolUser::of(world, tokens(&server, json!({})));
    server.expire_access_token();
    at_once(&server, &vec![user; 32]);
    assert_eq!(server.exchanges(), 1);
}

#[test]
fn calls_at_two_gates_at_once_all_get_a_token_that_works() {
    let database = block_on(TestDatabase::create());
    let setup = setup().reaching_loopback().database(database.url());
    let worlds = [World::of(&setup, None), World::of(&setup, None)];
    let server = TokenServer::start();
    let user = ToolUser::of(&worlds[0], tokens(&server, json!({})));
    let users: Vec<ToolUser> = (0..16).map(|number| user.at(&worlds[number % 2])).collect();
    for round in 1..=5 {
        server.expire_access_token();
        at_once(&server, &users);
        let exchanges = server.exchanges();
        assert!(exchanges <= 2 * round, "at most one for each gate, and there were {exchanges}");
    }
}

#[test]
fn a_token_endpoint_that_tells_all_gives_nothing_away() {
    let setup = setup().reaching_loopback().environment("TOOLGATE_LOG", "trace");
    let world = World::of(&setup, None);
    let secrets = [
        ("access token", "stale/access+token%1"),
        ("refresh token", "refresh/token+2\\"),
        ("client secret", "client&secret=3?"),
        ("new access token", "fresh/access+token~4"),
        ("new refresh token", "fresh/refresh\"token 5"),
    ];
    let upstream = Upstream::start(move |request| {
        let echoed = format!("{request:?} {}", secrets.map(|(_, secret)| secret).join(" "));
        match request.path() {
            "/error" => {
                Reply::json(400, json!({"error": "invalid_grant", "error_description": echoed, "error_uri": echoed}))
            }
            "/unknown" => Reply::json(400, json!({"error": echoed})),
            "/text" => Reply::text(500, &echoed),
            "/no-token" => Reply::json(200, json!({"token": echoed})),
            "/token" => {
                Reply::json(200, json!({"access_token": secrets[3].1, "refresh_token": secrets[4].1, "scope": echoed}))
            }
            _ if request.bearer() == Some(secrets[3].1) => Reply::text(200, &echoed),
            _ => Reply::text(401, &echoed),
        }
    });
    let mut answers = Vec::new();
    for endpoint in ["error", "unknown", "text", "no-token", "token"] {
        let material = json!({"access_token": secrets[0].1, "refresh_token": secrets[1].1, "client_id": "client",
            "client_secret": secrets[2].1});
        let metadata = json!({"base_url": upstream.url(), "token_url": format!("{}/{endpoint}", upstream.url())});
        let credential = json!({"auth_type": "oauth2_token", "material": material, "metadata": metadata});
        let user = ToolUser::of(&world, credential);
        let reply = user.calls("any", json!({}));
        match endpoint {
            "token" => assert!(reply.ok()["result"]["raw"].as_str().unwrap().contains("[REDACTED]")),
            _ => {
                failure(&reply, 502, "PROXY_ERROR");
                answers.push(user.calls("any", json!({})));
            }
        }
        answers.push(reply);
    }
    assert_found_nowhere(world, &answers, &[&Needles::of(secrets)]);
}

#[test]
fn a_token_endpoint_is_reached_only_where_calls_may_go() {
    let world = World::sqlite();
    let server = TokenServer::start();
    let port = server.upstream().address().port();
    for token_url in [format!("http://127.0.0.2:{port}/oauth/token"), "http://169.254.169.254/token".to_owned()] {
        let mut credential = tokens(&server, json!({"access_token": "stale"}));
        credential["metadata"]["token_url"] = json!(token_url);
        let error = failure(&ToolUser::of(&world, credential).calls("any", json!({})), 502, "PROXY_ERROR");
        assert!(error["message"].as_str().unwrap().contains("egress.allow"), "{error}");
    }
    assert_eq!(server.exchanges(), 0);
}

/// All of them call while nothing is answered: the token of each is refused at the same time.
fn at_once(server: &TokenServer, users: &[ToolUser]) {
    let upstream = server.upstream();
    upstream.hold();
    let before = upstream.count();
    thread::scope(|scope| {
        let calls: Vec<_> = users.iter().map(|user| scope.spawn(|| user.calls("any", json!({})))).collect();
        upstream.wait_for(before + users.len());
        upstream.release();
        for call in calls {
            let reply = call.join().unwrap();
            assert_eq!(reply.ok()["result"]["path"], "/any");
        }
    });
}

/// A credential with the tokens that the server takes now, and `more` in its material.
fn tokens(server: &TokenServer, more: Value) -> Value {
    let material = json!({"access_token": server.access_token(), "refresh_token": server.refresh_token(),
        "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET});
    let metadata = json!({"base_url": server.upstream().url(), "token_url": server.token_url()});
    json!({"auth_type": "oauth2_token", "material": merged(material, more), "metadata": metadata})
}
