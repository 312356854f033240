//! The smallest client of the gate's API that preparing a benchmark needs: one request, one connection, loopback only.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A gate, and a key for requests to it.
#[derive(Debug, Clone, Copy)]
pub struct Api<'a> {
    pub address: SocketAddr,
    pub key: &'a str,
}

impl Api<'_> {
    /// Posts a JSON body and returns that of the response; any status but success is an error.
    pub fn post(&self, path: &str, body: &str) -> Result<String, String> {
        let answer = self.exchange(path, body).map_err(|error| format!("POST {path}: {error}"))?;
        let (status, body) = parse(&answer).ok_or_else(|| format!("POST {path}: not HTTP: {answer}"))?;
        if (200..300).contains(&status) { Ok(body.to_owned()) } else { Err(format!("POST {path}: {status} {body}")) }
    }

    fn exchange(&self, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let Self { address, key } = self;
        let length = body.len();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n{kind}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

/// The first text of this name in a JSON body, as far as it needs no unescaping: ids and keys do not.
pub fn field(body: &str, name: &str) -> Result<String, String> {
    let text = body.split_once(&format!("\"{name}\":\"")).and_then(|(_, rest)| rest.split_once('"'));
    text.map(|(value, _)| value.to_owned()).ok_or_else(|| format!("no `{name}` in {body}"))
}

fn parse(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    Some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_split_into_status_and_body() {
        let answer = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(parse(answer), Some((201, "{}")));
        assert_eq!(parse("SSH-2.0"), None);
    }

    #[test]
    fn a_field_is_found_or_named() {
        assert_eq!(field(r#"{"a":1,"id":"vault_1","x":"y"}"#, "id"), Ok("vault_1".to_owned()));
        assert_eq!(field(r#"{"a":1}"#, "id"), Err(r#"no `id` in {"a":1}"#.to_owned()));
    }
}
