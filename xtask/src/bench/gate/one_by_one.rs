//! A caller that waits for each answer before it calls again and takes the time of each call. wrk corrects what it tells
//! for the calls that it might have made meanwhile, so that one long call counts several times; this does not.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A request that is sent over and over.
#[derive(Debug)]
pub struct Caller {
    address: String,
    request: String,
}

impl Caller {
    /// A request with this body, and with this key if there is one. The address begins with `http://`.
    pub fn new(url: &str, key: Option<&str>, body: &str) -> Result<Self, String> {
        let place = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let (address, path) = place.ok_or_else(|| format!("not an address with a path: {url}"))?;
        let authorization = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let length = body.len();
        let request = format!(
            "POST /{path} HTTP/1.1\r\nHost: {address}\r\n{authorization}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        Ok(Self { address: address.to_owned(), request })
    }

    /// Calls for this long; the time of each call, in microseconds. A failed call fails the run.
    pub fn times(&self, span: Duration) -> Result<Vec<f64>, String> {
        let failed = |error: io::Error| format!("calling {} one by one: {error}", self.address);
        let stream = TcpStream::connect(&self.address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
        let mut answers = BufReader::new(&stream);
        let mut times = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < span {
            let start = Instant::now();
            (&stream).write_all(self.request.as_bytes()).map_err(failed)?;
            let status = read_answer(&mut answers).map_err(failed)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
            if status != "200" {
                return Err(format!("calling {} one by one: it answered {status}", self.address));
            }
        }
        Ok(times)
    }
}

/// Reads one answer to its end and tells its status.
fn read_answer(answers: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    io::copy(&mut answers.take(length), &mut io::sink())?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_one_after_the_other() {
        let mut answers =
            &b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n"[..];
        assert_eq!(read_answer(&mut answers).unwrap(), "200");
        assert_eq!(read_answer(&mut answers).unwrap(), "429");
        assert!(read_answer(&mut answers).is_err(), "there are no more");
    }

    #[test]
    fn a_request_says_where_it_goes_and_by_whom() {
        let caller = Caller::new("http://127.0.0.1:1/v1/echo", Some("key"), "{}").unwrap();
        assert_eq!(caller.address, "127.0.0.1:1");
        assert!(caller.request.starts_with("POST /v1/echo HTTP/1.1\r\n"), "{}", caller.request);
        assert!(caller.request.contains("\r\nAuthorization: Bearer key\r\n"), "{}", caller.request);
        assert!(Caller::new("127.0.0.1:1", None, "").is_err());
    }
}
