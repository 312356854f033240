//! A proxy on loopback that adds a key to every request, for clients that cannot send one. Heads pass as they are otherwise.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A running proxy. It stops accepting when it is dropped; connections end with their clients.
pub struct KeyProxy {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl KeyProxy {
    /// Forwards to `target`, with this key as the bearer token.
    pub fn start(target: SocketAddr, key: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        let address = listener.local_addr().expect("the address of a listener");
        let stopped = Arc::new(AtomicBool::new(false));
        let (ended, key) = (Arc::clone(&stopped), key.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let key = key.clone();
                // An error is a side that went away.
                thread::spawn(move || drop(forward(&client, target, &key)));
            }
        });
        Self { address, stopped }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for KeyProxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Forwards one request and its response, and ends both connections: the response ends with its connection, so that none of
/// it has to be understood.
fn forward(client: &TcpStream, target: SocketAddr, key: &str) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line).to_ascii_lowercase();
        match text.split_once(':') {
            _ if text.trim().is_empty() => break,
            Some(("connection", _)) => continue,
            Some(("content-length", value)) => length = value.trim().parse().map_err(io::Error::other)?,
            Some(("transfer-encoding", _)) => return Err(io::Error::other("a body without a length is not forwarded")),
            _ => {}
        }
        head.extend(line);
    }
    head.extend(format!("Authorization: Bearer {key}\r\nConnection: close\r\n\r\n").bytes());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let server = TcpStream::connect(target)?;
    (&server).write_all(&[head, body].concat())?;
    thread::scope(|scope| {
        scope.spawn(|| {
            // Ends when the client does, or when the response has.
            let _ = reader.read(&mut [0]);
            let _ = server.shutdown(Shutdown::Both);
        });
        let copied = io::copy(&mut &server, &mut &*client);
        let _ = client.shutdown(Shutdown::Both);
        copied.map(drop)
    })
}
