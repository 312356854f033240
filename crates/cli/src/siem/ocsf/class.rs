//! The classes of OCSF that events are told in, and the values of the attributes that all of them share.

/// A class of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Somebody calls something.
    ApiActivity,
    /// A principal comes or goes.
    AccountChange,
    /// Something that is managed changes.
    EntityManagement,
    /// A principal is given rights, or they end.
    UserAccess,
    /// Somebody who watches has found something.
    DetectionFinding,
    /// None of the others.
    Base,
}

impl Class {
    /// Its number.
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

    /// Its name.
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

    /// The number and the name of its category.
    pub fn category(self) -> (u32, &'static str) {
        match self {
            Self::ApiActivity => (6, "Application Activity"),
            Self::AccountChange | Self::EntityManagement | Self::UserAccess => (3, "Identity & Access Management"),
            Self::DetectionFinding => (2, "Findings"),
            Self::Base => (0, "Uncategorized"),
        }
    }
}

/// What was done, among the things that can be done in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Its number in the class.
    pub id: u32,
    /// Its name there, or ours where the class has none.
    pub name: &'static str,
}

impl Activity {
    /// The number of what the class has no number for.
    pub const OTHER: u32 = 99;

    /// One that the class knows.
    pub const fn new(id: u32, name: &'static str) -> Self {
        Self { id, name }
    }

    /// One that the class does not know.
    pub const fn other(name: &'static str) -> Self {
        Self { id: Self::OTHER, name }
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nobody knows, or not yet.
    Unknown,
    /// Well.
    Success,
    /// Not well, or not at all.
    Failure,
    /// A finding, which comes to no end by itself.
    New,
}

impl Outcome {
    /// Its number.
    pub fn id(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Success | Self::New => 1,
            Self::Failure => 2,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Success => "Success",
            Self::Failure => "Failure",
            Self::New => "New",
        }
    }
}

/// How much it deserves to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Informational,
    /// Something did not work.
    Low,
    /// Somebody tried what they may not do.
    Medium,
    /// Somebody was kept from what they tried.
    High,
}

impl Severity {
    /// Its number.
    pub fn id(self) -> u32 {
        match self {
            Self::Informational => 1,
            Self::Low => 2,
            Self::Medium => 3,
            Self::High => 4,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Informational => "Informational",
            Self::Low => "Low",
            Self::Medium => "Medium",
            Self::High => "High",
        }
    }
}
