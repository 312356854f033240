//! What is sent, what guardians see of it, and what they may change.
