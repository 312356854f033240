//! The stages of the pipeline, as refusals and records name them.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Identify,
    Resolve,
    Authorize,
    Constrain,
    Guard,
    Approve,
    /// The durable step before the execution.
    Admit,
    Execute,
    /// Guardians decide what the caller may see of the result.
    Inspect,
    /// The durable step after the execution.
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

    /// Parses [`Stage::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.as_str() == text)
    }

    /// The recorded and shown form.
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
