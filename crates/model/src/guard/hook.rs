//! The hooks: points at which guardians are asked.

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A person, to the agent.
    User,
    Agent,
    /// The operator of the agent.
    System,
}

/// The direction of a message of another protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Away from the agent.
    Outbound,
    /// To the agent.
    Inbound,
}

impl Direction {
    /// The stored and displayed form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outbound => "outbound",
            Self::Inbound => "inbound",
        }
    }
}

/// A point at which guardians are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hook {
    /// Something starts the agent.
    AgentTrigger,
    /// A tool is about to be called.
    ToolCallRequest,
    /// A tool has returned a result.
    ToolCallResult,
    Message(Role),
    /// Memory is about to be given to the agent.
    MemoryContextRetrieval,
    /// Memory is about to be stored.
    MemoryStore,
    /// Knowledge was found and is about to be given to the agent.
    KnowledgeRetrieval,
    /// A message of the Model Context Protocol.
    Mcp(Direction),
    /// A message to another agent.
    A2aSend,
    /// A message to another agent with a streamed response.
    A2aStream,
    /// A task of another agent is to be cancelled.
    A2aCancel,
    /// A task of another agent is queried.
    A2aGetTask,
    /// How another agent notifies about its tasks.
    A2aNotificationConfig,
    /// Other messages between agents: lists of tasks, cards.
    A2aOther,
}

impl Hook {
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

    /// The form that is stored, shown, configured and used in policies.
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

    /// Parses [`Hook::as_str`].
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
