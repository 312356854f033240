//! Clients that send nothing, or very slowly.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Bystander, Engine, fault};

fault! {
    silent_and_slow_clients_are_closed_and_hold_nobody_up,
}

const CLIENTS: usize = 300;

fn silent_and_slow_clients_are_closed_and_hold_nobody_up(engine: Engine) {
    let world = engine.world(|setup| {
        setup
            .environment("TOOLGATE_HEADER_TIMEOUT_SECONDS", "2")
            .environment("TOOLGATE_IDLE_TIMEOUT_SECONDS", "2")
            .environment("TOOLGATE_MAX_CONNECTIONS", "200")
    });
    let mut bystander = Bystander::of(&world);
    let address = world.gate.address();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || open(address, number))).collect();
        for _ in 0..20 {
            bystander.is_served();
            assert_eq!(world.gate.request("GET", "/healthz", None).0, 200);
        }
        // Every one of them is closed by the gate, whatever it does.
        for client in clients {
            client.join().unwrap();
        }
    });
    bystander.is_served();
    bystander.has_lost_nothing();
}

/// Opens a connection and reads until the gate ends it: silent, with half a head, or with one byte of a head after the other.
fn open(address: SocketAddr, number: usize) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let begins = ["", "P", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: ga", "slow"][number % 5];
    if begins != "slow" {
        let _ = stream.write_all(begins.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
        return;
    }
    // One byte a time, each after the gate had the time to give up.
    stream.set_read_timeout(Some(std::time::Duration::from_millis(250))).unwrap();
    let mut head = b"GET /healthz HTTP/1.1\r\nX-Slow: ".iter().chain(std::iter::repeat(&b'x'));
    loop {
        let byte = *head.next().unwrap();
        if stream.write_all(&[byte]).is_err() {
            return;
        }
        match stream.read(&mut [0; 64]) {
            Ok(0) => return,
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}
