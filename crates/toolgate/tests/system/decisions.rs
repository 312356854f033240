//! A decision covers what is executed: guardians, people, standing approvals and budgets decide about exactly the request
//! that leaves the gate, with exactly the credential that is put into it.

mod agent_budgets;
mod alternatives;
mod budgets;
mod changes;
mod office;
mod stops;
