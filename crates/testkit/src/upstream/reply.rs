//! Responses of an upstream: normal ones, in one piece, chunked or compressed, and some that no honest service would
//! send.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{Received, echo};

/// A response, or what is sent instead of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A response with a length or in chunks, after which the connection stays open.
    Answer {
        status: u16,
        /// Written exactly like this, besides the one with the length.
        headers: Vec<(String, String)>,
        body: Body,
    },
    /// Bytes written without interpretation.
    Raw {
        bytes: Vec<u8>,
        /// Whether the connection stays open after that, for the next request.
        stays_open: bool,
    },
    /// Bytes that are repeated until the client disconnects.
    Forever {
        start: Vec<u8>,
        /// Repeated; not empty.
        piece: Vec<u8>,
        /// The delay after each piece.
        interval: Option<Duration>,
    },
    /// The connection is closed without a response.
    Close,
}

/// How a body travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// In one piece, with its length.
    Whole(Vec<u8>),
    /// As chunks, each written separately. Empty ones are skipped, because they would mark the end.
    Chunks(Vec<Vec<u8>>),
    /// As chunks that are made while the body is written.
    Produced(Producer),
}

/// Makes the chunks of a body by their number, each after the one before it was sent; none ends the body. May wait.
#[derive(Clone)]
pub struct Producer(Arc<dyn Fn(usize) -> Option<Vec<u8>> + Send + Sync>);

impl Producer {
    pub fn new(produce: impl Fn(usize) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(produce))
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Producer(..)")
    }
}

impl PartialEq for Producer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Producer {}

impl Reply {
    /// Bytes without a content type.
    pub fn bytes(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Answer { status, headers: Vec::new(), body: Body::Whole(body.into()) }
    }

    pub fn text(status: u16, text: &str) -> Self {
        Self::bytes(status, text).header("Content-Type", "text/plain; charset=utf-8")
    }

    pub fn json(status: u16, value: Value) -> Self {
        Self::json_text(status, &value.to_string())
    }

    /// JSON in this very spelling.
    pub fn json_text(status: u16, text: &str) -> Self {
        Self::bytes(status, text).header("Content-Type", "application/json")
    }

    /// A redirect (302) to this URL.
    pub fn redirect(url: &str) -> Self {
        Self::bytes(302, "").header("Location", url)
    }

    /// Chunks, each written separately.
    pub fn chunks<T: Into<Vec<u8>>>(status: u16, chunks: impl IntoIterator<Item = T>) -> Self {
        let chunks = chunks.into_iter().map(Into::into).collect();
        Self::Answer { status, headers: Vec::new(), body: Body::Chunks(chunks) }
    }

    /// Chunks that are made while they are sent.
    pub fn produced(status: u16, producer: Producer) -> Self {
        Self::Answer { status, headers: Vec::new(), body: Body::Produced(producer) }
    }

    /// Returns everything that the client sent. Every header comes back as `x-echo-NAME`, and the body is JSON with the
    /// request and, of each header value and each value of the query, every encoding in which a secret could hide: as
    /// it is, JSON-escaped, percent-encoded, in hexadecimal, in both alphabets of base64 at each alignment. For a value
    /// with a scheme, such as `Bearer`, the same for the part after it, and for `Basic` the decoded user name and
    /// password.
    pub fn echo(request: &Received) -> Self {
        echo::reply(request)
    }

    /// Raw bytes, then the end of the connection: garbage, a wrong length, a head within a head.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Raw { bytes: bytes.into(), stays_open: false }
    }

    /// Raw bytes on a connection that stays open: a body that never arrives, a second response that was not requested.
    pub fn raw_open(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Raw { bytes: bytes.into(), stays_open: true }
    }

    /// No response, and the connection stays open.
    pub fn silence() -> Self {
        Self::raw_open("")
    }

    /// A body of 16 KiB chunks that continues until the client disconnects.
    pub fn endless() -> Self {
        let piece = [&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat();
        Self::Forever { start: chunked_head(), piece, interval: None }
    }

    /// A body of one byte per interval that continues until the client disconnects.
    pub fn drip(interval: Duration) -> Self {
        Self::Forever { start: chunked_head(), piece: b"1\r\nx\r\n".to_vec(), interval: Some(interval) }
    }

    /// A header of one byte per interval that continues until the client disconnects.
    pub fn drip_head(interval: Duration) -> Self {
        let start = b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec();
        Self::Forever { start, piece: b"x".to_vec(), interval: Some(interval) }
    }

    /// About a thousandth of this many mebibytes on the wire, that many when expanded.
    pub fn gzip_bomb(mebibytes: usize) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![0; 1 << 20];
        for _ in 0..mebibytes {
            encoder.write_all(&zeros).expect("memory takes every byte");
        }
        let bytes = encoder.finish().expect("memory takes every byte");
        Self::bytes(200, bytes).header("Content-Encoding", "gzip")
    }

    /// Adds a header, written exactly like this. Panics if there is no response to add it to.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let Self::Answer { headers, .. } = &mut self else { panic!("only an answer has headers") };
        headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Compresses a whole body. Panics if there is none.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        let Self::Answer { body: Body::Whole(body), .. } = &mut self else { panic!("only a whole body is compressed") };
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).expect("memory takes every byte");
        *body = encoder.finish().expect("memory takes every byte");
        self.header("Content-Encoding", "gzip")
    }

    /// Cuts a whole body into chunks of this size. Panics if there is none.
    #[must_use]
    pub fn in_chunks_of(mut self, length: usize) -> Self {
        let Self::Answer { body, .. } = &mut self else { panic!("only an answer has chunks") };
        let Body::Whole(whole) = body else { panic!("only a whole body is cut into chunks") };
        *body = Body::Chunks(whole.chunks(length).map(<[u8]>::to_vec).collect());
        self
    }

    /// Writes the response; returns whether the connection stays open. `pause` waits, and returns whether to continue.
    pub(super) fn write(
        self,
        stream: &mut impl Write,
        request: &Received,
        pause: impl Fn(Duration) -> bool,
    ) -> io::Result<bool> {
        match self {
            Self::Answer { status, headers, body } => {
                write_answer(stream, request, status, &headers, body)?;
                Ok(true)
            }
            Self::Raw { bytes, stays_open } => {
                stream.write_all(&bytes)?;
                Ok(stays_open)
            }
            Self::Forever { start, piece, interval } => {
                stream.write_all(&start)?;
                // INVARIANT: each iteration writes, which fails when the client has disconnected or the upstream has
                // stopped.
                loop {
                    stream.write_all(&piece)?;
                    if interval.is_some_and(|interval| !pause(interval)) {
                        return Ok(false);
                    }
                }
            }
            Self::Close => Ok(false),
        }
    }
}

fn write_answer(
    stream: &mut impl Write,
    request: &Received,
    status: u16,
    headers: &[(String, String)],
    body: Body,
) -> io::Result<()> {
    let mut bytes = format!("HTTP/1.1 {status} \r\n");
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    let has_body = status >= 200 && status != 204 && status != 304;
    match &body {
        Body::Whole(body) if has_body => bytes.push_str(&format!("Content-Length: {}\r\n", body.len())),
        Body::Chunks(_) | Body::Produced(_) if has_body => bytes.push_str("Transfer-Encoding: chunked\r\n"),
        _ => {}
    }
    bytes.push_str("\r\n");
    let mut bytes = bytes.into_bytes();
    if !has_body || request.method == "HEAD" {
        return stream.write_all(&bytes);
    }
    match body {
        Body::Whole(body) => {
            bytes.extend(body);
            stream.write_all(&bytes)
        }
        Body::Chunks(chunks) => {
            stream.write_all(&bytes)?;
            for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
                write_chunk(stream, chunk)?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Body::Produced(Producer(produce)) => {
            stream.write_all(&bytes)?;
            for chunk in (0..).map_while(|number| produce(number)) {
                write_chunk(stream, &chunk)?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
    }
}

fn write_chunk(stream: &mut impl Write, chunk: &[u8]) -> io::Result<()> {
    stream.write_all(&[format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
}

fn chunked_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
}
