//! Where calls may go, and what the gate takes from there: addresses, hosts, redirects and proxies; what an agent's
//! parameters cannot do to a request; answers without end, measure or truth.

mod addresses;
mod answers;
mod parameters;
mod ways;
