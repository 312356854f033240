//! What operators learn of calls: request ids, log lines, metrics, traces.

mod export;
mod log_lines;
mod metrics;
mod propagation;
mod request_ids;
