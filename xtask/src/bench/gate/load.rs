//! External load: wrk posts one fixed request repeatedly and reports the results.

use std::path::PathBuf;
use std::time::Duration;

use super::one_by_one::Caller;
use super::programs;
use super::scratch::Scratch;
use crate::process::program;

/// A POST with a JSON body. The address begins with `http://`.
#[derive(Debug)]
pub struct Request {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// The id of a JSON-RPC request, as it is in its body. A session takes no id twice at a time, so each request in flight gets
/// another one, of the same length.
pub const FIRST_ID: &str = r#""id":1000,"#;

/// The request, as a script for wrk.
#[derive(Debug)]
pub struct Target {
    url: String,
    script: PathBuf,
    caller: Caller,
}

/// The results of wrk. Calls without a response when it ended are not included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Responses.
    pub calls: u64,
    /// Responses per second.
    pub rate: f64,
    /// The median latency, in microseconds.
    pub p50: f64,
    /// The 99th percentile of the latency, in microseconds.
    pub p99: f64,
}

impl Request {
    /// With this key, if there is one.
    pub fn new(url: String, key: Option<&str>, body: &str) -> Self {
        let headers = key.map(|key| ("Authorization", format!("Bearer {key}"))).into_iter().collect();
        Self { url, headers, body: body.to_owned() }
    }

    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl Target {
    /// `name` is that of the script.
    pub fn new(scratch: &Scratch, name: &str, request: &Request) -> Result<Self, String> {
        let script = scratch.write(&format!("{name}.lua"), &script(request))?;
        Ok(Self { url: request.url.clone(), script, caller: Caller::new(request)? })
    }

    /// Calls it one call after the other for this long; the time of each, in microseconds.
    pub fn one_by_one(&self, span: Duration) -> Result<Vec<f64>, String> {
        self.caller.times(span)
    }

    /// Makes this many calls on each of these connections, in step, spread over `span`.
    pub fn call(&self, connections: u32, rounds: u32, span: Duration) -> Result<(), String> {
        self.caller.call(connections, rounds, span)
    }

    /// Loads it with this many connections for this long. A failed call fails the run.
    pub fn load(&self, connections: u32, span: Duration) -> Result<Figures, String> {
        let connections = connections.to_string();
        let span = format!("{}s", span.as_secs());
        let mut command = program("wrk", &["--threads", "1", "--connections", &connections, "--duration", &span]);
        command.args(["--timeout", "10s", "--script"]).arg(&self.script).arg(&self.url);
        let printed = programs::output(&mut command)?;
        let figures = read(&printed).ok_or_else(|| format!("wrk printed no figures:\n{printed}"))?;
        figures.map_err(|errors| format!("calls to {} failed: {errors}", self.url))
    }
}

impl Request {
    /// The body, or another text that contains it, with the id of the request of this number.
    pub fn numbered(text: &str, number: usize) -> String {
        text.replacen(FIRST_ID, &format!(r#""id":{},"#, 1000 + number), 1)
    }
}

/// The request does not change, so wrk builds it once and runs no script while it measures; those with an id are built
/// before.
fn script(Request { headers, body, .. }: &Request) -> String {
    let headers = headers.iter().map(|(name, value)| format!("wrk.headers[\"{name}\"] = \"{value}\"\n"));
    let headers: String = headers.collect();
    let ids = if body.contains(FIRST_ID) { IDS } else { "" };
    format!(
        r#"wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
{headers}wrk.body = [==[{body}]==]
{ids}function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("figures %d %d %.1f %.1f %d %d %d %d %d\n",
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
"#
    )
}

/// Gives requests ids from 1001 to 9000 in turn.
const IDS: &str = r#"local requests, last = {}, 0
function init()
    for number = 1, 8000 do
        local body = wrk.body:gsub('"id":1000,', '"id":' .. (1000 + number) .. ',', 1)
        requests[number] = wrk.format(nil, nil, nil, body)
    end
end
function request()
    last = last % #requests + 1
    return requests[last]
end
"#;

/// Parses the line that the script prints; the inner error counts failures.
fn read(printed: &str) -> Option<Result<Figures, String>> {
    let line = printed.lines().find_map(|line| line.strip_prefix("figures "))?;
    let words: Vec<&str> = line.split(' ').collect();
    let [calls, microseconds, p50, p99, errors @ ..] = words.as_slice() else { return None };
    let kinds = ["connect", "read", "write", "status other than 2xx or 3xx", "timeout"];
    let counts: Vec<u64> = errors.iter().map(|count| count.parse().ok()).collect::<Option<_>>()?;
    if counts.len() != kinds.len() {
        return None;
    }
    let calls: u64 = calls.parse().ok()?;
    let seconds = microseconds.parse::<f64>().ok().filter(|duration| *duration > 0.0)? / 1e6;
    let figures = Figures { calls, rate: calls as f64 / seconds, p50: p50.parse().ok()?, p99: p99.parse().ok()? };
    let failed: Vec<String> = kinds
        .iter()
        .zip(&counts)
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    Some(match (failed.is_empty(), calls) {
        (true, 0) => Err("no call completed".to_owned()),
        (true, _) => Ok(figures),
        (false, _) => Err(failed.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_wrk_prints() {
        let printed = "Running 2s test\n  1 threads\nfigures 4000 2000000 480.0 1200.5 0 0 0 0 0\n";
        let figures = Figures { calls: 4000, rate: 2000.0, p50: 480.0, p99: 1200.5 };
        assert_eq!(read(printed), Some(Ok(figures)));
    }

    #[test]
    fn a_failed_call_fails_the_run() {
        let printed = "figures 4000 2000000 480.0 1200.5 0 2 0 7 0\n";
        assert_eq!(read(printed), Some(Err("2 read, 7 status other than 2xx or 3xx".to_owned())));
        assert_eq!(read("figures 0 2000000 0.0 0.0 0 0 0 0 0"), Some(Err("no call completed".to_owned())));
    }

    #[test]
    fn anything_else_is_no_figure() {
        assert_eq!(read("unable to connect"), None);
        assert_eq!(read("figures 4000 0 480.0 1200.5 0 0 0 0 0"), None);
        assert_eq!(read("figures 4000 2000000 480.0 1200.5 0"), None);
    }
}
