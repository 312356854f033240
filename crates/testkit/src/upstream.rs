//! Services for tests to call: HTTP/1.1 on loopback, on a port that the system chooses, friendly or hostile as the test
//! asks. It records every request and can hold all responses back, so that calls are in flight without sleeping.
//!
//! ```text
//! let upstream = Upstream::start(|request| Reply::json(200, json!({"path": request.path()})));
//! upstream.hold();                          // no responses from here on
//! ... start 64 calls in threads ...
//! upstream.wait_for(64);                    // all have arrived
//! upstream.release();                       // and get their responses
//! assert_eq!(upstream.received()[0].header("authorization"), Some("Bearer key"));
//! ```
//!
//! An upstream that is dropped closes its port and its connections, whatever their state.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

mod echo;
mod payments;
mod received;
mod reply;
mod token_issuer;
mod token_server;

#[cfg(test)]
mod tests;

pub use received::Received;
pub use reply::{Body, Producer, Reply};
pub use token_issuer::TokenIssuer;
pub use token_server::{CLIENT_ID, CLIENT_SECRET, TokenServer};

/// A test that waits longer than this for an upstream has found a fault.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

impl Upstream {
    /// A service with this handler. Requests of several connections are handled concurrently.
    pub fn start(answer: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("the address of a listener");
        let shared =
            Arc::new(Shared { answer: Box::new(answer), state: Mutex::new(State::default()), changed: Condvar::new() });
        let listening = thread::spawn({
            let shared = Arc::clone(&shared);
            move || listen(&listener, &shared)
        });
        Self { address, shared, listening: Some(listening) }
    }

    /// A small payments service, which requires any bearer token: `POST /v1/charges`, `GET /v1/charges?limit=`, `GET
    /// /v1/charges/{id}`, `POST /v1/refunds`, `GET /v1/balance`. It stores charges, and invents those with an unknown
    /// id `ch_...`.
    pub fn payments() -> Self {
        let payments = payments::Payments::default();
        Self::start(move |request| payments.answer(request))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as `http://ADDRESS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in the order in which they arrived.
    pub fn received(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    /// The number of requests received.
    pub fn count(&self) -> usize {
        self.shared.lock().received.len()
    }

    /// The number of connections, including ended ones.
    pub fn connections(&self) -> usize {
        self.shared.lock().accepted
    }

    /// Holds all responses back from here on; requests still arrive.
    pub fn hold(&self) {
        self.shared.change(|state| state.held = true);
    }

    /// Sends the responses that were held back, and all later ones.
    pub fn release(&self) {
        self.shared.change(|state| state.held = false);
    }

    /// Waits until so many requests have arrived since the start. Panics when they do not.
    pub fn wait_for(&self, count: usize) {
        let state = self.shared.wait_while(TIMEOUT, |state| state.received.len() < count);
        assert!(state.received.len() >= count, "of {count} requests {} arrived", state.received.len());
    }

    /// Waits until so many connections have ended since the start. Panics when they do not.
    pub fn wait_for_ended_connections(&self, count: usize) {
        let state = self.shared.wait_while(TIMEOUT, |state| state.ended() < count);
        assert!(state.ended() >= count, "of {count} connections {} ended", state.ended());
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.change(|state| {
            state.stopped = true;
            for stream in state.open.values() {
                // Fails only where the client has ended the connection.
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        // Threads of connections end by themselves; one that is inside a test's closure could be waited for in vain.
        let woken = TcpStream::connect_timeout(&self.address, TIMEOUT).is_ok();
        if let Some(listening) = self.listening.take()
            && (woken || listening.is_finished())
        {
            let _ = listening.join();
        }
    }
}

/// The shared state of the threads of one upstream.
struct Shared {
    answer: Box<dyn Fn(&Received) -> Reply + Send + Sync>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    open: HashMap<usize, Arc<TcpStream>>,
    accepted: usize,
    held: bool,
    stopped: bool,
}

impl State {
    fn ended(&self) -> usize {
        self.accepted - self.open.len()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("a lock under which nothing panics")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait_while(&self, timeout: Duration, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| condition(state));
        waited.expect("a lock under which nothing panics").0
    }

    /// Waits; returns whether the upstream still runs after that.
    fn pause(&self, interval: Duration) -> bool {
        !self.wait_while(interval, |state| !state.stopped).stopped
    }

    /// Records the request and waits while responses are held back; returns whether the upstream still runs after that.
    fn arrive(&self, request: &Received) -> bool {
        self.change(|state| state.received.push(request.clone()));
        let waited = self.changed.wait_while(self.lock(), |state| state.held && !state.stopped);
        !waited.expect("a lock under which nothing panics").stopped
    }
}

/// Accepts until the upstream is dropped, which makes a last connection to signal it.
fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        // A client that disconnects before it is accepted does not matter.
        let Ok(stream) = stream else { continue };
        let Some(connection) = Connection::open(stream, shared) else { return };
        thread::spawn(move || {
            // An error is a client that went away.
            let _ = connection.serve();
        });
    }
}

struct Connection {
    number: usize,
    stream: Arc<TcpStream>,
    shared: Arc<Shared>,
}

impl Connection {
    /// `None` where the upstream has stopped.
    fn open(stream: TcpStream, shared: &Arc<Shared>) -> Option<Self> {
        // Each chunk must be sent separately.
        let _ = stream.set_nodelay(true);
        let stream = Arc::new(stream);
        let mut state = shared.lock();
        if state.stopped {
            return None;
        }
        let number = state.accepted;
        state.accepted += 1;
        state.open.insert(number, Arc::clone(&stream));
        Some(Self { number, stream, shared: Arc::clone(shared) })
    }

    fn serve(&self) -> io::Result<()> {
        let mut reader = BufReader::new(&*self.stream);
        while let Some(request) = Received::read(&mut reader)? {
            if !self.shared.arrive(&request) {
                return Ok(());
            }
            let reply = if request.is_malformed() { malformed() } else { (self.shared.answer)(&request) };
            let stays_open = reply.write(&mut &*self.stream, &request, |interval| self.shared.pause(interval))?;
            if !stays_open || !request.keeps_connection() {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.shared.change(|state| {
            state.open.remove(&self.number);
        });
    }
}

fn malformed() -> Reply {
    Reply::text(400, "this is no HTTP/1.1 request")
}
