//! A caller that waits for each response before the next call: it measures the time of each call, or makes an exact
//! number of calls. wrk corrects its figures for the calls that it could have made in the meantime, so that one long
//! call counts several times; this does not.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::load::Request;
use super::programs;

/// A request that is sent over and over.
#[derive(Debug)]
pub struct Caller {
    address: String,
    request: String,
}

impl Caller {
    pub fn new(request: &Request) -> Result<Self, String> {
        let Request { url, headers, body } = request;
        let place = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let (address, path) = place.ok_or_else(|| format!("not an address with a path: {url}"))?;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "POST /{path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        Ok(Self { address: address.to_owned(), request })
    }

    /// Calls for this long; the time of each call, in microseconds. A failed call fails the run.
    pub fn times(&self, span: Duration) -> Result<Vec<f64>, String> {
        let mut connection = self.connect()?;
        let mut times = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < span {
            let start = Instant::now();
            self.send(&mut connection, 0)?;
            self.receive(&mut connection)?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    }

    /// Calls on all connections at once, then waits for all responses, this many times; the rounds are spread evenly
    /// over `span`, or follow each other at once if they take longer. A failed call fails the run.
    pub fn call(&self, connections: u32, rounds: u32, span: Duration) -> Result<(), String> {
        let mut connections = (0..connections).map(|_| self.connect()).collect::<Result<Vec<_>, _>>()?;
        let begun = Instant::now();
        for round in 0..rounds {
            programs::pause((span / rounds * round).saturating_sub(begun.elapsed()));
            let mut numbered = connections.iter_mut().enumerate();
            numbered.try_for_each(|(number, connection)| self.send(connection, number))?;
            connections.iter_mut().try_for_each(|connection| self.receive(connection))?;
        }
        programs::pause(span.saturating_sub(begun.elapsed()));
        Ok(())
    }

    fn connect(&self) -> Result<BufReader<TcpStream>, String> {
        let stream = TcpStream::connect(&self.address).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            Ok(stream)
        });
        stream.map(BufReader::new).map_err(|error| self.failed(&error))
    }

    fn send(&self, connection: &mut BufReader<TcpStream>, number: usize) -> Result<(), String> {
        let request = Request::numbered(&self.request, number);
        connection.get_mut().write_all(request.as_bytes()).map_err(|error| self.failed(&error))
    }

    fn receive(&self, connection: &mut BufReader<TcpStream>) -> Result<(), String> {
        let status = read_response(connection).map_err(|error| self.failed(&error))?;
        if status == "200" { Ok(()) } else { Err(self.failed(&format!("status {status}"))) }
    }

    fn failed(&self, reason: &dyn Display) -> String {
        format!("a call to {} failed: {reason}", self.address)
    }
}

/// Reads one response to its end and returns its status.
fn read_response(responses: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    responses.read_line(&mut line)?;
    let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        if responses.read_line(&mut line)? == 0 {
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
    io::copy(&mut responses.take(length), &mut io::sink())?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_one_after_the_other() {
        let mut responses =
            &b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n"[..];
        assert_eq!(read_response(&mut responses).unwrap(), "200");
        assert_eq!(read_response(&mut responses).unwrap(), "429");
        assert!(read_response(&mut responses).is_err(), "there are no more");
    }

    #[test]
    fn a_request_says_where_it_goes_and_by_whom() {
        let caller = Caller::new(&Request::new("http://127.0.0.1:1/v1/echo".to_owned(), Some("key"), "{}")).unwrap();
        assert_eq!(caller.address, "127.0.0.1:1");
        assert!(caller.request.starts_with("POST /v1/echo HTTP/1.1\r\n"), "{}", caller.request);
        assert!(caller.request.contains("\r\nAuthorization: Bearer key\r\n"), "{}", caller.request);
        assert!(Caller::new(&Request::new("127.0.0.1:1".to_owned(), None, "")).is_err());
    }
}
