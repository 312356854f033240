//! Approvals at a terminal: the inbox on a terminal of its own with a person at the keys, and the commands beside it.

use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::world::{Actor, Reply, World, until};

mod commands;
mod inbox;
mod terminal;

/// A coding agent that asks before each of its calls.
struct Coder {
    admin: Actor,
    agent: Actor,
}

impl Coder {
    fn of(world: &World) -> Self {
        Self { admin: world.admin(), agent: world.agent("coder", &["tools.invoke"]) }
    }

    /// Asks to run a command, in a thread of its own; answers when it waits.
    fn asks(&self, command: &str) -> Waiting {
        self.asks_for(json!({"tool": "claude-code.Bash", "category": "exec", "arguments": {"command": command}}))
    }

    fn asks_for(&self, mut call: Value) -> Waiting {
        call["session"] = json!({"name": "s1", "workspace": "/home/ann/shop"});
        let known = self.pending();
        let agent = self.agent.clone();
        let thread = std::thread::spawn(move || agent.post("/api/v1/approvals/ask", &call));
        let approval = until("a call that waits", || self.pending().into_iter().find(|id| !known.contains(id)));
        Waiting { thread, approval }
    }

    fn pending(&self) -> Vec<String> {
        let list = self.admin.get("/api/v1/approvals?status=pending").ok();
        list["approvals"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// A call that waits.
struct Waiting {
    thread: JoinHandle<Reply>,
    approval: String,
}

impl Waiting {
    /// What became of it: the decision and the reason.
    fn answer(self) -> (String, String) {
        let answer = self.thread.join().unwrap().ok();
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        (text("decision"), text("reason"))
    }
}
