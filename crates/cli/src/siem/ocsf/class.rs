//! The OCSF classes of events, and the values of their shared attributes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    ApiActivity,
    AccountChange,
    EntityManagement,
    UserAccess,
    DetectionFinding,
    Base,
}

impl Class {
    pub fn uid(self) -> u32 {
        match self {
            Self::ApiActivity => 6003,
            Self::AccountChange => 3001,
            Self::EntityManagement => 3004,
            Self::UserAccess => 3005,
            Self::DetectionFinding => 2004,
            Self::Base => 0,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::ApiActivity => "API Activity",
            Self::AccountChange => "Account Change",
            Self::EntityManagement => "Entity Management",
            Self::UserAccess => "User Access Management",
            Self::DetectionFinding => "Detection Finding",
            Self::Base => "Base Event",
        }
    }

    pub fn category(self) -> (u32, &'static str) {
        match self {
            Self::ApiActivity => (6, "Application Activity"),
            Self::AccountChange | Self::EntityManagement | Self::UserAccess => (3, "Identity & Access Management"),
            Self::DetectionFinding => (2, "Findings"),
            Self::Base => (0, "Uncategorized"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    pub id: u32,
    /// The name in the class, or our own.
    pub name: &'static str,
}

impl Activity {
    pub const OTHER: u32 = 99;

    pub const fn new(id: u32, name: &'static str) -> Self {
        Self { id, name }
    }

    pub const fn other(name: &'static str) -> Self {
        Self { id: Self::OTHER, name }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not known, or not known yet.
    Unknown,
    Success,
    Failure,
    /// A new finding.
    New,
}

impl Outcome {
    pub fn id(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Success | Self::New => 1,
            Self::Failure => 2,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Success => "Success",
            Self::Failure => "Failure",
            Self::New => "New",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Informational,
    /// A failure.
    Low,
    /// Something unauthorized was attempted.
    Medium,
    /// An attempt was prevented.
    High,
}

impl Severity {
    pub fn id(self) -> u32 {
        match self {
            Self::Informational => 1,
            Self::Low => 2,
            Self::Medium => 3,
            Self::High => 4,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Informational => "Informational",
            Self::Low => "Low",
            Self::Medium => "Medium",
            Self::High => "High",
        }
    }
}
