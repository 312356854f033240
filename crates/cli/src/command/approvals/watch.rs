//! `toolgate approvals watch`: one line per event, until a signal or the end of the reader.

use std::io;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;

use super::feed::{News, Start, follow};
use crate::client::Client;
use crate::command::Failure;
use crate::command::stop::stop_signals;
use crate::output::{Report, at, clean, plain, print, say};

/// How often the reader is checked while there are no events.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(500);

#[derive(Args)]
pub(crate) struct Watch {
    /// Exit after the first event
    #[arg(long)]
    once: bool,
    /// Start after the event with this sequence, or at the beginning of the log (`start`) [default: now]
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<String>,
}

impl Watch {
    pub(super) async fn run(self, client: &Client, json: bool) -> Result<Report, Failure> {
        let mut stop = stop_signals()?;
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let (sender, mut news) = unbounded_channel();
        let mut following = Box::pin(follow(client, self.after, Start::Events, sender));
        let mut lost = false;
        loop {
            let described = tokio::select! {
                biased;
                () = &mut stop => break,
                Some(described) = news.recv() => described,
                outcome = &mut following => {
                    outcome?;
                    break;
                }
                _ = look.tick() => {
                    if reader_is_gone() {
                        break;
                    }
                    continue;
                }
            };
            match described {
                News::Open if lost => {
                    lost = false;
                    say("toolgate: connected again");
                }
                News::Open | News::Waiting(_) => {}
                News::Lost(why) => {
                    lost = true;
                    say(&format!("toolgate: {}; retrying", clean(&why)));
                }
                News::Happened(event) => {
                    let line = if json { event.to_string() } else { line(&event) };
                    print(&line).map_err(|error| Failure::io("standard output", error))?;
                    if self.once || reader_is_gone() {
                        break;
                    }
                }
            }
        }
        Ok(Report::new(Value::Null, ""))
    }
}

fn line(event: &Value) -> String {
    let words = ["timestamp", "type", "approval.id", "approval.agent_id", "approval.tool", "approval.description"];
    let words = words.iter().map(|path| at(event, path)).filter(|value| !value.is_null());
    let line = words.map(plain).collect::<Vec<_>>().join("  ");
    if line.is_empty() { plain(event) } else { line }
}

/// Whether standard output is a pipe without a reader.
fn reader_is_gone() -> bool {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once)).is_ok_and(|found| found > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_when_what_and_of_whom_and_nothing_that_moves_the_cursor() {
        let event = json!({
            "sequence": 4, "type": "approval.requested", "timestamp": "2026-01-01T00:00:00.000+00:00",
            "approval": {"id": "appr_1", "agent_id": "coder", "tool": "shell.Bash", "description": "run\u{1b}[2J"},
        });
        assert_eq!(
            line(&event),
            "2026-01-01T00:00:00.000+00:00  approval.requested  appr_1  coder  shell.Bash  run\\u{1b}[2J"
        );
        assert_eq!(line(&json!("not\nan event")), "not\\u{a}an event");
    }
}
