//! Guardians through the real binary: those of others, which allow, deny, change, hang and break, and the gate itself
//! as the guardian of other agents' runtimes. Both sides of the protocol are programs in Python that know only the
//! specification.

mod changes;
mod denials;
mod endpoint;
mod examples;
mod failures;
mod office;
mod policies;
mod recovery;
mod results;
mod sent;
mod shadow;
pub(crate) mod third_party;
mod together;
