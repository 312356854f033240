//! A mounted server that is a process: this program, started by the gate, with one message in each line. It repeats the
//! id of a request and knows the same tool as the servers over HTTP.

use std::io::{self, BufRead, Write};

use super::message::Era;

/// The command of `cargo xtask bench` that is this server.
pub const COMMAND: &str = "mcp-process";

/// Serves until its input ends.
pub fn serve() -> Result<(), String> {
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    respond(input, output).map_err(|error| format!("the messages cannot be read or written: {error}"))
}

fn respond(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let (result, list) = (Era::Modern.result(), Era::Modern.list());
    let (mut line, mut response) = (String::new(), String::new());
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Some((id, rest)) = request(&line) else { continue };
        let (member, value) = match rest.split('"').next() {
            Some("tools/call") => ("result", result.as_str()),
            Some("tools/list") => ("result", list.as_str()),
            Some("server/discover") => ("result", Era::Modern.greeting()),
            _ => ("error", r#"{"code":-32601,"message":"no such method"}"#),
        };
        response.clear();
        response.extend(["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"", member, "\":", value, "}\n"]);
        output.write_all(response.as_bytes())?;
        output.flush()?;
    }
}

/// The id of a request and what follows its method's first quote, in the form in which the gate writes it.
fn request(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("{\"jsonrpc\":\"2.0\",\"id\":")?.split_once(",\"method\":\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_get_responses_with_their_ids_and_notifications_none() {
        let input = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{}}\n\
                     {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n\
                     {\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"initialize\",\"params\":{}}\n";
        let mut output = Vec::new();
        respond(input.as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert!(lines[0].starts_with("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\""), "{output}");
        assert!(lines[1].starts_with("{\"jsonrpc\":\"2.0\",\"id\":8,\"error\":"), "{output}");
        assert_eq!(lines.len(), 2);
    }
}
