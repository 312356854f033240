//! A request as an upstream received it, and its parser: as lenient as servers in the field, so that anything smuggled
//! into a request shows up as another header or another request.

use std::io::{self, BufRead, Read};

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Empty if the input is not HTTP/1.1; `target` then holds its beginning.
    pub method: String,
    /// The path and the query exactly as on the request line.
    pub target: String,
    /// Names in lower case, and values, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body, whole; without the framing of chunks.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of the first header of this name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The token of `Authorization: Bearer TOKEN`, unless it is empty.
    pub fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ").filter(|token| !token.is_empty())
    }

    /// The target up to the query, undecoded.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or(&self.target)
    }

    /// Names and values of the query, decoded.
    pub fn query(&self) -> Vec<(String, String)> {
        pairs(self.target.split_once('?').map_or("", |(_, query)| query).as_bytes())
    }

    /// Names and values of a body in the encoding of forms, decoded.
    pub fn form(&self) -> Vec<(String, String)> {
        pairs(&self.body)
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

    /// Whether the input is not an HTTP/1.1 request.
    pub fn is_malformed(&self) -> bool {
        self.method.is_empty()
    }

    /// Whether the client may send another request on the same connection.
    pub(super) fn keeps_connection(&self) -> bool {
        !self.is_malformed() && !self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The next request; `None` where the client has ended the connection instead.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let beginning = reader.fill_buf()?;
        match beginning.first() {
            None => return Ok(None),
            Some(byte) if byte.is_ascii_alphabetic() => {}
            // TLS, for one, has no lines that could be waited for.
            Some(_) => return Ok(Some(Self::malformed(&String::from_utf8_lossy(beginning)))),
        }
        let line = read_line(reader)?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some("HTTP/1.1"), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok(Some(Self::malformed(&line)));
        };
        let (method, target) = (method.to_owned(), target.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = read_line(reader)?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { return Ok(Some(Self::malformed(&line))) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self { method, target, headers, body: Vec::new() };
        request.body = request.read_body(reader)?;
        Ok(Some(request))
    }

    fn read_body(&self, reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
        if self.header("transfer-encoding").is_some() {
            return read_chunks(reader);
        }
        let Some(length) = self.header("content-length") else { return Ok(Vec::new()) };
        read_exactly(reader, length.parse().map_err(|_| broken("the content length is no number"))?)
    }

    fn malformed(beginning: &str) -> Self {
        Self { method: String::new(), target: beginning.to_owned(), headers: Vec::new(), body: Vec::new() }
    }
}

fn pairs(encoded: &[u8]) -> Vec<(String, String)> {
    url::form_urlencoded::parse(encoded).into_owned().collect()
}

/// A line without its end.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(broken("the request broke off"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Chunks, and the trailer, which is dropped.
fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let length = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(length, 16).map_err(|_| broken("the length of a chunk is no number"))?;
        if length == 0 {
            while !read_line(reader)?.is_empty() {}
            return Ok(body);
        }
        body.extend(read_exactly(reader, length)?);
        read_line(reader)?;
    }
}

fn read_exactly(reader: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = reader.take(length).read_to_end(&mut bytes)?;
    if u64::try_from(read) == Ok(length) { Ok(bytes) } else { Err(broken("the request broke off")) }
}

fn broken(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Vec<Received> {
        let mut requests = Vec::new();
        while let Ok(Some(request)) = Received::read(&mut bytes) {
            let ends = request.is_malformed();
            requests.push(request);
            if ends {
                break;
            }
        }
        requests
    }

    #[test]
    fn requests_are_read_whole_one_after_the_other() {
        let requests = read(
            b"POST /a?x=1%2B2&y HTTP/1.1\r\nX-A:  b \r\nContent-Length: 2\r\n\r\n{}\
              PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;e=1\r\nab\r\n1\r\nc\r\n0\r\nt: u\r\n\r\n\
              GET /c HTTP/1.1\r\n\r\n",
        );
        let methods: Vec<&str> = requests.iter().map(|request| request.method.as_str()).collect();
        assert_eq!(methods, ["POST", "PUT", "GET"]);
        assert_eq!((requests[0].path(), requests[0].header("x-a")), ("/a", Some("b")));
        let query = [("x".to_owned(), "1+2".to_owned()), ("y".to_owned(), String::new())];
        assert_eq!(requests[0].query(), query);
        assert_eq!(requests[0].json(), serde_json::json!({}));
        assert_eq!(requests[1].text(), "abc");
    }

    #[test]
    fn what_is_no_request_is_seen_and_what_broke_off_is_not() {
        assert!(read(b"\x16\x03\x01\x02\x00")[0].is_malformed());
        assert_eq!(read(b"GET /a b HTTP/1.1\r\n\r\n")[0].target, "GET /a b HTTP/1.1");
        assert_eq!(read(b"GET /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"), []);
        assert_eq!(read(b"GET /a HTTP/1.1\r\nX-"), []);
    }
}
