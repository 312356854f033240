//! Bad input: whatever is sent, the answer is a refusal in JSON with a known code, nothing of a secret comes back, and the
//! gate goes on. Nothing answers 5xx for input.

mod bodies;
mod echoes;
mod mutations;
mod names;
mod paths_and_queries;
mod wire;
