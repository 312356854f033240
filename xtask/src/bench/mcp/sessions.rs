//! The memory that idle sessions of legacy clients take.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::super::gate::api::Api;
use super::super::gate::subject::Subject;
use super::super::gate::{programs, usage};
use super::gate::open_session;

/// How many sessions are opened.
pub const COUNT: usize = 1_000;
/// How many are opened before anything is measured, so that what every first request costs is not counted.
const BEFORE: usize = 50;
const REST: Duration = Duration::from_millis(1500);

/// Resident memory that was added, in megabytes.
#[derive(Debug, Clone, Copy)]
pub struct SessionMemory {
    pub sessions: f64,
    /// By the open stream of each, in addition.
    pub streams: f64,
}

/// Opens sessions, and a stream of each.
pub fn measure(subject: &Subject) -> Result<SessionMemory, String> {
    let api = subject.as_agent();
    let resident = || {
        programs::pause(REST);
        usage::resident(subject.process())
    };
    let warm: Vec<String> = (0..BEFORE).map(|_| open_session(api)).collect::<Result<_, _>>()?;
    let warm = warm.iter().map(|session| follow(api, session)).collect::<Result<Vec<_>, _>>()?;
    drop(warm);
    let before = resident()?;
    let sessions: Vec<String> = (0..COUNT).map(|_| open_session(api)).collect::<Result<_, _>>()?;
    let open = resident()?;
    let streams = sessions.iter().map(|session| follow(api, session)).collect::<Result<Vec<_>, _>>()?;
    let followed = resident()?;
    drop(streams);
    Ok(SessionMemory { sessions: open - before, streams: followed - open })
}

/// Opens the stream of a session and waits until it is open.
fn follow(Api { address, key }: Api<'_>, session: &str) -> Result<TcpStream, String> {
    let opened = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nAccept: text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut head = [0; 512];
        let length = stream.read(&mut head)?;
        Ok::<_, std::io::Error>((stream, String::from_utf8_lossy(head.get(..length).unwrap_or_default()).into_owned()))
    };
    let (stream, head) = opened().map_err(|error| format!("the stream of a session could not be opened: {error}"))?;
    if head.starts_with("HTTP/1.1 200") { Ok(stream) } else { Err(format!("the stream of a session: {head}")) }
}
