//! The operations of the protocol, with their names in both versions and what they are to grants and guardians.

use super::Version;
use crate::descriptor::SafetyTier;
use crate::guard::Hook;

/// What is asked of another agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// The agent's card for callers that it knows.
    Card,
    Cancel,
    Get,
    List,
    PushDelete,
    PushGet,
    PushList,
    PushSet,
    Send,
    Stream,
    Subscribe,
}

/// One row for each operation.
struct Row {
    operation: Operation,
    /// The name of its tool.
    word: &'static str,
    scope: &'static str,
    /// Its JSON-RPC method in 1.0.
    modern: &'static str,
    /// Its JSON-RPC method in 0.3, which is its name to guardians.
    legacy: &'static str,
    hook: Hook,
    tier: SafetyTier,
}

const fn row(
    operation: Operation,
    word: &'static str,
    scope: &'static str,
    modern: &'static str,
    legacy: &'static str,
    hook: Hook,
    tier: SafetyTier,
) -> Row {
    Row { operation, word, scope, modern, legacy, hook, tier }
}

#[rustfmt::skip]
const TABLE: [Row; 11] = [
    row(Operation::Card, "card", "a2a.card", "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", Hook::A2aOther, SafetyTier::Read),
    row(Operation::Cancel, "cancel", "a2a.cancel", "CancelTask", "tasks/cancel", Hook::A2aCancel, SafetyTier::Write),
    row(Operation::Get, "get", "a2a.read", "GetTask", "tasks/get", Hook::A2aGetTask, SafetyTier::Read),
    row(Operation::List, "list", "a2a.read", "ListTasks", "tasks/list", Hook::A2aOther, SafetyTier::Read),
    row(Operation::PushDelete, "push_delete", "a2a.push", "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete", Hook::A2aNotificationConfig, SafetyTier::Write),
    row(Operation::PushGet, "push_get", "a2a.push", "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get", Hook::A2aNotificationConfig, SafetyTier::Read),
    row(Operation::PushList, "push_list", "a2a.push", "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list", Hook::A2aNotificationConfig, SafetyTier::Read),
    row(Operation::PushSet, "push_set", "a2a.push", "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", Hook::A2aNotificationConfig, SafetyTier::Write),
    row(Operation::Send, "send", "a2a.send", "SendMessage", "message/send", Hook::A2aSend, SafetyTier::Write),
    row(Operation::Stream, "stream", "a2a.stream", "SendStreamingMessage", "message/stream", Hook::A2aStream, SafetyTier::Write),
    row(Operation::Subscribe, "subscribe", "a2a.read", "SubscribeToTask", "tasks/resubscribe", Hook::A2aNotificationConfig, SafetyTier::Read),
];

impl Operation {
    pub const ALL: [Self; 11] = [
        Self::Card,
        Self::Cancel,
        Self::Get,
        Self::List,
        Self::PushDelete,
        Self::PushGet,
        Self::PushList,
        Self::PushSet,
        Self::Send,
        Self::Stream,
        Self::Subscribe,
    ];

    fn row(self) -> &'static Row {
        // INVARIANT: the table has every operation, which a test checks; the first row only satisfies the compiler.
        let [first, ..] = &TABLE;
        TABLE.iter().find(|row| row.operation == self).unwrap_or(first)
    }

    /// As definitions write it, which is also the name of its tool.
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// Reads [`Operation::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.word == text).map(|row| row.operation)
    }

    /// The scope that a grant must have.
    pub fn scope(self) -> &'static str {
        self.row().scope
    }

    pub fn hook(self) -> Hook {
        self.row().hook
    }

    /// Its name to guardians: AOS uses the names of 0.3.
    pub fn guardian_name(self) -> &'static str {
        self.row().legacy
    }

    pub fn tier(self) -> SafetyTier {
        self.row().tier
    }

    /// Its method over JSON-RPC. Version 0.3 has no list of tasks there.
    pub fn method(self, version: Version) -> Option<&'static str> {
        match version {
            Version::V1_0 => Some(self.row().modern),
            Version::V0_3 => Some(self.row().legacy).filter(|_| self != Self::List),
        }
    }

    /// The operation and version of a JSON-RPC method: the name decides.
    pub fn of_method(method: &str) -> Option<(Self, Version)> {
        TABLE.iter().find_map(|row| match method {
            _ if row.modern == method => Some((row.operation, Version::V1_0)),
            _ if row.legacy == method && row.operation != Self::List => Some((row.operation, Version::V0_3)),
            _ => None,
        })
    }

    /// Whether its result is a stream of events.
    pub fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }

    /// Whether it brings a message to the agent.
    pub fn sends(self) -> bool {
        matches!(self, Self::Send | Self::Stream)
    }

    /// Whether it is about how an agent notifies about tasks, which the gate does not offer.
    pub fn is_push(self) -> bool {
        matches!(self, Self::PushDelete | Self::PushGet | Self::PushList | Self::PushSet)
    }

    /// Whether it concerns one task, which its parameter `id` names.
    pub fn names_task(self) -> bool {
        matches!(self, Self::Cancel | Self::Get | Self::Subscribe)
    }

    /// Whether guardians may modify the request: where AOS defines that, and where there is something to modify.
    pub fn request_modifiable(self) -> bool {
        matches!(self, Self::Send | Self::Stream | Self::Get)
    }

    /// Whether guardians may modify the response.
    pub fn response_modifiable(self) -> bool {
        !matches!(self, Self::Cancel)
    }
}
