//! How much a caller can create and keep.

use std::time::Duration;

/// Open intents of one creator.
pub const OPEN_INTENTS: u32 = 1_000;
/// Intents of one creator, ended ones included. One more takes the place of the oldest that ended long enough ago.
pub const INTENTS: u32 = 10_000;
/// How long an intent is kept at least after its end.
pub const KEPT_AFTER_END: Duration = Duration::from_hours(24 * 30);
/// Tasks of one intent.
pub const TASKS: u32 = 1_000;
/// Plans of one intent.
pub const PLANS: u32 = 64;
/// Live leases of one agent on one intent, besides those of tasks.
pub const LEASES: u32 = 100;
/// Agents that are assigned to one intent.
pub const PARTICIPANTS: u32 = 200;
/// Coordinators of one intent that have not ended.
pub const COORDINATORS: u32 = 16;
/// Recorded costs of one intent.
pub const COSTS: u32 = 10_000;
/// Events that callers log on one intent.
pub const LOGGED_EVENTS: u32 = 10_000;
/// Tasks that one task depends on.
pub const DEPENDENCIES: usize = 100;
/// Requirements of one task.
pub const REQUIREMENTS: usize = 32;
/// Patches in one change of an intent's state.
pub const PATCHES: usize = 256;
/// The JSON of an intent's state, and of its constraints, in bytes.
pub const STATE_BYTES: usize = 1 << 20;
/// The JSON of a task's input, output or metadata, of a plan's parts, of an event or of a cost's metadata, in bytes.
pub const DOCUMENT_BYTES: usize = 64 << 10;
/// A text without a narrower limit, in bytes.
pub const TEXT_BYTES: usize = 8 << 10;
/// The names of one list of a task or of guardrails.
pub const NAMES: usize = 256;
/// The longest lease.
pub const LONGEST_LEASE: Duration = Duration::from_hours(24);
/// The longest timeout of a task.
pub const LONGEST_TASK: Duration = Duration::from_hours(24 * 365);
/// The most attempts of a task.
pub const ATTEMPTS: u32 = 100;
/// The shortest and the longest interval between heartbeats of a coordinator, in seconds.
pub const HEARTBEAT_SECONDS: std::ops::RangeInclusive<u32> = 1..=86_400;
/// How many missed intervals make a coordinator unresponsive.
pub const MISSED_HEARTBEATS: u32 = 3;
/// The newest running tasks, intents and plans of one agent that are read with its grants. What a call names beyond them is
/// looked up by its id, so that nobody can push out of sight what an agent works on.
pub const READ_WITH_GRANTS: u32 = 200;
