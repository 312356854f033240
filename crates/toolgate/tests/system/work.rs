//! Coordinated work over HTTP: intents, tasks with the tools that they need, coordinators within guardrails, and grants that
//! come and end with a task.

mod assignments;
mod attribution;
mod limits;
mod sdk;
mod tasks;
mod team;
mod two_gates;
mod versions;
mod visibility;
