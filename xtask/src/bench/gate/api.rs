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

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub head: String,
    pub body: String,
}

impl Response {
    /// The value of a header, by its name in lower case, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

impl Api<'_> {
    /// Posts a JSON body and returns that of the response; any status but success is an error.
    pub fn post(&self, path: &str, body: &str) -> Result<String, String> {
        self.post_with(path, &[], body).map(|response| response.body)
    }

    /// The same with further headers, for the whole response.
    pub fn post_with(&self, path: &str, headers: &[(&str, String)], body: &str) -> Result<Response, String> {
        let text = self.exchange(path, headers, body).map_err(|error| format!("POST {path}: {error}"))?;
        let (status, response) = parse(&text).ok_or_else(|| format!("POST {path}: not HTTP: {text}"))?;
        if (200..300).contains(&status) {
            Ok(response)
        } else {
            Err(format!("POST {path}: {status} {}", response.body))
        }
    }

    fn exchange(&self, path: &str, headers: &[(&str, String)], body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let Self { address, key } = self;
        let length = body.len();
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n{kind}{headers}\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

/// The first text of this name in a JSON body, as far as it needs no unescaping: ids and keys do not.
pub fn field(body: &str, name: &str) -> Result<String, String> {
    let text = body.split_once(&format!("\"{name}\":")).and_then(|(_, rest)| rest.trim_start().strip_prefix('"'));
    let text = text.and_then(|rest| rest.split_once('"'));
    text.map(|(value, _)| value.to_owned()).ok_or_else(|| format!("no `{name}` in {body}"))
}

fn parse(text: &str) -> Option<(u16, Response)> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    Some((status, Response { head: head.to_owned(), body: body.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_split_into_status_and_body() {
        let text = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nMcp-Session-Id: a\r\n\r\n{}";
        let (status, response) = parse(text).unwrap();
        assert_eq!((status, response.body.as_str(), response.header("mcp-session-id")), (201, "{}", Some("a")));
        assert_eq!(parse("SSH-2.0"), None);
    }

    #[test]
    fn a_field_is_found_or_named() {
        for body in [r#"{"a":1,"id":"vault_1","x":"y"}"#, "{\n  \"id\": \"vault_1\"\n}"] {
            assert_eq!(field(body, "id"), Ok("vault_1".to_owned()));
        }
        assert_eq!(field(r#"{"a":1}"#, "id"), Err(r#"no `id` in {"a":1}"#.to_owned()));
    }
}
