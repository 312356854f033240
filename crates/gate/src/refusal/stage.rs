//! The stages of the path, as refusals and records name them.

/// Where on its path a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Who is calling.
    Identify,
    /// Which tool.
    Resolve,
    /// Which grant.
    Authorize,
    /// Within which limits.
    Constrain,
    /// What guardians say.
    Guard,
    /// What a person says.
    Approve,
    /// The durable step before.
    Admit,
    /// Carrying it out.
    Execute,
    /// What may be seen of the result.
    Inspect,
    /// The durable step after.
    Settle,
}

impl Stage {
    /// In the order of the pipeline.
    pub const ALL: [Self; 10] = [
        Self::Identify,
        Self::Resolve,
        Self::Authorize,
        Self::Constrain,
        Self::Guard,
        Self::Approve,
        Self::Admit,
        Self::Execute,
        Self::Inspect,
        Self::Settle,
    ];

    /// Reads [`Stage::as_str`] back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text)
    }

    /// As it is recorded and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identify => "identify",
            Self::Resolve => "resolve",
            Self::Authorize => "authorize",
            Self::Constrain => "constrain",
            Self::Guard => "guard",
            Self::Approve => "approve",
            Self::Admit => "admit",
            Self::Execute => "execute",
            Self::Inspect => "inspect",
            Self::Settle => "settle",
        }
    }
}
