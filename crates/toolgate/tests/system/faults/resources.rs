//! A process that is given little: few file descriptors, little memory.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use toolgate_testkit::gate_process::GateSetup;

use super::{Bystander, Engine, below, fault};
use crate::world::until;

fault! {
    few_descriptors_are_kept_for_the_ledger_and_for_services,
    large_bodies_do_not_end_a_process_with_little_memory,
}

fn few_descriptors_are_kept_for_the_ledger_and_for_services(engine: Engine) {
    let (setup, _directory) = below("ulimit -n 400");
    let mut world = engine.world_of(setup);
    let mut bystander = Bystander::of(&world);
    // When clients open more connections than there are descriptors.
    let idle: Vec<_> = (0..600).filter_map(|_| TcpStream::connect(world.gate.address()).ok()).collect();
    for _ in 0..20 {
        assert_eq!(world.gate.request("GET", "/healthz", None).0, 200);
        bystander.is_served();
    }
    drop(idle);
    until("the gate is ready", || (world.gate.request("GET", "/readyz", None).0 == 200).then_some(()));
    bystander.is_served();
    bystander.has_lost_nothing();
    // And says so without filling the disk.
    let stderr = world.gate.stderr();
    assert!(stderr.contains("server.max_connections"), "{stderr}");
    assert!(stderr.lines().count() < 200, "{} lines were logged", stderr.lines().count());
}

fn large_bodies_do_not_end_a_process_with_little_memory(engine: Engine) {
    const BODIES: usize = 60;
    const SIZE: usize = 7 * 1024 * 1024;
    let (setup, _directory) = below("ulimit -d 716800");
    let setup: GateSetup = setup.environment("TOOLGATE_MAX_BODY_BYTES", "8388608");
    let world = engine.world_of(setup);
    let mut bystander = Bystander::of(&world);
    let agent = world.agent("large", &["tools.invoke"]);
    let body = json!({"tool": "service.any", "parameters": {"text": "x".repeat(SIZE)}}).to_string();
    let head = format!(
        "POST /api/v1/tools/invoke HTTP/1.1\r\nHost: gate\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        agent.key,
        body.len()
    );
    // When one agent sends all but the last byte of many large bodies, so that they must be held at once.
    let (first, last) = body.split_at(body.len() - 1);
    let sending: Vec<_> = (0..BODIES)
        .map(|_| {
            let (address, head, first) = (world.gate.address(), head.clone(), first.to_owned());
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                // Whoever is refused before the end of its body may find the connection closed.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(first.as_bytes()));
                stream
            })
        })
        .collect();
    let streams: Vec<_> = sending.into_iter().map(|stream| stream.join().unwrap()).collect();
    for _ in 0..10 {
        assert_eq!(world.gate.request("GET", "/healthz", None).0, 200);
        bystander.is_served();
    }
    // Then each is refused, for want of a grant or of room, and the process lives.
    let mut for_want_of_room = 0;
    for mut stream in streams {
        let _ = stream.write_all(last.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(["", "403", "404", "429", "503"].contains(&status), "{answer}");
        for_want_of_room += usize::from(["", "429", "503"].contains(&status));
    }
    assert!(for_want_of_room > BODIES / 2, "{for_want_of_room} of {BODIES}");
    bystander.is_served();
    bystander.has_lost_nothing();
}
