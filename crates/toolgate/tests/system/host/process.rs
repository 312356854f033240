//! A process of `toolgate host`, and its two streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_testkit::gate_process::signal;

/// How long an event may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A host's process that is ready.
pub struct HostProcess {
    child: Child,
    input: Option<ChildStdin>,
    events: Option<Receiver<String>>,
    stop_reading: std::sync::mpsc::Sender<()>,
    said: Option<JoinHandle<String>>,
    /// Its first event.
    pub ready: Value,
}

impl HostProcess {
    /// Starts it, and waits until it is ready.
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, events) = channel();
        let (stop_reading, stopped) = channel();
        let output = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output);
            while stopped.try_recv().is_err() {
                let Some(line) = next_line(&mut lines) else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            errors.read_to_string(&mut said).unwrap();
            said
        });
        let input = child.stdin.take();
        let mut host = Self { child, input, events: Some(events), stop_reading, said: Some(said), ready: Value::Null };
        host.ready = host.next();
        assert_eq!(host.ready["type"], "ready", "{}", host.ready);
        host
    }

    /// Sends a command.
    pub fn send(&mut self, command: Value) {
        self.send_bytes(command.to_string().as_bytes());
    }

    /// Sends a line.
    pub fn send_bytes(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).and_then(|()| input.write_all(b"\n")).and_then(|()| input.flush()).unwrap();
    }

    /// Wants a tool.
    pub fn call(&mut self, label: &str, tool: &str, arguments: Value) {
        self.send(json!({"type": "tool_call", "msg_id": "m1", "call_id": label, "tool": tool, "arguments": arguments}));
    }

    /// Approves a call.
    pub fn approve(&mut self, label: &str, scope: Value) {
        self.send(json!({"type": "tool_approve", "call_id": label, "scope": scope}));
    }

    /// The next event.
    pub fn next(&mut self) -> Value {
        match self.events.as_ref().unwrap().recv_timeout(TIMEOUT) {
            Ok(line) => serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")),
            Err(_) => {
                // Whatever it still does, what it has said so far tells why.
                let _ = self.child.kill();
                panic!("no event came; it said:\n{}", self.said.take().unwrap().join().unwrap());
            }
        }
    }

    /// The next event of this type; those of calls that go on meanwhile are passed over.
    pub fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// The next event, which is of this type and about this call.
    pub fn expect(&mut self, kind: &str, label: &str) -> Value {
        let event = self.next();
        assert_eq!((event["type"].as_str(), event["call_id"].as_str()), (Some(kind), Some(label)), "{event}");
        event
    }

    /// The next event, which is an error.
    pub fn expect_error(&mut self) -> Value {
        let event = self.next();
        assert_eq!(event["type"], "error", "{event}");
        event
    }

    /// The call runs and ends; answers its result.
    pub fn finish(&mut self, label: &str) -> Value {
        self.expect("tool_running", label);
        self.expect("tool_result", label)
    }

    /// Ends its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Reads its output no more: after the next event nobody does.
    pub fn close_output(&mut self) {
        self.stop_reading.send(()).unwrap();
        self.send(json!({"type": "ping"}));
        // The reader's end is the end of the pipe.
        while self.events.as_ref().unwrap().recv().is_ok() {}
    }

    /// Sends it a signal.
    pub fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// Ends it at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends its input and waits for its end, whatever it still says; answers its exit status.
    pub fn close(mut self) -> Option<i32> {
        self.close_input();
        self.child.wait().unwrap().code()
    }

    /// Waits for its end, after which it must not have said anything more; answers its exit status.
    pub fn end(mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        if let Some(line) = self.events.take().and_then(|events| events.recv_timeout(TIMEOUT).ok()) {
            panic!("it said more: {line}");
        }
        status.code()
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Both fail only where the process is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next_line(lines: &mut BufReader<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    (lines.read_line(&mut line).ok()? > 0).then_some(line)
}
