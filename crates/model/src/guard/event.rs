//! The event that guardians are asked about, independent of any protocol.

use std::borrow::Cow;

use super::content::Content;
use super::hook::Hook;
use crate::time::Timestamp;

/// Something that is about to happen, or whose result is about to be used.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent<'a> {
    pub hook: Hook,
    pub agent: AgentRef<'a>,
    /// The tool, if it is about one: `service.tool`, or the asking runtime's name of it.
    pub tool: Option<Cow<'a, str>>,
    /// Links the request of a tool to its result.
    pub execution: Option<Cow<'a, str>>,
    /// The conversation.
    pub session: Option<Cow<'a, str>>,
    /// The turn of the conversation.
    pub turn: Option<Cow<'a, str>>,
    /// The step of the turn.
    pub step: Option<Cow<'a, str>>,
    /// The person that the agent works for, as named by the asking runtime.
    pub user: Option<Cow<'a, str>>,
    /// The method, if it is a message of another protocol.
    pub method: Option<Cow<'a, str>>,
    /// The agent's own reason.
    pub reasoning: Option<Cow<'a, str>>,
    pub time: Timestamp,
    /// What would be used.
    pub content: Content<'a>,
}

/// An agent as events name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRef<'a> {
    pub id: Cow<'a, str>,
    pub name: Option<Cow<'a, str>>,
}
