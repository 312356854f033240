//! When PostgreSQL goes away, everything is refused with a clear code; when it comes back, the gate goes on by itself.

use serde_json::json;
use toolgate_testkit::gate_process::{GateProcess, GateSetup, try_signal};
use toolgate_testkit::postgres::{Durability, PrivateCluster};
use toolgate_testkit::upstream::{Reply, Upstream};

use crate::tool_user::{ToolUser, bearer};
use crate::world::{World, setup, text};

#[test]
fn a_database_that_crashes_and_comes_back_loses_nothing_acknowledged() {
    // Given a gate on a PostgreSQL of its own.
    let mut cluster = PrivateCluster::create(Durability::Disk).unwrap();
    let gate = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(&cluster.url()).start();
    let (status, vault) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "kept"})));
    assert_eq!(status, 201, "{vault}");
    let path = format!("/api/v1/vaults/{}", vault["id"].as_str().unwrap());

    for _ in 0..3 {
        // When the database crashes, then reads and writes are refused, and the gate stays alive.
        cluster.stop().unwrap();
        for (method, path, body) in
            [("GET", path.as_str(), None), ("POST", "/api/v1/vaults", Some(json!({"name": "lost"})))]
        {
            let (status, answer) = gate.request(method, path, body.as_ref());
            assert_eq!((status, answer["error"]["code"].as_str()), (503, Some("LEDGER_UNAVAILABLE")), "{answer}");
        }
        assert_eq!(gate.request("GET", "/healthz", None).0, 200);
        assert_eq!(gate.request("GET", "/readyz", None).0, 503);

        // When it comes back, then so does everything that was acknowledged.
        cluster.start().unwrap();
        wait_until_ready(&gate);
        assert_eq!(gate.request("GET", &path, None).0, 200);
        assert_eq!(gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "after"}))).0, 201);
    }
    let (_, vaults) = gate.request("GET", "/api/v1/vaults", None);
    let names: Vec<_> = vaults["vaults"].as_array().unwrap().iter().map(|vault| vault["name"].clone()).collect();
    assert_eq!(names, ["kept", "after", "after", "after"], "what was refused was not done");
}

#[test]
fn a_call_that_ran_and_could_not_be_settled_is_unknown_and_not_denied() {
    // Given a call that the service is about to carry out.
    let mut cluster = PrivateCluster::create(Durability::Disk).unwrap();
    let world = World::of(&setup().reaching_loopback().database(&cluster.url()), None);
    let upstream = Upstream::start(|_| Reply::json(200, json!({"done": true})));
    let user = ToolUser::of(&world, bearer(&upstream));
    upstream.hold();
    let calling = std::thread::spawn({
        let user = user.clone();
        move || user.calls_with("any", json!({"amount": 7}), json!({"idempotency_key": "once"}))
    });
    upstream.wait_for(1);

    // When the database goes away before it is settled.
    cluster.stop().unwrap();
    upstream.release();
    let reply = calling.join().unwrap();

    // Then nobody is told that nothing was changed: the outcome is unknown, and the record of the call is named.
    let body = reply.expect(409);
    assert_eq!((&body["status"], &body["error"]["code"]), (&json!("unknown"), &json!("OUTCOME_UNKNOWN")), "{body}");
    assert_eq!((&body["error"]["stage"], &body["error"]["cause"]), (&json!("settle"), &json!("LEDGER_UNAVAILABLE")));
    let invocation = text(&body, "/invocation_id");
    assert_eq!(text(&body, "/error/invocation_id"), invocation);

    // And the record stays that of an admitted call, which is not made twice.
    cluster.start().unwrap();
    wait_until_ready(&world.gate);
    let record = user.record(&reply);
    assert_eq!((&record["id"], &record["status"]), (&json!(invocation), &json!("running")));
    let again = user.calls_with("any", json!({"amount": 7}), json!({"idempotency_key": "once"}));
    again.refused(409, "IDEMPOTENCY_IN_PROGRESS");
    assert_eq!(upstream.count(), 1);
}

/// Sends a signal to every process that serves a connection of a gate; returns how many there are.
fn signal_backends(url: &str, name: &str) -> usize {
    let found = crate::world::block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        client.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>()
    });
    // A connection may end between the query and the signal.
    found.iter().filter(|process| try_signal(name, u32::try_from(**process).unwrap())).count()
}

#[test]
fn connections_that_hang_are_given_up_and_replaced() {
    // Given a gate whose connections have been used.
    let cluster = PrivateCluster::create(Durability::Disk).unwrap();
    let setup = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(&cluster.url());
    let gate = setup.environment("TOOLGATE_LEDGER_TIMEOUT_SECONDS", "1").start();
    assert_eq!(gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "before"}))).0, 201);

    // When the processes behind them stop moving, and the server goes on otherwise.
    assert!(signal_backends(&cluster.url(), "STOP") > 0);

    // Then every request is answered, and soon with success: by new connections.
    crate::world::until("the gate works by new connections", || {
        let (status, body) = gate.request("POST", "/api/v1/vaults", Some(&json!({"name": "after"})));
        assert!([201, 503].contains(&status), "{status} {body}");
        (status == 201).then_some(())
    });
    crate::world::until("the gate is ready", || (gate.request("GET", "/readyz", None).0 == 200).then_some(()));
    signal_backends(&cluster.url(), "CONT");
    gate.stop();
}

#[test]
fn a_server_that_refuses_is_named_with_its_own_reason() {
    let cluster = PrivateCluster::create(Durability::Disk).unwrap();
    let elsewhere = cluster.url().replace("/postgres", "/nowhere");
    assert_ne!(elsewhere, cluster.url());
    let ended = GateSetup::new(env!("CARGO_BIN_EXE_toolgate")).database(&elsewhere).start_refused();
    let message = &ended.stderr;
    assert!(message.contains("database `nowhere` at ") && message.contains("as role `"), "{message}");
    assert!(message.contains("database \"nowhere\" does not exist (3D000)"), "{message}");
}

fn wait_until_ready(gate: &GateProcess) {
    // Each asking takes a connection attempt, so this is bounded without a clock.
    let ready = (0..200).any(|_| gate.request("GET", "/readyz", None).0 == 200);
    assert!(ready, "the gate did not recover");
}
