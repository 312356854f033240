//! Policies through the real binary: what rules do to calls, who may change them, what stays of every change, and what is
//! found out about rules before they are in force.

mod asking;
mod bodies;
mod hot;
mod many;
mod office;
mod refused;
mod rights;
mod shadow;
mod simulation;
mod starter;
mod terminal;
mod trace;
mod versions;
mod visible;
