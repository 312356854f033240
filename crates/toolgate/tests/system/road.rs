//! A road to a gate that stays the same when the gate does not.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A fixed address in front of gates whose addresses change with every start.
pub struct Road {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
}

impl Road {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::new(Mutex::new(target));
        let shared = Arc::clone(&target);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let target = *shared.lock().unwrap();
                // No gate, no connection: whoever connects sees what it would see without the road.
                let Ok(far) = TcpStream::connect(target) else { continue };
                carry(near.try_clone().unwrap(), far.try_clone().unwrap());
                carry(far, near);
            }
        });
        Self { address, target }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = target;
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.flush();
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = from.shutdown(std::net::Shutdown::Both);
    });
}
