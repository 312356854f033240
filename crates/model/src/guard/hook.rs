//! The points at which a guardian is asked.

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A person, to the agent.
    User,
    /// The agent.
    Agent,
    /// Whoever runs the agent.
    System,
}

/// Which way a message of another protocol goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Away from the agent.
    Outbound,
    /// To the agent.
    Inbound,
}

impl Direction {
    /// As it is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outbound => "outbound",
            Self::Inbound => "inbound",
        }
    }
}

/// A point at which a guardian is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Something starts the agent.
    AgentTrigger,
    /// A tool is about to be called.
    ToolCallRequest,
    /// A tool has answered.
    ToolCallResult,
    /// Somebody says something.
    Message(Role),
    /// Memory is about to be put before the agent.
    MemoryContextRetrieval,
    /// Memory is about to be kept.
    MemoryStore,
    /// Knowledge was found and is about to be put before the agent.
    KnowledgeRetrieval,
    /// A message of the Model Context Protocol.
    Mcp(Direction),
    /// A message to another agent.
    A2aSend,
    /// A message to another agent, which answers in a stream.
    A2aStream,
    /// A task of another agent is to be ended.
    A2aCancel,
    /// A task of another agent is looked at.
    A2aGetTask,
    /// How another agent tells of its tasks.
    A2aNotificationConfig,
    /// Whatever else is said between agents: lists of tasks, cards.
    A2aOther,
}

impl Hook {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::AgentTrigger,
        Self::ToolCallRequest,
        Self::ToolCallResult,
        Self::Message(Role::User),
        Self::Message(Role::Agent),
        Self::Message(Role::System),
        Self::MemoryContextRetrieval,
        Self::MemoryStore,
        Self::KnowledgeRetrieval,
        Self::Mcp(Direction::Outbound),
        Self::Mcp(Direction::Inbound),
        Self::A2aSend,
        Self::A2aStream,
        Self::A2aCancel,
        Self::A2aGetTask,
        Self::A2aNotificationConfig,
        Self::A2aOther,
    ];

    /// As it is stored, shown, configured and named in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentTrigger => "agent_trigger",
            Self::ToolCallRequest => "tool_call_request",
            Self::ToolCallResult => "tool_call_result",
            Self::Message(Role::User) => "user_message",
            Self::Message(Role::Agent) => "agent_response",
            Self::Message(Role::System) => "system_message",
            Self::MemoryContextRetrieval => "memory_context_retrieval",
            Self::MemoryStore => "memory_store",
            Self::KnowledgeRetrieval => "knowledge_retrieval",
            Self::Mcp(Direction::Outbound) => "mcp_outbound",
            Self::Mcp(Direction::Inbound) => "mcp_inbound",
            Self::A2aSend => "a2a_send",
            Self::A2aStream => "a2a_stream",
            Self::A2aCancel => "a2a_cancel",
            Self::A2aGetTask => "a2a_get_task",
            Self::A2aNotificationConfig => "a2a_notification_config",
            Self::A2aOther => "a2a_other",
        }
    }

    /// Reads [`Hook::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == text)
    }
}

impl serde::Serialize for Hook {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Hook {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a hook"))
    }
}
