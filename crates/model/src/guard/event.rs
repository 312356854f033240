//! The event that a guardian is asked about, in no protocol's words.

use std::borrow::Cow;

use super::content::Content;
use super::hook::Hook;
use crate::time::Timestamp;

/// What is about to happen, or has just happened and is about to be used.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent<'a> {
    /// At which point.
    pub hook: Hook,
    /// Of which agent.
    pub agent: AgentRef<'a>,
    /// The tool, where it is about one: `service.tool`, or what whoever asks calls it.
    pub tool: Option<Cow<'a, str>>,
    /// What ties the request of a tool to its result.
    pub execution: Option<Cow<'a, str>>,
    /// The conversation.
    pub session: Option<Cow<'a, str>>,
    /// The turn of the conversation.
    pub turn: Option<Cow<'a, str>>,
    /// The step of the turn.
    pub step: Option<Cow<'a, str>>,
    /// The person that the agent works for, as whoever asks names them.
    pub user: Option<Cow<'a, str>>,
    /// The method of the other protocol, where a message of one is looked at.
    pub method: Option<Cow<'a, str>>,
    /// Why the agent wants it, in its own words.
    pub reasoning: Option<Cow<'a, str>>,
    /// When.
    pub time: Timestamp,
    /// What would be used.
    pub content: Content<'a>,
}

/// An agent as events name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRef<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// What people call it.
    pub name: Option<Cow<'a, str>>,
}
