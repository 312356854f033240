//! A rolling restart of two gates behind nginx, under load: no request is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use toolgate_testkit::gate_process::ADMIN_TOKEN;
use toolgate_testkit::nginx::{Nginx, Upstreams};
use toolgate_testkit::postgres::TestDatabase;

use crate::calls::shop::Shop;
use crate::world::{World, block_on, setup};

const CLIENTS: usize = 8;
const ROUNDS: usize = 2;
/// So many at least for each restart, however slow the machine is.
const REQUESTS: usize = 400;

#[test]
fn a_rolling_restart_behind_nginx_loses_no_request() {
    let database = block_on(TestDatabase::create());
    let setup = setup()
        .reaching_loopback()
        .on_own_address()
        .database(database.url())
        .environment("TOOLGATE_TRUSTED_PROXIES", "127.0.0.1/32")
        .environment("TOOLGATE_LAME_DUCK_SECONDS", "1");
    // Given two gates on one ledger, and clients that send calls, changes and reads through nginx without a pause.
    let world = World::of(&setup, None);
    let shop = Shop::open(&world);
    shop.grant(json!({}));
    let gates = [world.gate, setup.start()];
    let addresses = gates.each_ref().map(|gate| gate.address());
    let nginx = Nginx::start(&addresses, Upstreams::KeepAlive);
    let load = Load {
        address: nginx.address(),
        agent: shop.agent.key.clone(),
        done: AtomicUsize::new(0),
        calls: AtomicUsize::new(0),
        ends: AtomicBool::new(false),
    };
    let mut gates = gates.map(Some);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| load.run())).collect();
        // When each gate in turn is asked to stop, and started again.
        for _ in 0..ROUNDS {
            for (gate, address) in gates.iter_mut().zip(addresses) {
                let before = load.done();
                let ended = gate.take().unwrap().stop();
                assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
                *gate = Some(setup.clone().listen(address).start());
                while load.done() < before + REQUESTS {
                    std::thread::yield_now();
                }
            }
        }
        load.ends.store(true, Ordering::Relaxed);
        // Then every request was served as if nothing had happened.
        let lost: Vec<String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        assert_eq!(lost, Vec::<String>::new(), "of {} requests", load.done());
        assert_eq!(shop.upstream.count(), load.calls.load(Ordering::Relaxed), "every call was made once");
    });
}

/// What all clients send, and how far they are.
struct Load {
    address: SocketAddr,
    agent: String,
    done: AtomicUsize,
    calls: AtomicUsize,
    ends: AtomicBool,
}

impl Load {
    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Sends requests one after the other on kept connections; returns what was not as it should be.
    fn run(&self) -> Vec<String> {
        let call = json!({"tool": "payments.charges.read", "parameters": {"charge_id": "ch_7"}});
        let requests = [
            ("POST", "/api/v1/tools/invoke", self.agent.as_str(), Some(call), 200),
            ("GET", "/api/v1/whoami", ADMIN_TOKEN, None, 200),
            ("POST", "/api/v1/vaults", ADMIN_TOKEN, Some(json!({"name": "made meanwhile"})), 201),
        ];
        let mut lost = Vec::new();
        let mut connection = None;
        for (method, path, key, body, status) in requests.iter().cycle() {
            if self.ends.load(Ordering::Relaxed) {
                break;
            }
            match self.exchange(&mut connection, method, path, key, body.as_ref()) {
                Ok((got, _)) if got == *status => {}
                Ok((got, body)) => lost.push(format!("{method} {path}: {got} {body}")),
                Err(error) => {
                    lost.push(format!("{method} {path}: {error}"));
                    connection = None;
                }
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            if path.ends_with("invoke") {
                self.calls.fetch_add(1, Ordering::Relaxed);
            }
        }
        lost
    }

    fn exchange(
        &self,
        connection: &mut Option<BufReader<TcpStream>>,
        method: &str,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> std::io::Result<(u16, String)> {
        let stream = match connection {
            Some(stream) => stream,
            None => connection.insert(BufReader::new(TcpStream::connect(self.address)?)),
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut bytes = vec![0; length.unwrap_or_else(|| panic!("a response without a length: {head}"))];
        stream.read_exact(&mut bytes)?;
        // nginx ends a connection after so many requests.
        if head.contains("connection: close") {
            *connection = None;
        }
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }
}
