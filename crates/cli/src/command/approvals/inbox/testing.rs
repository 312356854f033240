//! Approvals and inboxes for the tests of this room.

use serde_json::{Value, json};
use toolgate_model::time::Timestamp;

use super::keyboard::Input;
use super::screen::{Size, screen};
use super::state::{Effect, Inbox};
use crate::command::approvals::approval::Approval;
use crate::command::approvals::feed::News;

/// A time after the one when approvals of tests are asked for, and long before they end.
pub(super) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + milliseconds).unwrap()
}

/// The approval of a command line as the gate tells it, with some members replaced.
pub(super) fn described(number: u32, changes: Value) -> Value {
    let mut value = json!({
        "id": format!("appr_{number}"), "status": "pending", "agent_id": "coder", "actor_id": "coder",
        "tool": "shell.Bash", "category": "exec", "description": "run the tests",
        "arguments": {"command": "cargo test && npm ci"}, "original_arguments": null, "digest": format!("d{number}"),
        "reasons": [{"source": "tool", "text": "the tool asks for it"}],
        "risk": {"level": "medium", "notes": ["reaches the network"]},
        "parts": [{"text": "cargo test", "state": "granted"}, {"text": "npm ci", "state": "new", "why": "no rule"}],
        "session": {"name": "work", "owner_id": "ann", "workspace": "/home/ann/shop"},
        "approvers": {"needed": 1, "given": 0}, "groups": [], "separation_of_duties": false, "coverable": true,
        "offers": [
            {"scope": "always", "rule": "the rule in the words of the gate"},
            {"scope": {"always_prefix": {"prefix": "cargo test"}}, "matches": ["cargo test --all"], "does_not_match": ["cargo publish"]},
            {"scope": {"always_prefix": {"prefix": "npm ci"}}},
        ],
        "votes": [], "answer": null, "reason": null, "notice": null, "standing_approval_id": null,
        "created_at": at(i64::from(number)), "expires_at": at(300_000), "resolved_at": null, "question": null,
    });
    value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    value
}

/// The same, read.
pub(super) fn approval(number: u32, changes: Value) -> Approval {
    Approval::read(&described(number, changes)).unwrap()
}

/// A question.
pub(super) fn question(number: u32) -> Value {
    described(
        number,
        json!({"question": {"text": "Which colour?", "options": ["red", {"label": "blue"}]}, "parts": null}),
    )
}

/// An inbox in which these wait, a second ago.
pub(super) fn inbox(waiting: Vec<Value>) -> Inbox {
    let mut inbox = Inbox::new("http://gate", Size { columns: 100, rows: 50 }, at(0));
    inbox.receive(News::Open, at(0));
    inbox.receive(News::Waiting(waiting), at(0));
    inbox
}

/// Types letters one by one, slowly, two seconds after the inbox was made.
pub(super) fn type_slowly(inbox: &mut Inbox, letters: &str) -> Option<Effect> {
    let mut effect = None;
    for letter in letters.chars() {
        let input = if letter == '\n' { Input::Enter } else { Input::Letter(letter) };
        effect = inbox.press(&[input], at(2_000));
    }
    effect
}

/// The screen without tones.
pub(super) fn seen(inbox: &Inbox) -> String {
    screen(inbox, at(2_000)).iter().map(|line| format!("{}\n", line.plain().trim_end())).collect()
}
