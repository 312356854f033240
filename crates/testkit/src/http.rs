//! The smallest HTTP client that tests need: one request, one connection, loopback only, blocking.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A test that waits longer than this for a response has found a bug.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, and values, in the order of arrival.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the first header of this name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` where it is empty. Panics where it is something else.
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request with these headers besides `Host`, `Content-Length` and `Connection`.
pub fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Answer> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let mut bytes = request.into_bytes();
    bytes.extend_from_slice(body);
    parse(&send_raw(address, &bytes)?)
}

/// Sends bytes as they are and reads until the other side closes.
pub fn send_raw(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    assert!(address.ip().is_loopback(), "tests speak to loopback only, not to {address}");
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let written = stream.write_all(bytes);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A server that has refused a request early may close without reading the rest: the response counts.
    if answer.is_empty() {
        written?;
        read?;
    }
    Ok(answer)
}

/// Parses a response that ends with the bytes.
pub fn parse(bytes: &[u8]) -> io::Result<Answer> {
    let cut_off = || io::Error::new(io::ErrorKind::UnexpectedEof, "the response ended early");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(cut_off)?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(cut_off)?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let answer = Answer { status, headers, body: Vec::new() };
    let rest = &bytes[end + 4..];
    let body = match (answer.header("content-length"), answer.header("transfer-encoding")) {
        (Some(length), _) => {
            let length: usize = length.parse().map_err(|_| cut_off())?;
            rest.get(..length).ok_or_else(cut_off)?.to_vec()
        }
        (None, Some("chunked")) => unchunk(rest).ok_or_else(cut_off)?,
        _ => rest.to_vec(),
    };
    Ok(Answer { body, ..answer })
}

/// `None` where the last chunk, which is empty, is missing.
fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(rest.get(..end)?).ok()?, 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + length)?);
        rest = rest.get(end + 4 + length..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_in_either_form_of_length() {
        let plain = parse(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\n{}").unwrap();
        assert_eq!((plain.status, plain.text().as_str(), plain.header("x-a")), (201, "{}", Some("b")));
        let chunked = parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
        assert_eq!(chunked.unwrap().text(), "abc");
    }

    #[test]
    fn an_answer_that_broke_off_is_an_error() {
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Le").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n").is_err());
    }
}
